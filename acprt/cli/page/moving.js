// What a person does: choosing a row, reading its details, keys, filters, themes.

// ── Details ────────────────────────────────────────────────────────────────────────────────────────────────────

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g;
function coloured(text) {
  const pre = element("pre");
  if (text.length > 200_000) { pre.textContent = text; return pre; } // a span for each value would be slow
  let at = 0;
  for (const found of text.matchAll(TOKENS)) {
    pre.append(text.slice(at, found.index));
    at = found.index + found[0].length;
    const isKey = found[2] !== undefined;
    pre.append(element("span", isKey ? "k" : found[1] ? "s" : "n", found[1] ?? found[0]));
    if (isKey) pre.append(found[2]);
  }
  pre.append(text.slice(at));
  return pre;
}

function showDetails() {
  const box = $("details");
  const isOpen = chosen >= 0;
  box.hidden = $("divider").hidden = !isOpen;
  if (!isOpen) { box.replaceChildren(); return; }
  const row = rows[chosen], event = events[row.i];
  const close = element("button", "close", "✕");
  close.title = "Close (Esc)";
  close.setAttribute("aria-label", "Close the details");
  close.addEventListener("click", () => choose(-1));
  const list = element("dl");
  const fact = (name, value, className) => {
    if (value === undefined || value === "" || value === null) return;
    list.append(element("dt", "", name), element("dd", className, String(value)));
  };
  const nodes = [close, element("h2", isBad(event) ? "bad" : "", `${event.type} ${row.group && !row.turn ? row.kind : event.method ?? event.event ?? ""}`)];
  fact("from, to", event.from ? `${event.from} → ${event.to}` : "");
  fact("id", event.id === undefined ? undefined : JSON.stringify(event.id));
  fact("session", event.session);
  fact("connection", event.connection === undefined ? undefined : `${event.connection} (pid ${event.pid})`);
  fact("protocol", event.protocol);
  fact("via", event.via);
  fact("time", event.time ? `${new Date(event.time * 1000).toISOString()}, ${event.ts} s after the start` : undefined);
  fact("size", event.size === undefined ? undefined : bytes(event.size));
  const other = pair[row.i];
  fact("latency", event.type === "response" && event.latency !== undefined ? seconds(event.latency) : other >= 0 ? seconds(events[other].latency) : event.type === "request" ? "unanswered" : undefined);
  fact("events here", row.group?.length);
  fact("cut", event.cut ? `${event.cut} long values` : undefined);
  fact("masked", event.masked ? "secrets" : undefined);
  fact("error", event.error, "bad");
  nodes.push(list);
  const actions = element("div", "actions");
  if (other >= 0) {
    const jump = element("button", "jump", event.type === "request" ? "→ response (p)" : "← request (p)");
    jump.addEventListener("click", jumpToPair);
    actions.append(jump);
  }
  const isText = row.group && !row.turn;
  const content = isText ? row.group.map((i) => textOf(events[i])).join("") : event.params ?? event.payload ?? event.text;
  const text = typeof content === "string" ? content : content === undefined ? "" : JSON.stringify(content, null, 2);
  const copy = element("button", "copy", isText ? "Copy text" : "Copy record");
  copy.addEventListener("click", () => navigator.clipboard?.writeText(isText ? text : JSON.stringify(event)));
  actions.append(copy);
  nodes.push(actions, typeof content === "string" ? Object.assign(element("pre"), { textContent: text }) : coloured(text));
  box.replaceChildren(...nodes);
  box.scrollTop = 0;
}

// ── Moving about ───────────────────────────────────────────────────────────────────────────────────────────────

function choose(n) {
  chosen = n < 0 ? -1 : Math.min(n, rows.length - 1);
  if (chosen >= 0) {
    const y = chosen * ROW, room = scroll.clientHeight - 40;
    if (y < scroll.scrollTop) scroll.scrollTop = y;
    else if (y + ROW > scroll.scrollTop + room) scroll.scrollTop = y + ROW - room;
  } else scroll.focus();
  draw();
  showDetails();
}
function reveal(i) { // opens the fold that hides an event
  const hiding = rows[rowOf[i]];
  if (rowOf[i] >= 0 && hiding.i !== i && hiding.group && !hiding.open) { opened.add(hiding.i); rebuild(); }
  if (rowOf[i] >= 0) choose(rowOf[i]);
}
function jumpToPair() { if (chosen >= 0 && pair[rows[chosen].i] >= 0) reveal(pair[rows[chosen].i]); }
function toggle(n, open) {
  const row = rows[n];
  if (!row) return;
  const head = row.group ? row.i : row.inner ? row.parent : undefined;
  if (head === undefined || (open !== undefined && open === opened.has(head))) return;
  opened[opened.has(head) ? "delete" : "add"](head);
  rebuild();
  const at = rows.findIndex((each) => each.i === head && each.group);
  if (at >= 0) choose(at);
}
function nextBad(step) {
  for (let n = chosen + step; n >= 0 && n < rows.length; n += step) {
    if (hasBad(rows[n])) { choose(n); return; }
  }
}
const THEMES = ["auto", "light", "dark"];
function nextTheme() {
  const now = document.documentElement.dataset.theme ?? "auto", next = THEMES[(THEMES.indexOf(now) + 1) % 3];
  if (next === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
  $("theme").textContent = `theme: ${next}`;
}
function nextCollapse() {
  const select = $("collapse");
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  rebuild();
}

const page = () => Math.max(1, Math.floor((scroll.clientHeight - 40) / ROW) - 1);
const KEYS = {
  j: () => choose(chosen + 1), ArrowDown: () => choose(chosen + 1),
  k: () => choose(Math.max(0, chosen - 1)), ArrowUp: () => choose(Math.max(0, chosen - 1)),
  PageDown: () => choose(Math.max(0, chosen) + page()), PageUp: () => choose(Math.max(0, chosen - page())),
  Home: () => choose(0), End: () => choose(rows.length - 1), g: () => choose(0), G: () => choose(rows.length - 1),
  p: jumpToPair, n: () => nextBad(1), N: () => nextBad(-1),
  e: () => toggle(chosen), ArrowRight: () => toggle(chosen, true), ArrowLeft: () => toggle(chosen, false),
  Enter: () => { if (chosen < 0) choose(0); $("details").focus(); },
  "/": () => $("search").focus(), c: nextCollapse, t: nextTheme, "?": () => $("help").showModal(),
  Escape: () => choose(-1),
};
document.addEventListener("keydown", (press) => {
  if (press.ctrlKey || press.metaKey || press.altKey || $("help").open) return;
  const target = press.target;
  if (target === $("search")) {
    if (press.key === "Escape") { target.value = ""; rebuild(); scroll.focus(); press.preventDefault(); }
    if (press.key === "Enter" || press.key === "ArrowDown") { rebuild(); scroll.focus(); choose(0); press.preventDefault(); }
    return;
  }
  const inControl = target instanceof HTMLElement && target.closest("select, input, button, #divider");
  const inDetails = target instanceof HTMLElement && target.closest("#details");
  if (inControl && (press.key.startsWith("Arrow") || press.key === "Enter" || press.key === "Home" || press.key === "End" || press.key === " ")) return;
  if (inDetails && ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"].includes(press.key)) return;
  const act = rows.length || ["/", "c", "t", "?"].includes(press.key) ? KEYS[press.key] : undefined;
  if (act) { press.preventDefault(); act(); }
});
rowsBox.addEventListener("click", (click) => {
  const node = click.target.closest(".row");
  if (!node) return;
  const n = Number(node.dataset.row);
  if (click.target.closest(".fold")) toggle(n); else choose(n);
});
rowsBox.addEventListener("dblclick", (click) => { const node = click.target.closest(".row"); if (node) toggle(Number(node.dataset.row)); });

let waiting = 0, frame = 0;
$("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(rebuild, count > 5000 ? 150 : 30); });
for (const id of ["errors", "collapse", "session", "connection"]) $(id).addEventListener("change", rebuild);
$("width").addEventListener("input", measure);
$("theme").addEventListener("click", nextTheme);
$("keys").addEventListener("click", () => $("help").showModal());
scroll.addEventListener("scroll", () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(draw); });
new ResizeObserver(draw).observe(scroll);

const divider = $("divider"), resize = (width) => { $("details").style.width = `${Math.max(220, width)}px`; };
divider.addEventListener("pointerdown", (down) => { divider.setPointerCapture(down.pointerId); });
divider.addEventListener("pointermove", (move) => { if (divider.hasPointerCapture(move.pointerId)) resize(window.innerWidth - move.clientX); });
divider.addEventListener("keydown", (press) => {
  const step = { ArrowLeft: 30, ArrowRight: -30 }[press.key];
  if (step) { resize($("details").offsetWidth + step); press.preventDefault(); }
});

rebuild();
scroll.focus();
