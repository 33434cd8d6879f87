// Finds the npm package @agentclientprotocol/sdk in the folder that ACPRT_NODE_PEERS names: imports look beside this file only.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.ACPRT_NODE_PEERS + "/");
export const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
