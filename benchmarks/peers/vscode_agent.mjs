// The agent on the npm package vscode-jsonrpc: named methods, plain objects, Content-Length frames.
import { load } from "./node_packages.mjs";
import { CALL, OPTIONS, SESSION_ID, obey } from "./script.mjs";

const rpc = await load("vscode-jsonrpc/node");
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(process.stdin),
  new rpc.StreamMessageWriter(process.stdout),
);

connection.onRequest("initialize", ({ protocolVersion }) => ({ protocolVersion }));
connection.onRequest("session/new", () => ({ sessionId: SESSION_ID }));
connection.onRequest("session/prompt", async ({ sessionId, prompt }, cancellation) => {
  await obey(prompt[0].text, {
    update: (text) =>
      connection.sendNotification("session/update", {
        sessionId,
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
      }),
    ask: () => connection.sendRequest("session/request_permission", { sessionId, toolCall: CALL, options: OPTIONS }),
    held: () => new Promise((resolve) => cancellation.onCancellationRequested(resolve)),
  });
  return { stopReason: "end_turn" };
});
for (let i = 0; i < Number(process.argv[2] ?? 0); i++) connection.onRequest(`more/${i}`, () => null);
connection.onClose(() => process.exit(0));
connection.listen();
