// The client side of the workloads for the peers on Node; the same bursts as in `drive.py`, and the same samples.
// A peer's client program brings a `connect(onUpdate)` whose session has agentPid, initialize(), newSession(),
// prompt(text), start(text) -> {done, cancel} and close().
import { readFileSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";
import * as script from "./script.mjs";

const WARM_UP_SECONDS = 0.4; // a compiler that learns while it runs needs longer than an interpreter

const { values: args, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: "string", default: "1" },
    handlers: { type: "string", default: "0" },
    seconds: { type: "string", default: "0.6" },
    loop: { type: "string", default: "node" },
    help: { type: "boolean", default: false },
  },
});
const size = Number(args.size);
const seconds = Number(args.seconds);

class Updates {
  count = 0;
  echoed = "";
  late = 0;
  outOfOrder = 0;
  onParked = () => {};

  received = (text) => {
    if (text === script.UPDATE_TEXTS[this.count & script.UPDATE_MASK]) this.count += 1;
    else if (text === script.PARKED) this.onParked();
    else if (text.startsWith("echo")) this.echoed = text;
    else {
      this.count += 1;
      this.outOfOrder += 1;
    }
  };
}

export async function clientMain(connect) {
  if (args.help) return;
  const sample = await run(connect, positionals[0]);
  process.stdout.write(`${JSON.stringify(sample)}\n`, () => process.exit(0));
}

async function run(connect, workload) {
  if (workload === "start") return starts(connect);
  const updates = new Updates();
  if (workload === "pending") return pending(connect, updates);
  const session = await connect(updates.received);
  await session.initialize();
  await session.newSession();
  const oneByOne = (text) => async (count) => {
    for (let i = 0; i < count; i++) await session.prompt(text);
  };
  switch (workload) {
    case "sequential":
      return timed(session, oneByOne(script.PROMPT_TEXT), 50, 1);
    case "nested":
      return timed(session, oneByOne(script.CALL_TEXT), 50, 1);
    case "latency":
      return latency(session);
    case "pipelined":
      return timed(session, (count) => workers(session, size, count / size), size * 2, size);
    case "updates":
      return updatesStream(session, updates);
    case "naps":
      return timed(session, (count) => naps(session, count), 1, 1);
    case "storm":
      return timed(session, (count) => storms(session, updates, count / size), size, size);
    case "echo":
      return echo(session, updates);
    default:
      throw new Error(`a peer on Node has no workload ${workload}`);
  }
}

async function workers(session, howMany, promptsEach) {
  const worker = async () => {
    for (let i = 0; i < promptsEach; i++) await session.prompt(script.PROMPT_TEXT);
  };
  await Promise.all(Array.from({ length: howMany }, worker));
}

async function naps(session, count) {
  const text = script.napText(1);
  for (let i = 0; i < count; i++) await Promise.all(Array.from({ length: size }, () => session.prompt(text)));
}

async function storms(session, updates, count) {
  const text = script.parkText(size);
  for (let i = 0; i < count; i++) {
    const held = new Promise((resolve) => (updates.onParked = resolve));
    const sent = Array.from({ length: size }, () => session.start(text));
    await held;
    for (const request of sent) request.cancel();
    await Promise.allSettled(sent.map((request) => request.done));
    await session.prompt(script.PROMPT_TEXT);
  }
}

async function latency(session) {
  const times = [];
  const burst = async (count) => {
    times.length = 0;
    for (let i = 0; i < count; i++) {
      const before = process.hrtime.bigint();
      await session.prompt(script.PROMPT_TEXT);
      times.push(Number(process.hrtime.bigint() - before));
    }
  };
  const sample = await timed(session, burst, 50, 1);
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(times.length * share)] / 1000;
  return { ...sample, p50_us: at(0.5), p99_us: at(0.99) };
}

async function updatesStream(session, updates) {
  const burst = async (count) => {
    updates.count = 0;
    await session.prompt(script.updatesText(count));
    updates.late += count - updates.count;
    while (updates.count < count) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const sample = await timed(session, burst, 1000, 1);
  return { ...sample, handled_after_answer: updates.late, out_of_order: updates.outOfOrder };
}

async function echo(session, updates) {
  const text = script.echoText(size);
  const burst = async (count) => {
    for (let i = 0; i < count; i++) {
      await session.prompt(text);
      while (updates.echoed.length < size) await new Promise((resolve) => setTimeout(resolve, 0));
      if (updates.echoed !== text) throw new Error("the echo is not what was sent");
      updates.echoed = "";
    }
  };
  const sample = await timed(session, burst, 1, 1);
  return { ...sample, bytes: size * sample.count };
}

async function timed(session, burst, first, multipleOf) {
  const began = performance.now();
  let count = first;
  let rate = 0;
  for (let bursts = 0; bursts < 2 || performance.now() - began < WARM_UP_SECONDS * 1000; bursts++) {
    const burstBegan = performance.now();
    await burst(count);
    const took = (performance.now() - burstBegan) / 1000;
    rate = count / took;
    if (took < WARM_UP_SECONDS) count *= 2;
  }
  count = Math.max(Math.floor((rate * seconds) / multipleOf), 1) * multipleOf;
  globalThis.gc?.();
  const agentBefore = agentCpu(session.agentPid);
  const clientBefore = process.cpuUsage();
  const wallBefore = performance.now();
  await burst(count);
  const wall = (performance.now() - wallBefore) / 1000;
  const client = process.cpuUsage(clientBefore);
  const agent = agentCpu(session.agentPid);
  return {
    count,
    seconds: wall,
    client_cpu: (client.user + client.system) / 1e6,
    agent_cpu: agent === null || agentBefore === null ? null : agent - agentBefore,
  };
}

// Seconds of all threads that the agent has; null where the system does not tell.
function agentCpu(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const spent = (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    return threads.reduce((sum, thread) => sum + spent(thread), 0) / 1e9;
  } catch {
    return null;
  }
}

async function starts(connect) {
  const times = [];
  for (let i = 0; i <= size; i++) {
    const began = performance.now();
    const session = await connect(() => {});
    await session.initialize();
    times.push(performance.now() - began);
    await session.close();
  }
  const ordered = times.slice(1).sort((a, b) => a - b);
  return { count: ordered.length, ms: ordered[Math.floor(ordered.length / 2)] };
}

async function pending(connect, updates) {
  const session = await connect(updates.received);
  await session.initialize();
  await session.newSession();
  for (let i = 0; i < 100; i++) await session.prompt(script.PROMPT_TEXT);
  const memory = () => {
    globalThis.gc?.();
    return process.memoryUsage();
  };
  const before = memory();
  const held = new Promise((resolve) => (updates.onParked = resolve));
  const sent = Array.from({ length: size }, () => session.start(script.parkText(size)));
  await held;
  const after = memory();
  for (const request of sent) request.done.catch(() => {});
  return {
    count: size,
    resident_per_request: (after.rss - before.rss) / size,
    traced_per_request: (after.heapUsed - before.heapUsed) / size,
  };
}
