// A client on the npm package @agentclientprotocol/sdk: `node_client.mjs AGENT ARGS…` spawns AGENT, sends one prompt and
// reads it to its end, one in which the agent asks for permission, cancels one at its first update by session/cancel and
// another by aborting the request, and prints what it saw as one JSON object.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { acp, streamOf } from "./sdk.mjs";

const { agent: of_agent, client: of_client } = acp.methods;
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(child, "exit");
const seen = {};
let texts = [];
let heard = () => {};

await acp
  .client({ name: "listener" })
  .onNotification(of_client.session.update, ({ params }) => {
    texts.push(params.update.content.text);
    heard();
  })
  .onRequest(of_client.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find(({ kind }) => kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .connectWith(streamOf(acp, child.stdin, child.stdout), async (agent) => {
    const initialized = await agent.request(of_agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION });
    const { sessionId } = await agent.request(of_agent.session.new, { cwd: "/", mcpServers: [] });
    const ask = (text, options) =>
      agent.request(of_agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, options);
    const whole = await ask("one two three");
    seen.version = initialized.protocolVersion;
    seen.texts = texts;
    seen.stop_reason = whole.stopReason;
    texts = [];
    seen.asked_stop_reason = (await ask("ASK")).stopReason;
    seen.asked_texts = texts;
    texts = [];
    let first = new Promise((resolve) => { heard = resolve; });
    const prompt = ask("WAIT");
    await first;
    await agent.notify(of_agent.session.cancel, { sessionId });
    seen.cancelled_stop_reason = (await prompt).stopReason;
    seen.cancelled_texts = [...texts];

    const request = new AbortController();
    first = new Promise((resolve) => { heard = resolve; });
    const aborted = ask("WAIT", { cancellationSignal: request.signal });
    await first;
    request.abort();
    seen.aborted = await aborted.catch((error) => error.code);
  });
child.stdin.end();
seen.exit_status = (await exited)[0];
console.log(JSON.stringify(seen));
