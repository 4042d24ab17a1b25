// What the last search found: everything it tried as points, and the change that a click puts in force or takes back.
import { ActButton, Empty, Loaded, Table, html, moment, percent, plural, useApi } from "../../lib.js";
import { shown } from "./words.js";

const WIDE = 460;
const HIGH = 320;
const NAMES = { memory: "Recalling memories", history: "Searching earlier turns", window: "What is shown, and what leaves" };

/** What was tried, as points: further left is cheaper, lower is better. */
function Front({ part }) {
  const every = part.points.map((each) => [each.spent, 1 - each.task]);
  const scale = (values, begin, end) => {
    const low = Math.min(...values); const high = Math.max(...values); const around = 0.08 * Math.max(0.01, high - low);
    return { low: low - around, high: high + around, at: (value) => begin + ((value - low + around) / (high - low + 2 * around || 1)) * (end - begin) };
  };
  const across = scale(every.map(([x]) => x), 58, WIDE - 16);
  const up = scale(every.map(([, y]) => y), HIGH - 48, 24);
  const steps = [0, 1, 2, 3, 4].map((step) => step / 4);
  const place = (each) => [across.at(each.spent), up.at(1 - each.task)];
  const [now] = part.points;
  return html`<svg viewBox=${`0 0 ${WIDE} ${HIGH}`} role="img" aria-label=${`${plural(part.points.length, "configuration")} by cost and by what went wrong; ${part.front.length} are on the front, which the table below lists`}>
      ${steps.map((step) => { const x = across.low + step * (across.high - across.low); return html`<line x1=${across.at(x)} x2=${across.at(x)} y1="24" y2=${HIGH - 48} stroke="var(--line)" /><text x=${across.at(x)} y=${HIGH - 32} text-anchor="middle">${(100 * x).toFixed(1)}</text>`; })}
      ${steps.map((step) => { const y = up.low + step * (up.high - up.low); return html`<line x1="58" x2=${WIDE - 16} y1=${up.at(y)} y2=${up.at(y)} stroke="var(--line)" /><text x="52" y=${up.at(y) + 4} text-anchor="end">${(100 * y).toFixed(1)}</text>`; })}
      <text x=${WIDE - 16} y=${HIGH - 10} text-anchor="end">← cheaper: ${part.across}</text><text x="8" y="13">${part.up}: lower is better ↓</text>
      ${part.points.slice(1).map((each) => html`<circle cx=${place(each)[0]} cy=${place(each)[1]} r="2.5" fill="var(--thinking)" />`)}
      <polyline points=${part.front.map((each) => place(each).join(",")).join(" ")} fill="none" stroke="var(--good)" stroke-width="1.5" />
      ${part.front.map((each) => html`<circle cx=${place(each)[0]} cy=${place(each)[1]} r="4" fill="var(--good)"><title>${Object.keys(each.knobs).length ? shown(each.knobs) : "in force"}</title></circle>`)}
      <circle cx=${place(now)[0]} cy=${place(now)[1]} r="6" fill="none" stroke="var(--ink)" stroke-width="2" /><text class="now" x=${Math.min(place(now)[0] + 9, WIDE - 110)} y=${place(now)[1] - 8}>when searched</text>
    </svg>
    <${Table} caption="On the front: nothing that was tried is better in both" rows=${part.front} keyOf=${(row, at) => at} columns=${[{ title: "Went well", right: true, cell: (row) => percent(row.task, 1) }, { title: "Spent", right: true, cell: (row) => percent(row.spent, 1) }, { title: "What it changes", cell: (row) => (Object.keys(row.knobs).length ? shown(row.knobs) : "nothing: as it was") }]} />`;
}

function Found({ change, order }) {
  const adopt = { act: "adopt", changes: [change.id] };
  const revert = { act: "revert", changes: [change.id] };
  const [word, tone] = change.in_force ? ["in force", "good"] : change.passed ? ["can be adopted", "warn"] : ["not adopted: not shown to be better", ""];
  return html`<p><span class=${`chip ${tone}`}>${change.passed && !change.in_force && change.refusal ? "cannot be adopted now" : word}</span> <code>${change.id}</code></p>
    <ul class="plain">${Object.entries(change.knobs).map(([name, value]) => html`<li><del>${shown(change.before[name])}</del> → <ins>${shown(value)}</ins> <span class="dim">${name}</span></li>`)}</ul>
    ${change.refusal ? html`<p class="warn">${change.refusal}</p>`
      : change.in_force ? html`<div class="row"><${ActButton} label="Take back" sure="New sessions get the knobs from before." onAct=${() => order(revert, adopt)} /></div>`
        : change.passed && html`<div class="row"><${ActButton} label="Adopt" sure="New sessions get it; open ones keep what they have." onAct=${() => order(adopt, revert)} /></div>`}`;
}

const Part = ({ part, order }) => html`<section class="card front"><h2>${NAMES[part.part] ?? part.part} <span class="dim">${part.part}</span></h2>
  <p>${plural(part.tried, "configuration")} tried on ${plural(part.searched, "session")}, the best one told on ${plural(part.held_out, "later one")}${part.looks > 1 ? `, which ${part.looks} results were compared on` : ""}. <span class=${part.change?.passed ? "good" : "dim"}>${part.why}</span></p>
  ${part.change && html`<${Found} change=${part.change} order=${order} />`}
  ${part.points.length > 0 && html`<${Front} part=${part} />`}</section>`;

export const Evolution = ({ again, order }) => html`<${Loaded} state=${useApi("learning/evolution", {}, again)}>${(found) => (found.parts.length + found.earlier.length === 0
  ? html`<${Empty}>No search is kept. <code>hotset evolve</code> searches better knobs on your recorded sessions, without a model.<//>`
  : html`<p>Searched on ${moment(found.time)}. Each point is a set of knobs; the green ones are the front. Nothing changes before you adopt it.</p>
    <div class="two">${found.parts.map((part) => html`<${Part} key=${part.part} part=${part} order=${order} />`)}</div>
    ${found.earlier.length > 0 && html`<h2>From earlier searches</h2><p class="dim">They passed, and nothing better was found since.</p><div class="two">${found.earlier.map((part) => html`<${Part} key=${part.part} part=${part} order=${order} />`)}</div>`}`)}<//>`;
