// The client on the npm package vscode-jsonrpc: spawns its agent and hands each message chunk to the workload.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { clientMain } from "./drive.mjs";
import { load } from "./node_packages.mjs";
import { SESSION_ID } from "./script.mjs";

const rpc = await load("vscode-jsonrpc/node");
const AGENT = fileURLToPath(new URL("./vscode_agent.mjs", import.meta.url));

async function connect(onUpdate) {
  const child = spawn(process.execPath, [AGENT], { stdio: ["pipe", "pipe", "inherit"] });
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(child.stdout),
    new rpc.StreamMessageWriter(child.stdin),
  );
  connection.onNotification("session/update", ({ update }) => onUpdate(update.content.text));
  connection.onRequest("session/request_permission", ({ options }) => ({
    outcome: { outcome: "selected", optionId: options[0].optionId },
  }));
  connection.listen();
  const params = (text) => ({ sessionId: SESSION_ID, prompt: [{ type: "text", text }] });
  return {
    agentPid: child.pid,
    initialize: () => connection.sendRequest("initialize", { protocolVersion: 1, clientCapabilities: {} }),
    newSession: () => connection.sendRequest("session/new", { cwd: "/", mcpServers: [] }),
    prompt: (text) => connection.sendRequest("session/prompt", params(text)),
    start(text) {
      const source = new rpc.CancellationTokenSource();
      return {
        done: connection.sendRequest("session/prompt", params(text), source.token),
        cancel: () => source.cancel(),
      };
    },
    async close() {
      const exited = once(child, "exit");
      connection.dispose();
      child.kill();
      await exited;
    },
  };
}

await clientMain(connect);
