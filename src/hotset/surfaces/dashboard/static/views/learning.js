// What was learned: each change with why, what it saved and how to undo it; profiles compared; beliefs; the last search.
import {
  ActButton, Empty, Figure, Loaded, Plot, Table, ago, html, moment, number, percent, plural, useApi, useState, useStyle,
} from "../lib.js";
import { Choice, Parts, useOrders } from "../parts.js";

export const title = "Learning";

const STAGES = { adopted: ["in force", "good"], trial: ["on trial", "warn"], proposed: ["proposed", ""], rejected: ["not better, dropped", ""], rolled_back: ["taken back", "bad"] };
const FIGURES = { success: "success", cost: "cost", turns: "turns", corrections: "corrections", rereads: "things read again" };
const CERTAIN = 5; // comparisons below which an interval says nothing
const shown = (value) => (value === null || value === undefined ? "default" : typeof value === "object" ? Object.entries(value).map(([name, each]) => `${name} ${shown(each)}`).join(", ") : typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value));
const signed = (value) => `${value >= 0 ? "+" : "−"}${(100 * Math.abs(value)).toFixed(1)} %`;

function Change({ row, order, setQuery }) {
  const [word, tone] = STAGES[row.stage] ?? [row.stage, ""];
  const byEvolution = row.undo.startsWith("hotset evolve");
  return html`<article class="card"><h2>${Object.keys(row.knobs).map((name, at) => html`${at ? ", " : ""}<button type="button" class="link" onClick=${() => setQuery({ knob: name })}>${name}</button>`)} <span class=${`chip ${tone}`}>${word}</span></h2>
    <ul class="plain">${Object.entries(row.knobs).map(([name, value]) => html`<li><del>${shown(row.before[name])}</del> → <ins>${shown(value)}</ins> <span class="dim">${name}</span></li>`)}</ul>
    <dl class="facts"><dt>Why</dt><dd>${row.why}</dd>${row.evidence && row.evidence !== row.why && html`<dt>Evidence</dt><dd>${row.evidence}</dd>`}
      <dt>Since</dt><dd>${moment(row.since)} (${ago(row.since)}), by ${row.by}</dd>
      ${row.sessions > 0 && html`<dt>Saved so far</dt><dd>${number(row.saved)} input tokens' worth in ${plural(row.sessions, "session")} <span class="dim">(estimated)</span></dd>`}</dl>
    ${row.undo && (byEvolution ? html`<p class="dim">To undo it: <code>${row.undo}</code></p>`
      : html`<${ActButton} label="Undo" sure="New sessions get the default again; what helps can be learned again." onAct=${() => order({ act: "reset", knobs: Object.keys(row.knobs) })} />`)}</article>`;
}

function Knob({ name, setQuery, order, again, status }) {
  const state = useApi(`learning/knob/${encodeURIComponent(name)}`, {}, again);
  const isFrozen = status.all_frozen || name in status.frozen;
  return html`<section class="card"><h2>${name}</h2><${Loaded} state=${state}>${(found) => html`
    <p><strong>${shown(found.value)}</strong> <span class="dim">(default: ${shown(found.default)})</span> – ${found.why}</p>
    <div class="row"><${ActButton} label=${isFrozen ? "Unfreeze" : "Freeze"} title=${isFrozen ? "Learning may change it again" : "Nothing learned changes it from now on"} onAct=${() => order({ act: isFrozen ? "unfreeze" : "freeze", knobs: [name] })} />
      ${found.changes.length > 0 && html`<${ActButton} label="Reset" sure="What was learned about it is taken back for good." onAct=${() => order({ act: "reset", knobs: [name] })} />`}
      <button type="button" onClick=${() => setQuery({ knob: "" })}>Close</button></div>`}<//></section>`;
}

/** An interval around nothing: where it does not cross the middle, a difference is shown. */
function Interval({ each }) {
  const wide = Math.max(0.05, Math.abs(each.low), Math.abs(each.high));
  const at = (value) => 100 + (95 * Math.max(-wide, Math.min(wide, value))) / wide;
  const isShown = each.pairs >= CERTAIN && (each.low > 0 || each.high < 0);
  return html`<svg class="interval" viewBox="0 0 200 14" aria-hidden="true"><line x1="100" x2="100" y1="0" y2="14" stroke="var(--dim)" /><line x1=${at(each.low)} x2=${at(each.high)} y1="7" y2="7" stroke=${isShown ? "var(--accent)" : "var(--thinking)"} stroke-width="4" /><circle cx=${at(each.mean)} cy="7" r="4" fill=${isShown ? "var(--accent)" : "var(--thinking)"} /></svg>`;
}

function Trial({ data, order }) {
  const [arm, setArm] = useState("");
  const [share, setShare] = useState("10");
  const names = data.profiles.filter((each) => each.name !== "default").map((each) => each.name);
  const chosen = arm || names[0] || "";
  return html`<section><p>A share of new sessions gets another profile, at random and for good; the default is what the others get. <code>off</code> lets requests go out untouched: a control on your own work.</p>
    <${Table} caption="Profiles compared: what their sessions came to" rows=${data.status.arms} keyOf=${(row) => row.name} columns=${[
      { title: "Profile", cell: (row) => row.name }, { title: "Share of new sessions", right: true, cell: (row) => percent(row.share) }, { title: "Sessions", right: true, cell: (row) => number(row.sessions) },
      { title: "Success", right: true, cell: (row) => percent(row.success) }, { title: "Cost of full history's", right: true, cell: (row) => percent(row.cost) },
      { title: "Turns", right: true, cell: (row) => (row.sessions ? row.turns.toFixed(1) : "–") }, { title: "Corrections", right: true, cell: (row) => (row.sessions ? row.corrections.toFixed(2) : "–") },
      { title: "Decide", cell: (row) => row.name !== "default" && row.share > 0 && html`<${ActButton} label="End the trial" onAct=${() => order({ act: "trial", shares: { [row.name]: 0 } })} />` },
    ]} />
    ${data.status.arms.flatMap((row) => row.differences.map((each) => ({ ...each, arm: row.name }))).length > 0 && html`<${Table} caption="Against the default; an interval that does not cross the middle shows a difference" rows=${data.status.arms.flatMap((row) => row.differences.map((each) => ({ ...each, arm: row.name })))} keyOf=${(row) => row.arm + row.figure} columns=${[
      { title: "Profile", cell: (row) => row.arm }, { title: "Figure", cell: (row) => FIGURES[row.figure] ?? row.figure }, { title: "Difference", cell: (row) => html`${signed(row.mean)} <span class="dim">[${signed(row.low)}, ${signed(row.high)}]</span>` },
      { title: "less | more", cell: (row) => html`<${Interval} each=${row} />` }, { title: "Says", cell: (row) => (row.pairs < CERTAIN ? "too few sessions to tell" : row.low > 0 || row.high < 0 ? "shown" : "not shown to differ") },
    ]} />`}
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><${Choice} label="Try the profile" value=${chosen} onChoose=${setArm} choices=${names.map((name) => [name, name])} />
      <${Choice} label="with" value=${share} onChoose=${setShare} choices=${["10", "20", "30", "50"].map((each) => [each, `${each} % of new sessions`])} />
      <${ActButton} label="Start" disabled=${!chosen} onAct=${() => order({ act: "trial", shares: { [chosen]: Number(share) / 100 } })} /></form>
    <h2>What the profiles change</h2><${Table} caption="Profiles; your own are [profiles.NAME] in config.toml" rows=${data.profiles} keyOf=${(row) => row.name} columns=${[
      { title: "Profile", cell: (row) => row.name }, { title: "From", cell: (row) => (row.by === "file" ? "your file" : "hotset") }, { title: "Changes", cell: (row) => (row.name === "off" ? "requests go out as they come" : shown(row.changes) || "nothing") },
    ]} /></section>`;
}

/** The density of a Beta distribution over a knob's range. */
function Density({ alpha, beta }) {
  const xs = Array.from({ length: 61 }, (_, at) => (at + 0.5) / 61);
  const logs = xs.map((x) => (alpha - 1) * Math.log(x) + (beta - 1) * Math.log(1 - x));
  const most = Math.max(...logs);
  const points = xs.map((x, at) => `${(200 * x).toFixed(1)},${(34 - 32 * Math.exp(logs[at] - most)).toFixed(1)}`).join(" ");
  return html`<svg class="density" viewBox="0 0 200 36" aria-hidden="true"><polyline points=${`0,34 ${points} 200,34`} fill="var(--line)" stroke="var(--accent)" stroke-width="1.5" /></svg>`;
}

/** Curves of knobs and beliefs over time: [{name, x: [seconds], y: [number]}]. */
const History = ({ history }) => (!Array.isArray(history) || history.length === 0 ? null : html`<h2>How they came to be</h2>${history.map((each) => html`<h3>${each.name}</h3>
  <${Plot} time x=${each.x} series=${[{ label: each.name, values: each.y }]} height=${140} label=${`${each.name} over time`} format=${shown} />`)}`);

const Beliefs = ({ status }) => html`<p class="dim">${status.explores > 0 ? `${percent(status.explores)} of new sessions try other values of a few knobs.` : "No session tries other values; start it with: hotset learn trial explore=20%"}
  ${plural(status.contexts, "kind")} of prompts are told apart. A narrow hill: sure; a wide one: hardly known.</p>
  ${status.beliefs.length === 0 ? html`<${Empty}>No belief yet: it takes sessions that explored.<//>` : html`<${Table} caption="Where the best value of each knob probably lies, in its range" rows=${status.beliefs} keyOf=${(row) => `${row.name} ${row.context}`} columns=${[
    { title: "Knob", cell: (row) => row.name }, { title: "For", cell: (row) => (row.context === null ? "all prompts" : `prompts of kind ${row.context}`) }, { title: "Probably", right: true, cell: (row) => shown(row.value) },
    { title: "Default", right: true, cell: (row) => shown(row.default) }, { title: "Hill", cell: (row) => html`<${Density} ...${row} />` }, { title: "Sessions", right: true, cell: (row) => number(row.sessions) },
  ]} />`}<${History} history=${status.history} />`;

const WIDE = 460;
const HIGH = 320;

/** What was tried, as points: further left is cheaper, lower is better. */
function Front({ part }) {
  const every = part.points.map((each) => [each.spent, 1 - each.task]);
  const scale = (values, begin, end) => {
    const low = Math.min(...values); const high = Math.max(...values); const around = 0.08 * Math.max(0.01, high - low);
    return { low: low - around, high: high + around, at: (value) => begin + ((value - low + around) / (high - low + 2 * around || 1)) * (end - begin) };
  };
  const across = scale(every.map(([x]) => x), 58, WIDE - 16);
  const up = scale(every.map(([, y]) => y), HIGH - 48, 20);
  const steps = [0, 1, 2, 3, 4].map((step) => step / 4);
  const place = (each) => [across.at(each.spent), up.at(1 - each.task)];
  return html`<figure class="card front"><figcaption><h2>${part.part}</h2><p>${plural(part.tried, "configuration")} on ${plural(part.searched, "session")}; told on ${plural(part.held_out, "later one")}. <span class=${part.passed ? "good" : "dim"}>${part.why}</span></p></figcaption>
    <svg viewBox=${`0 0 ${WIDE} ${HIGH}`} role="img" aria-label=${`${part.points.length} configurations by cost and by what went wrong; ${part.front.length} are on the front`}>
      ${steps.map((step) => { const x = across.low + step * (across.high - across.low); return html`<line x1=${across.at(x)} x2=${across.at(x)} y1="20" y2=${HIGH - 48} stroke="var(--line)" /><text x=${across.at(x)} y=${HIGH - 32} text-anchor="middle">${(100 * x).toFixed(1)}</text>`; })}
      ${steps.map((step) => { const y = up.low + step * (up.high - up.low); return html`<line x1="58" x2=${WIDE - 16} y1=${up.at(y)} y2=${up.at(y)} stroke="var(--line)" /><text x="52" y=${up.at(y) + 4} text-anchor="end">${(100 * y).toFixed(1)}</text>`; })}
      <text x=${WIDE / 2} y=${HIGH - 10} text-anchor="middle">spent, % of everything</text><text x="58" y="12">missed, %</text>
      ${part.points.slice(1).map((each) => html`<circle cx=${place(each)[0]} cy=${place(each)[1]} r="2.5" fill="var(--thinking)" />`)}
      <polyline points=${part.front.map((each) => place(each).join(",")).join(" ")} fill="none" stroke="var(--good)" stroke-width="1.5" />
      ${part.front.map((each) => html`<circle cx=${place(each)[0]} cy=${place(each)[1]} r="4" fill="var(--good)"><title>${shown(each.knobs) || "in force"}</title></circle>`)}
      ${part.points.length > 0 && html`<circle cx=${place(part.points[0])[0]} cy=${place(part.points[0])[1]} r="6" fill="none" stroke="var(--ink)" stroke-width="2" /><text x=${place(part.points[0])[0] + 9} y=${place(part.points[0])[1] - 6}>in force</text>`}
    </svg>
    <${Table} caption="On the front: no other is better in both" rows=${part.front} keyOf=${(row, at) => at} columns=${[{ title: "Went well", right: true, cell: (row) => percent(row.task, 1) }, { title: "Spent", right: true, cell: (row) => percent(row.spent, 1) }, { title: "What it changes", cell: (row) => (Object.keys(row.knobs).length ? shown(row.knobs) : "nothing: in force") }]} /></figure>`;
}

const Evolution = ({ again }) => html`<${Loaded} state=${useApi("learning/evolution", {}, again)}>${(found) => (found.parts.length === 0
  ? html`<${Empty}>No search is kept. <code>hotset evolve</code> searches better knobs on your recorded sessions, without a model.<//>`
  : html`<p>Searched on ${moment(found.time)}. Adopt what passed in a terminal: <code>hotset evolve adopt</code>.</p><div class="two">${found.parts.map((part) => html`<${Front} part=${part} />`)}</div>`)}<//>`;

export default function Learning({ query, setQuery, changed }) {
  useStyle("parts"); useStyle("learning");
  const [notice, order, again] = useOrders("learning/act");
  const state = useApi("learning", {}, changed + again);
  const part = query.part ?? "changes";
  return html`<div class="parted"><h1>Learning</h1>${notice}<${Loaded} state=${state}>${(data) => {
    const { status } = data;
    const live = status.changes.filter((row) => row.stage === "adopted" || row.stage === "trial");
    const past = status.changes.filter((row) => !live.includes(row));
    const frozen = status.all_frozen ? "every knob" : Object.keys(status.frozen).join(", ");
    return html`<p>hotset watches how sessions end, proposes changes of its settings (knobs), tries each on later sessions, and keeps what helps. What you set yourself it never changes.</p>
      <div class="figures"><${Figure} name="Learning" value=${status.is_on ? "on" : "off"} note=${status.is_on ? "new sessions get what was learned" : `by ${status.why_off}`} tone=${status.is_on ? "good" : "warn"} />
        <${Figure} name="Sessions observed" value=${number(status.observed)} /><${Figure} name="Changes in force" value=${number(status.changes.filter((row) => row.stage === "adopted").length)} />
        <${Figure} name="Saved by them" value=${number(live.reduce((sum, row) => sum + row.saved, 0))} note="input tokens' worth, estimated" /><${Figure} name="Frozen by you" value=${frozen || "nothing"} /></div>
      <div class="row">${status.is_on ? html`<${ActButton} label="Switch off" sure="New sessions get the defaults; what was learned stays." onAct=${() => order({ act: "off" })} />` : html`<${ActButton} label="Switch on" onAct=${() => order({ act: "on" })} />`}
        ${status.all_frozen || Object.keys(status.frozen).length ? html`<${ActButton} label="Unfreeze all" onAct=${() => order({ act: "unfreeze" })} />` : html`<${ActButton} label="Freeze all" sure="Nothing learned changes any knob." onAct=${() => order({ act: "freeze" })} />`}
        <${Choice} label="One knob" value=${query.knob ?? ""} onChoose=${(knob) => setQuery({ knob })} choices=${[["", "choose …"], ...[...new Set([...data.knobs, ...(query.knob ? [query.knob] : [])])].map((name) => [name, name])]} /></div>
      ${query.knob && html`<${Knob} key=${query.knob} name=${query.knob} setQuery=${setQuery} order=${order} again=${again} status=${status} />`}
      <${Parts} label="parts of learning" shown=${part} onShow=${(name) => setQuery({ part: name === "changes" ? "" : name })}
        parts=${[["changes", "What changed", live.length], ["compare", "Profiles compared"], ["beliefs", "Beliefs"], ["evolution", "Search"]]} />
      ${part === "changes" && html`${live.length === 0 && html`<${Empty}>Nothing was changed yet. Sessions teach when they end.<//>`}
        ${live.map((row) => html`<${Change} key=${row.id} row=${row} order=${order} setQuery=${setQuery} />`)}
        ${past.length > 0 && html`<details><summary>${plural(past.length, "change")} that ${past.length === 1 ? "is" : "are"} not in force</summary>${past.map((row) => html`<${Change} key=${row.id} row=${row} order=${order} setQuery=${setQuery} />`)}</details>`}`}
      ${part === "compare" && html`<${Trial} data=${data} order=${order} />`}
      ${part === "beliefs" && html`<${Beliefs} status=${status} />`}
      ${part === "evolution" && html`<${Evolution} again=${again} />`}`;
  }}<//></div>`;
}
