// An agent on the npm package @agentclientprotocol/sdk. It says each word back in an update of its own. "ASK" asks for
// permission and says which option was chosen; "WAIT" goes on until the turn is cancelled.
import { acp, streamOf } from "./sdk.mjs";

const { agent: of_agent, client: of_client } = acp.methods;
const options = [
  { optionId: "no", name: "No", kind: "reject_once" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
];
const running = new Map(); // session id -> what cancels its turn

async function prompt({ params, client, signal }) {
  const { sessionId } = params;
  const turn = new AbortController();
  running.set(sessionId, turn);
  for (let word of params.prompt[0].text.split(/\s+/)) {
    if (word === "ASK") {
      const toolCall = { toolCallId: "call-1", title: "A tool" };
      const answer = await client.request(of_client.session.requestPermission, { sessionId, toolCall, options });
      word = answer.outcome.optionId ?? answer.outcome.outcome;
    }
    await client.notify(of_client.session.update, {
      sessionId,
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: word } },
    });
    if (word === "WAIT") {
      await new Promise((resolve, reject) => {
        turn.signal.addEventListener("abort", resolve);
        signal.addEventListener("abort", () => reject(acp.RequestError.requestCancelled()));
      });
      return { stopReason: "cancelled" };
    }
  }
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "words" })
  .onRequest(of_agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion, agentCapabilities: {} }))
  .onRequest(of_agent.session.new, ({ params }) => ({ sessionId: `session of ${params.cwd}` }))
  .onRequest(of_agent.session.prompt, prompt)
  .onNotification(of_agent.session.cancel, ({ params }) => running.get(params.sessionId)?.abort())
  .connect(streamOf(acp, process.stdout, process.stdin));
