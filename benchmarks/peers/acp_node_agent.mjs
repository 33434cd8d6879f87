// The agent on the npm package @agentclientprotocol/sdk, written the way its documentation shows.
import { Readable, Writable } from "node:stream";
import { load } from "./node_packages.mjs";
import { CALL, OPTIONS, SESSION_ID, obey } from "./script.mjs";

const acp = await load("@agentclientprotocol/sdk");
const { agent: ofAgent, client: ofClient } = acp.methods;

async function prompt({ params, client, signal }) {
  const { sessionId } = params;
  const block = params.prompt[0];
  await obey(block.type === "text" ? block.text : "", {
    update: (text) =>
      client.notify(ofClient.session.update, {
        sessionId,
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
      }),
    ask: () => client.request(ofClient.session.requestPermission, { sessionId, toolCall: CALL, options: OPTIONS }),
    held: () =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(acp.RequestError.requestCancelled()))),
  });
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "benchmark-agent" })
  .onRequest(ofAgent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion }))
  .onRequest(ofAgent.session.new, () => ({ sessionId: SESSION_ID }))
  .onRequest(ofAgent.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
