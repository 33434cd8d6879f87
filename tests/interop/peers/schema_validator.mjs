// Judges payloads by the validators that the npm package @agentclientprotocol/sdk generates from the schemas, unstable
// parts included. One JSON case a line on stdin, {"version": 1 | 2, "type": NAME, "value": …}; one line each on stdout:
// {"accepted": true, "value": what the validator made of it}, {"accepted": false, "why": …}, or {"unknown": NAME}.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.ACPRT_NODE_PEERS + "/");
// The package exports no way to the validators; they lie beside its entry, dist/v1/stable/acp.js.
const dist = dirname(dirname(dirname(require.resolve("@agentclientprotocol/sdk"))));
const validators = {};
for (const version of [1, 2]) {
  validators[version] = await import(pathToFileURL(join(dist, `v${version}`, "unstable", "schema", "zod.gen.js")));
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { version, type, value } = JSON.parse(line);
  const validator = validators[version][`z${type}`];
  let answer = { unknown: type };
  if (validator !== undefined) {
    const result = validator.safeParse(value ?? {}); // as the package itself does for params and results
    answer = result.success
      ? { accepted: true, value: result.data }
      : { accepted: false, why: result.error.issues.slice(0, 3).map((i) => `${i.path.join(".")}: ${i.message}`).join("; ") };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
