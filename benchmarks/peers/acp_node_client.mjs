// The client on the npm package @agentclientprotocol/sdk: spawns its agent and hands each message chunk to the workload.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { clientMain } from "./drive.mjs";
import { load } from "./node_packages.mjs";
import { SESSION_ID } from "./script.mjs";

const acp = await load("@agentclientprotocol/sdk");
const { agent: ofAgent, client: ofClient } = acp.methods;
const AGENT = fileURLToPath(new URL("./acp_node_agent.mjs", import.meta.url));

async function connect(onUpdate) {
  const child = spawn(process.execPath, [AGENT], { stdio: ["pipe", "pipe", "inherit"] });
  let leave;
  const left = new Promise((resolve) => (leave = resolve));
  const agent = await new Promise((resolve) => {
    acp
      .client({ name: "benchmark-client" })
      .onNotification(ofClient.session.update, ({ params: { update } }) => {
        if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
          onUpdate(update.content.text);
        }
      })
      .onRequest(ofClient.session.requestPermission, ({ params }) => ({
        outcome: { outcome: "selected", optionId: params.options[0].optionId },
      }))
      .connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (connected) => {
        resolve(connected);
        await left;
      });
  });
  const ask = (text, options) =>
    agent.request(ofAgent.session.prompt, { sessionId: SESSION_ID, prompt: [{ type: "text", text }] }, options);
  return {
    agentPid: child.pid,
    initialize: () => agent.request(ofAgent.initialize, { protocolVersion: acp.PROTOCOL_VERSION }),
    newSession: () => agent.request(ofAgent.session.new, { cwd: "/", mcpServers: [] }),
    prompt: (text) => ask(text),
    start(text) {
      const abort = new AbortController();
      return { done: ask(text, { cancellationSignal: abort.signal }), cancel: () => abort.abort() };
    },
    async close() {
      const exited = once(child, "exit");
      leave();
      child.stdin.end();
      child.kill();
      await exited;
    },
  };
}

await clientMain(connect);
