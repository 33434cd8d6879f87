// Finds the npm packages in the folder that BENCH_NODE names: imports look beside this file only.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.BENCH_NODE}/`);
export const load = (name) => import(pathToFileURL(require.resolve(name)));
