// The sequence diagram: only what can be seen is drawn. What peers wrote becomes text, never markup.

const scroll = $("scroll"), space = $("space"), rowsBox = $("rows"), drawing = $("drawing");
const SVG = "http://www.w3.org/2000/svg";
const shape = (name, attributes) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const element = (name, className, text) => {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

function measure() {
  const width = EDGE + lanesWidth() + 420;
  space.style.height = `${rows.length * ROW}px`;
  space.style.width = `max(100%, ${width}px)`;
  const head = $("lanes");
  head.style.width = `max(100%, ${width}px)`;
  head.replaceChildren(...lanes.map((lane, n) => {
    const box = element("div", "lane", lane.name);
    box.style.left = `${laneX(n) - laneWidth() / 2 + 6}px`;
    box.style.width = `${laneWidth() - 12}px`;
    if (lane.many) box.append(element("small", "", lane.connection.replace(/@\d+$/, "")));
    box.title = lane.connection.replace(/@(\d+)$/, " (pid $1)");
    return box;
  }));
  draw();
}

function draw() {
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + OVERSCAN);
  const partner = chosen >= 0 && pair[rows[chosen].i] >= 0 ? rowOf[pair[rows[chosen].i]] : -1;
  const nodes = [], shapes = [];
  const top = first * ROW, height = (last - first) * ROW;
  lanes.forEach((lane, n) => shapes.push(shape("line", { class: "life", x1: laneX(n), x2: laneX(n), y1: 0, y2: height })));
  for (const bar of bars) {
    if (bar.to < first || bar.from > last) continue;
    const from = (Math.max(bar.from, first) - first) * ROW + (bar.from >= first ? ROW / 2 + 5 : 0);
    const to = (Math.min(bar.to, last) - first) * ROW + ROW / 2 + 5;
    shapes.push(shape("rect", {
      class: bar.open ? "bar open" : "bar", x: laneX(bar.lane) - 3 + bar.depth * 5, y: from, width: 6, height: Math.max(2, to - from),
      rx: 2, fill: bar.colour, "fill-opacity": bar.open ? 0.25 : 0.55,
    }));
  }
  for (let n = first; n < last; n++) {
    nodes.push(rowNode(n, n === partner));
    arrow(shapes, n, (n - first) * ROW);
  }
  rowsBox.replaceChildren(...nodes);
  drawing.setAttribute("width", EDGE + lanesWidth());
  drawing.setAttribute("height", height);
  drawing.style.transform = `translateY(${top}px)`;
  drawing.replaceChildren(...shapes);
  if (chosen >= first && chosen < last) scroll.setAttribute("aria-activedescendant", `row-${chosen}`);
  else scroll.removeAttribute("aria-activedescendant");
}

function labelOf(row) {
  const event = events[row.i];
  if (row.turn) return "turn";
  if (row.group) return `${row.kind} ×${row.group.length}`;
  const kind = updateOf(event)?.sessionUpdate;
  return kind ?? event.method ?? event.type;
}

function arrow(shapes, n, y) {
  const row = rows[n], event = events[row.i];
  if (!event.from) return;
  const from = laneX(laneIndex(event, event.from)), to = laneX(laneIndex(event, event.to));
  const ink = isBad(event) ? "var(--bad)" : colour[row.i] >= 0 ? COLOURS[colour[row.i]] : "var(--faint)";
  const middle = y + ROW / 2 + 5;
  if (event.type === "stderr" || event.type === "process") {
    shapes.push(shape("circle", { cx: from, cy: y + ROW / 2, r: 5, fill: ink }));
    return;
  }
  const way = to > from ? 1 : -1, tip = to - way * 5;
  shapes.push(shape("line", {
    class: "arrow", x1: from + way * 4, x2: tip, y1: middle, y2: middle, stroke: ink, "stroke-width": row.group ? 3 : 1.6,
    ...(event.type === "response" ? { "stroke-dasharray": "5 3" } : {}),
  }));
  shapes.push(shape("path", { d: `M ${tip} ${middle - 4} L ${tip + way * 7} ${middle} L ${tip} ${middle + 4} z`, fill: ink }));
  if (event.type === "malformed") shapes.push(shape("path", { d: `M ${(from + to) / 2 - 4} ${middle - 4} l 8 8 m 0 -8 l -8 8`, stroke: ink, "stroke-width": 2 }));
  const room = Math.max(4, Math.floor((Math.abs(to - from) - 24) / 6));
  let label = labelOf(row);
  if (label.length > room) label = `${label.slice(0, room - 1)}…`;
  shapes.push(shape("rect", { class: "label-back", x: (from + to) / 2 - label.length * 3 - 3, y: y + 3, width: label.length * 6 + 6, height: 13 }));
  const text = shape("text", { x: (from + to) / 2, y: middle - 6, "text-anchor": "middle" });
  text.textContent = label;
  shapes.push(text);
}

function describe(row) {
  if (row.turn) {
    const answer = pair[row.i], inside = row.group.map((i) => events[i]);
    const chunks = inside.filter(chunkKind).length, tools = inside.filter((event) => updateOf(event)?.sessionUpdate === "tool_call").length;
    const end = answer >= 0 ? previews[answer] : "unanswered";
    return `${previews[row.i]} → ${end} · ${many(row.group.length, "event")}${chunks ? `, ${many(chunks, "chunk")}` : ""}${tools ? `, ${many(tools, "tool call")}` : ""}`;
  }
  if (!row.group) {
    const kind = `${labelOf(row)}: `; // the arrow says it already
    return previews[row.i].startsWith(kind) ? previews[row.i].slice(kind.length) : previews[row.i];
  }
  let text = "";
  for (const i of row.group) { text += textOf(events[i]); if (text.length > 400) break; }
  return text.replace(/\s+/g, " ");
}

function marked(node, text) {
  const term = $("search").value.trim().toLowerCase();
  const at = term ? text.toLowerCase().indexOf(term) : -1;
  if (at < 0) { node.append(text); return; }
  node.append(text.slice(0, at), element("mark", "", text.slice(at, at + term.length)), text.slice(at + term.length));
}

const hasBad = (row) => isBad(events[row.i]) || (!row.open && row.group?.some((i) => isBad(events[i])));
function rowNode(n, isPartner) {
  const row = rows[n], event = events[row.i];
  const node = element("div", `row ${event.type}`);
  node.id = `row-${n}`;
  node.dataset.row = n;
  node.style.top = `${n * ROW}px`;
  node.setAttribute("role", "option");
  node.setAttribute("aria-selected", String(n === chosen));
  node.setAttribute("aria-posinset", n + 1);
  node.setAttribute("aria-setsize", rows.length);
  if (hasBad(row)) node.classList.add("bad");
  if (isPartner) node.classList.add("partner");
  if (row.inner) node.classList.add("inner");
  node.append(element("span", "time", clock(event)));
  const before = n ? moment(event) - moment(events[rows[n - 1].i]) : 0;
  node.append(element("span", "delta", n && before > 0 ? `+${seconds(before)}` : ""));
  const gap = element("span", "gap");
  gap.style.width = `${lanesWidth()}px`;
  node.append(gap);
  const what = element("span", "what");
  if (row.group) {
    const fold = element("button", "fold", row.open ? "▾" : "▸");
    fold.type = "button";
    fold.tabIndex = -1;
    fold.setAttribute("aria-label", row.open ? "collapse" : "expand");
    node.setAttribute("aria-expanded", String(Boolean(row.open)));
    what.append(fold, element("span", "badge", row.turn ? `turn, ${many(row.group.length, "event")}` : many(row.group.length, "chunk")));
  }
  if (event.id !== undefined && !row.group) what.append(element("span", "id", `#${event.id}`));
  if (event.batch) what.append(element("span", "badge", `batch ${event.batch[0] + 1}/${event.batch[1]}`));
  if (event.via) what.append(element("span", "badge", event.via));
  marked(what, describe(row));
  node.append(what);
  node.setAttribute("aria-label", `${event.type} ${labelOf(row)}, ${event.from ?? ""} to ${event.to ?? ""}: ${previews[row.i]}`);
  const answer = event.type === "request" ? pair[row.i] : -1;
  const latency = event.type === "response" ? event.latency : row.turn && answer >= 0 ? events[answer].latency : undefined;
  const took = element("span", "took", latency !== undefined && latency !== null ? seconds(latency) : event.type === "request" && answer < 0 ? "unanswered" : "");
  if (latency > SLOW) took.classList.add("slow");
  node.append(took);
  return node;
}
