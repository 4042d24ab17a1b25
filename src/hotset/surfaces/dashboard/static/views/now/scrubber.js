// All turns of a session: a small timeline, and the controls that move over it.
import { html, number, tokens, useCallback, useEffect, useRef } from "../../lib.js";
import { causeOf } from "./words.js";

const HIGH = 64;
const EDGE = 8; // half of the slider's thumb: bars and thumb stand above each other
const STEP_MS = 900;
const MARKS = { evicted: ["--bad", "something left the window"], retrieved: ["--ours", "the model asked for something back"], bypassed: ["--warn", "sent unchanged, without hotset"], broke: ["--dim", "the cached part changed, so it was paid for again"], ordered: ["--accent", "you ordered something"], handoff: ["--system", "the work was handed over to a fresh window"] };

export const markText = (mark) => {
  const many = mark.tokens ? ` (${tokens(mark.tokens)} tokens)` : "";
  return `${MARKS[mark.name]?.[1] ?? mark.name}${many}`;
};

function shape(pen, name, x, y) {
  pen.beginPath();
  if (name === "evicted") { pen.moveTo(x - 4, y - 4); pen.lineTo(x + 4, y - 4); pen.lineTo(x, y + 4); }
  else if (name === "retrieved") { pen.moveTo(x - 4, y + 4); pen.lineTo(x + 4, y + 4); pen.lineTo(x, y - 4); }
  else if (name === "bypassed") { pen.rect(x - 3.5, y - 3.5, 7, 7); }
  else if (name === "broke") { pen.rect(x - 1, y - 5, 2, 10); }
  else { pen.arc(x, y, 3.5, 0, 7); }
  pen.fill();
}

function paint(canvas, line, turn) {
  const wide = canvas.clientWidth;
  if (!wide) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = wide * ratio; canvas.height = HIGH * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const count = line.turns.length;
  const floor = HIGH - 14;
  const room = wide - 2 * EDGE;
  const most = Math.max(1, ...line.sent, ...line.whole);
  const at = (index) => (count > 1 ? EDGE + (index / (count - 1)) * room : wide / 2);
  const bar = Math.max(1, Math.min(14, (room / Math.max(1, count - 1)) - 1));
  const columns = new Map(); // of many turns, the highest for each pixel
  line.turns.forEach((_, index) => {
    const x = count > room ? Math.round(at(index)) : at(index);
    const known = columns.get(x) ?? [0, 0];
    columns.set(x, [Math.max(known[0], line.sent[index]), Math.max(known[1], line.whole[index])]);
  });
  for (const [x, [sent, whole]] of columns) {
    const left = Math.max(0, Math.min(wide - bar, x - bar / 2));
    pen.globalAlpha = 0.45;
    pen.fillStyle = colour("--dim");
    pen.fillRect(left, floor - (whole / most) * (floor - 4), bar, (whole / most) * (floor - 4));
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--accent");
    pen.fillRect(left, floor - (sent / most) * (floor - 4), bar, Math.max(1, (sent / most) * (floor - 4)));
  }
  const places = new Map(line.turns.map((each, index) => [each, index]));
  for (const mark of line.marks) {
    if (!places.has(mark.turn)) continue;
    pen.fillStyle = colour(MARKS[mark.name]?.[0] ?? "--dim");
    shape(pen, mark.name, at(places.get(mark.turn)), HIGH - 7);
  }
  const here = places.get(turn);
  if (here !== undefined) {
    pen.strokeStyle = colour("--ink"); pen.lineWidth = 2;
    pen.strokeRect(Math.max(1, at(here) - Math.max(bar, 4) / 2 - 1), 1, Math.max(bar, 4) + 2, floor);
  }
}

export default function Scrubber({ line, turn, isLatest, playing, onGo, onPlay }) {
  const canvas = useRef(null);
  const turns = line.turns;
  const index = Math.max(0, turns.indexOf(turn));
  useEffect(() => {
    const again = () => canvas.current && paint(canvas.current, line, turn);
    again();
    const watch = new ResizeObserver(again);
    watch.observe(canvas.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", again);
    return () => { watch.disconnect(); scheme.removeEventListener("change", again); };
  }, [line, turn]);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      if (index >= turns.length - 1) onPlay(false);
      else onGo(turns[index + 1]);
    }, STEP_MS);
    return () => clearInterval(timer);
  }, [playing, index, turns, onGo, onPlay]);
  const click = useCallback((event) => {
    const share = (event.offsetX - EDGE) / Math.max(1, event.target.clientWidth - 2 * EDGE);
    onGo(turns[Math.round(Math.max(0, Math.min(1, share)) * (turns.length - 1))]);
  }, [turns, onGo]);
  const here = line.marks.filter((each) => each.turn === turn);
  const says = `turn ${turn} of ${turns.at(-1) ?? turn}, ${number(line.sent[index])} tokens sent of ${number(line.whole[index])}${here.map((each) => `; ${markText(each)}`).join("")}`;
  const shown = [...new Set(line.marks.map((each) => each.name))];
  return html`<section class="card scrubber" aria-label="turns">
    <div class="row">
      <strong>Turn ${number(turn)} of ${number(line.last)}</strong>
      ${isLatest ? html`<span class="tag">latest, follows live</span>` : html`<button type="button" onClick=${() => onGo(line.last)}>Back to the latest</button>`}
      <span class="spring"></span>
      <span class="row tight">
        <button type="button" disabled=${index <= 0} onClick=${() => onGo(turns[index - 1])} aria-label="previous turn">◀</button>
        <button type="button" aria-pressed=${playing} disabled=${turns.length < 2} onClick=${() => { if (!playing && index >= turns.length - 1) onGo(turns[0]); onPlay(!playing); }}>${playing ? "Pause" : "Play"}</button>
        <button type="button" disabled=${index >= turns.length - 1} onClick=${() => onGo(turns[index + 1])} aria-label="next turn">▶</button>
      </span>
    </div>
    <canvas class="timeline" ref=${canvas} onClick=${click} aria-hidden="true"></canvas>
    <input type="range" min="0" max=${Math.max(0, turns.length - 1)} value=${index} disabled=${turns.length < 2} aria-label="turn" aria-valuetext=${says}
      onInput=${(event) => onGo(turns[Number(event.target.value)])} />
    <p class="dim small legend"><span class="key"><i class="swatch flat accent"></i>sent by hotset</span><span class="key"><i class="swatch flat line"></i>sent by your client</span>
      ${shown.map((name) => html`<span class="key"><i class=${`mark ${name}`}></i>${MARKS[name]?.[1] ?? name}</span>`)}</p>
    ${here.length > 0 && html`<p class="small">In this turn: ${here.map(markText).join("; ")}${here.some((each) => each.cause) ? ` – ${[...new Set(here.map((each) => causeOf(each.cause)).filter(Boolean))].join(", ")}` : ""}.</p>`}
  </section>`;
}
