// Finds the npm package @agentclientprotocol/sdk in the folder that ACPRT_NODE_PEERS names: imports look beside this file only.
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.ACPRT_NODE_PEERS + "/");

// The package's name, or one of its further entries.
export const load = (name) => import(pathToFileURL(require.resolve(name)));
export const acp = await load("@agentclientprotocol/sdk");
export const streamOf = ({ ndJsonStream }, output, input) => ndJsonStream(Writable.toWeb(output), Readable.toWeb(input));
