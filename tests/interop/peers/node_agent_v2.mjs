// The agent of node_agent.mjs in the draft version 2: a prompt is answered at once, and a state update tells its end.
import { load, streamOf } from "./sdk.mjs";

const acp = await load("@agentclientprotocol/sdk/experimental/v2");
const { agent: of_agent, client: of_client } = acp.methods;
const options = [
  { optionId: "no", name: "No", kind: "reject_once" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
];
const running = new Map(); // session id -> what cancels its work
let messages = 0;

async function work(client, sessionId, prompt, messageId) {
  const cancel = new AbortController();
  running.set(sessionId, cancel);
  const tell = (update) => client.notify(of_client.session.update, { sessionId, update });
  await tell({ sessionUpdate: "user_message", messageId, content: prompt });
  await tell({ sessionUpdate: "state_update", state: "running" });
  let stopReason = "end_turn";
  for (let word of prompt[0].text.split(/\s+/)) {
    if (word === "ASK") {
      const answer = await client.request(of_client.session.requestPermission, { sessionId, title: "A tool", options });
      word = answer.outcome.optionId ?? answer.outcome.outcome;
    }
    const content = { type: "text", text: word };
    await tell({ sessionUpdate: "agent_message_chunk", messageId: `${messageId}-answer`, content });
    if (word === "WAIT") {
      await new Promise((resolve) => cancel.signal.addEventListener("abort", resolve));
      stopReason = "cancelled";
      break;
    }
  }
  await tell({ sessionUpdate: "state_update", state: "idle", stopReason });
}

acp
  .agent({ name: "words" })
  .onRequest(of_agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "words", version: "1.0.0" },
    capabilities: { session: {} },
  }))
  .onRequest(of_agent.session.new, ({ params }) => ({ sessionId: `session of ${params.cwd}` }))
  .onRequest(of_agent.session.prompt, ({ params, client }) => {
    const messageId = `message-${++messages}`;
    setImmediate(() => work(client, params.sessionId, params.prompt, messageId)); // behind the answer
    return { messageId };
  })
  .onNotification(of_agent.session.cancel, ({ params }) => running.get(params.sessionId)?.abort())
  .connect(streamOf(acp, process.stdout, process.stdin));
