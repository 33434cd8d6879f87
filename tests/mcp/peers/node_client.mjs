// A client on the npm package @modelcontextprotocol/client: argv is its node_modules, the era, then a server command.
// It prints what it saw as one JSON object.
import { pathToFileURL } from "node:url";

const [modules, era, command, ...args] = process.argv.slice(2);
const load = async (name) => import(pathToFileURL(`${modules}/${name}`).href);
const { Client } = await load("@modelcontextprotocol/client/dist/index.mjs");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/dist/stdio.mjs");

const versionNegotiation = era === "modern" ? { mode: { pin: "2026-07-28" } } : { mode: era };
const client = new Client({ name: "node-client", version: "0" }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));

const seen = {};
const text = (result) => result.content[0].text;
seen.server = client.getServerVersion()?.name;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const steps = [];
const onprogress = (note) => steps.push(note.progress);
seen.slow = text(await client.callTool({ name: "slow", arguments: { steps: 3, seconds: 0.03 } }, { onprogress }));
seen.progress = steps;
const slow = { name: "slow", arguments: { steps: 10, seconds: 30 } };
const failure = async (options) => {
  try {
    await client.callTool(slow, options);
    return "no error";
  } catch (error) {
    return error.message;
  }
};
const controller = new AbortController();
setTimeout(() => controller.abort("user pressed esc"), 500);
seen.aborted = await failure({ signal: controller.signal });
seen.timeout = await failure({ timeout: 300 });
seen.quick = text(await client.callTool({ name: "quick", arguments: { text: "x" } }));
if (era === "modern") {
  const changed = new Promise((done) => client.setNotificationHandler("notifications/tools/list_changed", done));
  const subscription = await client.listen({ toolsListChanged: true });
  seen.touch = text(await client.callTool({ name: "touch", arguments: {} }));
  await changed;
  await subscription.close();
  seen.gone = text(await client.callTool({ name: "touch", arguments: {} }));
  const second = await client.listen({ toolsListChanged: true });
  await client.callTool({ name: "end", arguments: {} });
  seen.ended = await second.closed;
}
await client.close();
console.log(JSON.stringify(seen));
