"use strict";
// The records of the trace: who answers whom, which are wanted, and which rows they make. Nothing here draws.

const $ = (id) => document.getElementById(id);
const ROW = 30, EDGE = 180, PAD = 20, OVERSCAN = 12, SLOW = 1; // px; px before the lanes; seconds
const COLOURS = ["#3b82f6", "#e0782f", "#2fa36b", "#b45bd6", "#d64a7b", "#1aa5b8", "#a88a1c", "#6d6af0", "#7fa52b", "#c2604f"];
const CHUNK = /_chunk$/;

// ── Events ─────────────────────────────────────────────────────────────────────────────────────────────────────

const split = (id) => { const text = $(id).textContent; return text ? text.split("\n") : []; };
const sources = split("records");
const previews = split("previews").map((line) => JSON.parse(line));
const events = sources.map((line) => JSON.parse(line));
const count = events.length;
const pair = new Int32Array(count).fill(-1);
const colour = new Int16Array(count).fill(-1);
const connectionOf = (event) => `${event.connection ?? ""}@${event.pid ?? ""}`;
const moment = (event) => event.time ?? 0;

(function pairUp() {
  const open = new Map();
  let requests = 0;
  for (let i = 0; i < count; i++) {
    const event = events[i];
    if (event.id === undefined) continue;
    if (event.type === "request") {
      open.set(`${connectionOf(event)}|${event.from}|${JSON.stringify(event.id)}`, i);
      colour[i] = requests++ % COLOURS.length;
    } else if (event.type === "response") {
      const key = `${connectionOf(event)}|${event.to}|${JSON.stringify(event.id)}`;
      const asked = open.get(key);
      if (asked !== undefined) {
        open.delete(key); // an id that is used again opens a pair of its own
        pair[i] = asked; pair[asked] = i; colour[i] = colour[asked];
        event.latency ??= moment(event) - moment(events[asked]);
      }
    }
  }
})();

const isBad = (event) => event.is_error || event.type === "malformed" || event.type === "dropped" ||
  (event.type === "process" && event.event === "exited" && event.payload?.status !== 0);
const updateOf = (event) => event.type === "notification" && event.method === "session/update" ? event.params?.update : undefined;
const chunkKind = (event) => { const kind = updateOf(event)?.sessionUpdate; return typeof kind === "string" && CHUNK.test(kind) ? kind : null; };
const textOf = (event) => { const content = updateOf(event)?.content; return typeof content?.text === "string" ? content.text : content ? `[${content.type}]` : ""; };
const seconds = (value) => value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 2 : 1)} ms` : `${value.toFixed(2)} s`;
const bytes = (value) => value < 1024 ? `${value} B` : value < 1048576 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 1048576).toFixed(1)} MiB`;
const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const clock = (event) => {
  if (!event.time) return "";
  const date = new Date(event.time * 1000), two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
};

// ── What is wanted ─────────────────────────────────────────────────────────────────────────────────────────────

const shownTypes = new Set(), shownProtocols = new Set(), opened = new Set();
let terms = [];

function choices(set, fieldset, values) {
  for (const value of values) {
    set.add(value);
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value });
    const label = document.createElement("label");
    label.append(box, ` ${value}`);
    fieldset.append(label);
    box.addEventListener("change", () => { set[box.checked ? "add" : "delete"](value); rebuild(); });
  }
}
function options(select, values) {
  for (const [value, name] of values) select.append(new Option(name, value));
  select.parentElement.hidden = values.length < 2;
  select.parentElement.style.display = values.length < 2 ? "none" : "";
}
const distinct = (of) => [...new Set(events.map(of).filter((value) => value !== undefined && value !== ""))];
const types = distinct((event) => event.type);
const ORDER = ["request", "response", "notification", "message", "stderr", "process", "malformed", "dropped"];
choices(shownTypes, $("types"), types.sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b)));
const protocols = distinct((event) => event.protocol);
if (protocols.length > 1) choices(shownProtocols, $("protocols"), protocols);
options($("session"), distinct((event) => event.session).map((each) => [each, each]));
const connections = distinct((event) => event.connection === undefined ? undefined : connectionOf(event));
options($("connection"), connections.map((each) => [each, each.replace(/@(\d+)$/, " (pid $1)")]));

function readSearch() {
  const text = $("search").value.trim();
  terms = text ? [text] : [];
  if (!text) return;
  const escaped = JSON.stringify(text).slice(1, -1); // as it stands inside a JSON string
  if (escaped !== text) terms.push(escaped);
  terms = terms.map((term) => term.replaceAll("<", "\\u003c"));
}
function matcher() {
  if (!terms.length) return () => true;
  const pattern = new RegExp(terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "iu");
  return (i) => pattern.test(sources[i]) || pattern.test(previews[i]);
}

// ── Rows: events that are wanted, runs of chunks and whole turns folded into one ───────────────────────────────

let rows = [], rowOf = new Int32Array(count), lanes = [], bars = [], chosen = -1, shownCount = 0;

function rebuild() {
  readSearch();
  const keep = rows[chosen]?.i;
  const matches = matcher(), session = $("session").value, connection = $("connection").value, errors = $("errors").checked;
  const wanted = [];
  for (let i = 0; i < count; i++) {
    const event = events[i];
    if (!shownTypes.has(event.type)) continue;
    if (shownProtocols.size || protocols.length > 1) { if (event.protocol !== undefined && !shownProtocols.has(event.protocol)) continue; }
    if (errors && !isBad(event)) continue;
    if (session && event.session !== session) continue;
    if (connection && connectionOf(event) !== connection) continue;
    if (matches(i)) wanted.push(i);
  }
  shownCount = wanted.length;
  rows = folded(wanted, $("collapse").value);
  rowOf.fill(-1);
  rows.forEach((row, n) => { if (row.group) for (const i of row.group) rowOf[i] = n; });
  rows.forEach((row, n) => { rowOf[row.i] = n; });
  lanes = lanesOf(wanted);
  bars = barsOf();
  $("count").textContent = shownCount === count ? `${count.toLocaleString("en")} events` : `${shownCount.toLocaleString("en")} of ${count.toLocaleString("en")} events`;
  $("empty").hidden = rows.length > 0;
  chosen = keep === undefined ? -1 : rowOf[keep];
  measure();
  showDetails();
}

function folded(wanted, how) {
  if (how === "none") return wanted.map((i) => ({ i }));
  const out = [], open = new Map();
  for (const i of wanted) {
    const event = events[i], key = `${connectionOf(event)}|${event.session ?? ""}`, current = open.get(key);
    if (how === "turns") {
      if (event.type === "request" && event.method === "session/prompt") {
        const row = { i, group: [i], turn: true };
        open.set(key, row); out.push(row);
        continue;
      }
      if (current && event.session) {
        current.group.push(i);
        if (pair[i] === current.i) open.delete(key);
        continue;
      }
      out.push({ i });
      continue;
    }
    const kind = chunkKind(event);
    if (kind && current?.kind === kind) { current.group.push(i); continue; }
    const row = { i };
    if (kind) { row.group = [i]; row.kind = kind; open.set(key, row); } else if (event.session) open.delete(key);
    out.push(row);
  }
  const all = [];
  for (const row of out) {
    if (row.group?.length === 1) delete row.group;
    all.push(row);
    if (row.group && opened.has(row.i)) {
      row.open = true;
      for (const i of row.group) if (!(row.turn && i === row.i)) all.push({ i, inner: true, parent: row.i });
    }
  }
  return all;
}

function lanesOf(wanted) {
  const found = new Map();
  for (const i of wanted) {
    const event = events[i];
    if (!event.from) continue;
    const connection = connectionOf(event);
    if (!found.has(connection)) found.set(connection, new Set());
    found.get(connection).add(event.from).add(event.to);
  }
  const rank = (name) => name === "Client" ? 0 : name === "Agent" ? 1e6 : /^Proxy\((\d+)\)$/.test(name) ? 1 + Number(name.slice(6, -1)) : 5e5;
  const out = [];
  for (const [connection, names] of found) {
    for (const name of [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))) {
      out.push({ connection, name, many: found.size > 1 });
    }
  }
  return out;
}
const laneWidth = () => Number($("width").value);
const laneIndex = (event, name) => lanes.findIndex((lane) => lane.name === name && lane.connection === connectionOf(event));
const laneX = (index) => EDGE + PAD + laneWidth() * (index + 0.5);
const lanesWidth = () => PAD * 2 + laneWidth() * lanes.length;

function barsOf() {
  const found = [], ends = new Map();
  for (const [n, row] of rows.entries()) {
    const event = events[row.i];
    if (event.type !== "request" || (row.turn && !row.open)) continue;
    const answer = pair[row.i], to = answer >= 0 ? rowOf[answer] : rows.length - 1;
    if (to < n || (answer < 0 && to === n)) continue;
    const lane = laneIndex(event, event.to);
    if (!ends.has(lane)) ends.set(lane, []);
    const busy = ends.get(lane);
    let depth = busy.findIndex((end) => end <= n);
    if (depth < 0) depth = busy.length;
    busy[depth] = to;
    found.push({ from: n, to, lane, depth: Math.min(depth, 6), colour: COLOURS[colour[row.i]], open: answer < 0 });
  }
  return found;
}
