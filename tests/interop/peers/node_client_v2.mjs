// The client of node_client.mjs in the draft version 2, where a turn ends with a state update.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { load, streamOf } from "./sdk.mjs";

const acp = await load("@agentclientprotocol/sdk/experimental/v2");
const { agent: of_agent, client: of_client } = acp.methods;
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(child, "exit");
const seen = {};
let texts = [];
let heard = () => {};
let idle = () => {};

await acp
  .client({ name: "listener" })
  .onNotification(of_client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === "agent_message_chunk") {
      texts.push(update.content.text);
      heard();
    } else if (update.sessionUpdate === "state_update" && update.state === "idle") {
      idle(update.stopReason);
    }
  })
  .onRequest(of_client.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find(({ kind }) => kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .connectWith(streamOf(acp, child.stdin, child.stdout), async (agent) => {
    const info = { name: "listener", version: "1.0.0" };
    const { protocolVersion } = await agent.request(of_agent.initialize, { protocolVersion: 2, info, capabilities: {} });
    const { sessionId } = await agent.request(of_agent.session.new, { cwd: "/", mcpServers: [] });
    // The texts of a turn and why it stopped; whenHeard is called at its first text.
    const turn = async (text, whenHeard = () => {}) => {
      texts = [];
      heard = whenHeard;
      const ended = new Promise((resolve) => { idle = resolve; });
      const { messageId } = await agent.request(of_agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      if (typeof messageId !== "string") throw new Error("a prompt was answered without a message id");
      return [await ended, texts];
    };
    seen.version = protocolVersion;
    [seen.stop_reason, seen.texts] = await turn("one two three");
    [seen.asked_stop_reason, seen.asked_texts] = await turn("ASK");
    const cancel = () => agent.notify(of_agent.session.cancel, { sessionId });
    [seen.cancelled_stop_reason, seen.cancelled_texts] = await turn("WAIT", cancel);
  });
child.stdin.end();
seen.exit_status = (await exited)[0];
console.log(JSON.stringify(seen));
