// A server on the npm package @modelcontextprotocol/server, of both eras. argv: the node_modules that has it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.argv[2]}/here.js`));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const loadEsm = async (name) => import(pathToFileURL(`${process.argv[2]}/${name}`).href);
const { McpServer } = await loadEsm("@modelcontextprotocol/server/dist/index.mjs");
const { serveStdio } = await loadEsm("@modelcontextprotocol/server/dist/stdio.mjs");
const z = await load("zod");

const say = (text) => process.stderr.write(`${text}\n`);
const text = (value) => ({ content: [{ type: "text", text: value }] });

serveStdio(() => {
  const server = new McpServer(
    { name: "node-server", version: "0" },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.registerTool("quick", { inputSchema: z.object({ text: z.string() }) }, async (args) => text(`got ${args.text}`));
  server.registerTool(
    "slow",
    { inputSchema: z.object({ steps: z.number(), seconds: z.number() }) },
    async ({ steps, seconds }, ctx) => {
      say("slow began");
      const signal = ctx.mcpReq?.signal ?? ctx.signal;
      signal.addEventListener("abort", () => say("slow saw abort"));
      for (let step = 0; step < steps; step += 1) {
        await new Promise((done) => setTimeout(done, (seconds * 1000) / steps));
        const token = (ctx.mcpReq?._meta ?? ctx._meta)?.progressToken;
        if (token !== undefined) {
          const params = { progressToken: token, progress: step + 1, total: steps };
          await (ctx.mcpReq?.notify ?? ctx.sendNotification)({ method: "notifications/progress", params });
        }
      }
      return text("done");
    },
  );
  server.registerTool("touch", { inputSchema: z.object({}) }, async () => {
    server.sendToolListChanged();
    return text("touched");
  });
  return server;
});
