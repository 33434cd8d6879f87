// The texts of `script.py` for the peers on Node: the same commands, and lines of the same length.
export const SESSION_ID = "sess_0123456789ab";
export const PROMPT_TEXT = "Add a test for the parser, ok?";
export const UPDATE_MASK = 1023;
export const UPDATE_TEXTS = Array.from(
  { length: UPDATE_MASK + 1 },
  (_, i) => `${String(i).padStart(5, "0")} the quick brown fox jumps over it....`,
);
export const PARKED = "all prompts are parked";
export const CALL = { toolCallId: "call_01234567", title: "Write to the parser" };
export const OPTIONS = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];

const padded = (text) => text.padEnd(PROMPT_TEXT.length, ".");
export const CALL_TEXT = padded("call 1 ");
export const parkText = (count) => padded(`park ${count} `);
export const napText = (milliseconds) => padded(`nap ${milliseconds} `);
export const updatesText = (count) => `updates ${count}`;
export const echoText = (size) => "echo ".padEnd(size, "x");

export function commandOf(text) {
  if (text === PROMPT_TEXT) return ["answer", 0];
  if (text.startsWith("echo")) return ["echo", 0];
  if (/^(updates|park|nap|call)/.test(text)) {
    const [command, number] = text.split(" ", 2);
    return [command, Number(number)];
  }
  return ["answer", 0];
}

// What every agent does with a prompt. `peer` has update(text), ask() and held(): a promise that a cancel settles.
let parked = 0;
export async function obey(text, peer) {
  const [command, number] = commandOf(text);
  if (command === "echo") await peer.update(text);
  else if (command === "updates") {
    for (let i = 0; i < number; i++) await peer.update(UPDATE_TEXTS[i & UPDATE_MASK]);
  } else if (command === "park") {
    parked += 1;
    if (parked % number === 0) await peer.update(PARKED);
    await peer.held();
  } else if (command === "nap") await new Promise((resolve) => setTimeout(resolve, number));
  else if (command === "call") await peer.ask();
}
