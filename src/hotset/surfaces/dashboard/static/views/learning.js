// What was learned: each change with why, what it saved and how to undo it; curves; profiles compared; beliefs; the last search.
import {
  ActButton, Empty, Figure, Loaded, Table, ago, dollars, html, moment, number, percent, plural, useApi, useState, useStyle,
} from "../lib.js";
import { Choice, Parts, useOrders } from "../parts.js";
import { BeliefsOverTime, OneKnob, OverTime } from "./learning/curves.js";
import { Evolution } from "./learning/evolution.js";
import { shown, written } from "./learning/words.js";

export const title = "Learning";

const STAGES = {
  adopted: ["in force", "good"], trial: ["on trial", "warn"], proposed: ["proposed", ""], passed: ["waits for a trial", "warn"],
  refused: ["not better, dropped", ""], "rolled back": ["taken back", "bad"], reset: ["taken back by you", "bad"],
};
const FIGURES = { success: "success", cost: "cost", turns: "turns", corrections: "corrections", rereads: "things read again" };
const CERTAIN = 5; // comparisons below which an interval says nothing
const signed = (value) => `${value >= 0 ? "+" : "−"}${(100 * Math.abs(value)).toFixed(1)} %`;

/** A share now, and what it was before. */
const beside = (what, now, before, of = "") => (now === null ? "" : `, ${what} ${percent(now)}${of}${before === null ? "" : ` (${percent(before)} before)`}`);

function Change({ row, measured, order, setQuery }) {
  const [word, tone] = STAGES[row.stage] ?? [row.stage, ""];
  const names = Object.keys(row.knobs);
  const evolved = row.undo.startsWith("hotset evolve");
  return html`<article class="card"><h2>${names.map((name, at) => html`${at ? ", " : ""}<button type="button" class="link" onClick=${() => setQuery({ knob: name })}>${name}</button>`)} <span class=${`chip ${tone}`}>${word}</span></h2>
    <ul class="plain">${Object.entries(row.knobs).map(([name, value]) => html`<li><del>${shown(row.before[name])}</del> → <ins>${shown(value)}</ins> <span class="dim">${name}</span></li>`)}</ul>
    <dl class="facts"><dt>Why</dt><dd>${row.why}</dd>${row.evidence && row.evidence !== row.why && html`<dt>Evidence</dt><dd>${row.evidence}</dd>`}
      ${measured && html`<dt>Saved in replay</dt><dd>${measured} <span class="dim">(measured on recorded sessions)</span></dd>`}
      ${row.sessions > 0 && html`<dt>Since then</dt><dd>${plural(row.sessions, "session")}${beside("success", row.success, row.success_before)}${beside("cost", row.cost, row.cost_before, " of full history's")}</dd>`}
      <dt>Since</dt><dd>${moment(row.since)} (${ago(row.since)}), by ${row.by}</dd></dl>
    <div class="row">${row.undo && (evolved
      ? html`<${ActButton} label="Undo" sure="New sessions get the knobs from before." onAct=${() => order({ act: "revert", changes: [row.id] }, { act: "adopt", changes: [row.id] })} />`
      : html`<${ActButton} label="Undo" sure="New sessions get the default. It is not learned again before you allow it." onAct=${() => order({ act: "reset", changes: [row.id] })} />`)}
      ${row.undo && html`<${ActButton} label="Freeze" title="Nothing learned changes its knobs from now on" onAct=${() => order({ act: "freeze", knobs: names }, { act: "unfreeze", knobs: names })} />`}
      ${row.stage === "reset" && html`<${ActButton} label="Allow it again" title="It comes back when sessions show that it pays" onAct=${() => order({ act: "unreset", changes: [row.id] })} />`}</div></article>`;
}

/** A field that gives a knob a value at once, with what that may cost. */
function SetValue({ name, value, orders, order }) {
  const [typed, setTyped] = useState("");
  const price = useApi("learning/price");
  const said = price.data && (price.data.sessions === 0 ? "No session is open, so it costs nothing." : `It holds in ${plural(price.data.sessions, "open session")}, too: up to ${number(price.data.tokens)} tokens are written again${price.data.dollars === null ? "" : `, about $${price.data.dollars.toFixed(3)}`}.`);
  const back = name in orders ? { act: "freeze", knobs: [name], value: written(orders[name]) } : { act: "unfreeze", knobs: [name] };
  return html`<form class="filters" onSubmit=${(event) => event.preventDefault()}><label class="field">Your own value <input value=${typed} placeholder=${written(value)} maxlength="300" onInput=${(event) => setTyped(event.target.value)} /></label>
    <${ActButton} label="Set" disabled=${!typed.trim()} sure=${`From the next request on. ${said ?? ""}`} onAct=${() => order({ act: "freeze", knobs: [name], value: typed.trim() }, back)} /></form>`;
}

function Knob({ name, setQuery, order, again, data }) {
  const state = useApi(`learning/knob/${encodeURIComponent(name)}`, {}, again);
  const frozen = { act: "freeze", knobs: [name], ...(name in data.orders ? { value: written(data.orders[name]) } : {}) };
  const thawed = { act: "unfreeze", knobs: [name] };
  return html`<section class="card"><h2>${name}</h2><${Loaded} state=${state}>${(found) => { const isFrozen = found.source === "frozen"; return html`<p class="dim">${found.what}</p>
    <p><strong>${shown(found.value)}</strong> <span class="dim">(default: ${found.default === null ? "none of its own" : shown(found.default)})</span> – ${found.why}</p>
    <div class="row"><${ActButton} label=${isFrozen ? "Unfreeze" : "Freeze"} title=${isFrozen ? "Learning may change it again" : "Nothing learned changes it from now on"} onAct=${() => (isFrozen ? order(thawed, frozen) : order(frozen, thawed))} />
      ${found.changes.some((row) => row.undo && !row.undo.startsWith("hotset evolve")) && html`<${ActButton} label="Take back what was learned" sure="New sessions get the default. It is not learned again before you allow it." onAct=${() => order({ act: "reset", knobs: [name] })} />`}
      <button type="button" onClick=${() => setQuery({ knob: "" })}>Close</button></div>
    ${found.source !== "file" && html`<${SetValue} name=${name} value=${found.value} orders=${data.orders} order=${order} />`}
    <${OneKnob} name=${name} again=${again} />`; }}<//></section>`;
}

/** An interval around nothing: where it does not cross the middle, a difference is shown. */
function Interval({ each }) {
  const wide = Math.min(1, Math.max(0.05, Math.abs(each.low), Math.abs(each.high)));
  const at = (value) => 100 + (95 * Math.max(-wide, Math.min(wide, value))) / wide;
  const isShown = each.pairs >= CERTAIN && (each.low > 0 || each.high < 0);
  return html`<svg class="interval" viewBox="0 0 200 14" aria-hidden="true"><line x1="100" x2="100" y1="0" y2="14" stroke="var(--dim)" /><line x1=${at(each.low)} x2=${at(each.high)} y1="7" y2="7" stroke=${isShown ? "var(--accent)" : "var(--thinking)"} stroke-width="4" /><circle cx=${at(each.mean)} cy="7" r="4" fill=${isShown ? "var(--accent)" : "var(--thinking)"} /></svg>`;
}

const NAMED = { explore: "explore: other values of a few knobs", off: "off: untouched, as a control" };

const ARM = [
  { title: "Profile", cell: (row) => NAMED[row.name] ?? row.name }, { title: "Sessions", right: true, cell: (row) => number(row.sessions) },
  { title: "Success", right: true, cell: (row) => percent(row.success) }, { title: "Cost of full history's", right: true, cell: (row) => percent(row.cost) }, { title: "Paid a session", right: true, cell: (row) => dollars(row.dollars) },
  ...[["Turns", "turns", 1], ["Asked back", "faults", 2], ["Corrections", "corrections", 2], ["Read again", "rereads", 2]].map(([title, name, digits]) => ({ title, right: true, cell: (row) => (row.sessions ? row[name].toFixed(digits) : "–") })),
];

const DIFFERENCE = [
  { title: "Profile", cell: (row) => row.arm }, { title: "Figure", cell: (row) => FIGURES[row.figure] ?? row.figure }, { title: "Difference", cell: (row) => html`<span class="nowrap">${signed(row.mean)}</span> <span class="dim nowrap">[${signed(row.low)}, ${signed(row.high)}]</span>` },
  { title: "less | more", cell: (row) => html`<${Interval} each=${row} />` }, { title: "Says", cell: (row) => (row.pairs < CERTAIN ? "too few sessions to tell" : row.low > 0 || row.high < 0 ? "shown" : "not shown to differ") },
];

const differencesOf = (arms) => arms.flatMap((row) => row.differences.map((each) => ({ ...each, arm: row.name, key: `${row.name} ${row.until} ${each.figure}` })));

const Differences = ({ arms, caption }) => { const rows = differencesOf(arms); return rows.length > 0 && html`<div class="broad"><${Table} caption=${caption} rows=${rows} keyOf=${(row) => row.key} columns=${DIFFERENCE} /></div>`; };

function Trial({ data, order }) {
  const { arms, ended, explores } = data.status;
  const [arm, setArm] = useState("");
  const [share, setShare] = useState("10");
  const names = data.profiles.filter((each) => each.name !== "default").map((each) => each.name);
  const chosen = arm || names[0] || "";
  const shareOf = (name) => (name === "explore" ? explores : arms.find((each) => each.name === name)?.share ?? 0);
  const trial = (name, value) => ({ act: "trial", shares: { [name]: value } });
  const end = (row) => order(trial(row.name, 0), row.name.startsWith("c-") ? null : trial(row.name, shareOf(row.name)));
  return html`<section><p>A share of new sessions gets another profile, at random and for good; the default is what the others get. <code>off</code> lets requests go out untouched: a control on your own work.</p>
    <${Table} caption="Profiles compared: what their sessions came to, in the mean" rows=${arms} keyOf=${(row) => row.name} columns=${[
      ARM[0], { title: "Share of new sessions", right: true, cell: (row) => percent(row.share) }, ...ARM.slice(1),
      { title: "Decide", cell: (row) => row.name !== "default" && row.share > 0 && html`<${ActButton} label="End the trial" onAct=${() => end(row)} />` },
    ]} />
    <${Differences} arms=${arms} caption="Against the default; an interval that does not cross the middle shows a difference" />
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><${Choice} label="Try the profile" value=${chosen} onChoose=${setArm} choices=${names.map((name) => [name, name])} />
      <${Choice} label="with" value=${share} onChoose=${setShare} choices=${["10", "20", "30", "50"].map((each) => [each, `${each} % of new sessions`])} />
      <${ActButton} label="Start" disabled=${!chosen} onAct=${() => order(trial(chosen, Number(share) / 100), trial(chosen, shareOf(chosen)))} /></form>
    ${ended.length > 0 && html`<h2>Trials that are over</h2><${Table} caption="What their sessions came to, in the mean" rows=${ended} keyOf=${(row) => `${row.name} ${row.until}`} columns=${[...ARM, { title: "Ended", cell: (row) => moment(row.until) }]} />
      <${Differences} arms=${ended} caption="Against the default, when they ended" />`}
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

const exploring = (share) => ({ act: "trial", shares: { explore: share } });

const Beliefs = ({ status, order }) => html`<div class="row"><span>${status.explores > 0 ? `${percent(status.explores)} of new sessions try other values of a few knobs: ${status.explorable.join(", ")}.` : "No session tries other values."}</span>
    ${status.explores > 0 ? html`<${ActButton} label="Stop exploring" onAct=${() => order(exploring(0), exploring(status.explores))} />` : html`<${ActButton} label="Explore" sure="One in five new sessions tries other values of a few knobs, none of which hides what the model works with." onAct=${() => order(exploring(0.2), exploring(0))} />`}</div>
  <p class="dim">${plural(status.contexts, "kind")} of prompts ${status.contexts === 1 ? "is" : "are"} told apart. A narrow hill: sure; a wide one: hardly known.</p>
  ${status.beliefs.length === 0 ? html`<${Empty}>No belief yet: it takes sessions that explored.<//>` : html`<${Table} caption="Where the best value of each knob probably lies, in its range" rows=${status.beliefs} keyOf=${(row) => `${row.name} ${row.context}`} columns=${[
    { title: "Knob", cell: (row) => row.name }, { title: "For", cell: (row) => (row.context === null ? "all prompts" : `prompts of kind ${row.context}`) }, { title: "Probably", right: true, cell: (row) => shown(row.value) },
    { title: "Default", right: true, cell: (row) => shown(row.default) }, { title: "Hill", cell: (row) => html`<${Density} ...${row} />` }, { title: "Sessions", right: true, cell: (row) => number(row.sessions) },
  ]} />`}`;

export default function Learning({ query, setQuery, changed }) {
  useStyle("parts"); useStyle("learning");
  const [notice, order, again] = useOrders("learning/act");
  const state = useApi("learning", {}, changed + again);
  const part = query.part ?? "changes";
  const show = (name) => setQuery({ part: name === "changes" ? "" : name, offset: "" });
  return html`<div class="parted"><h1>Learning</h1>${notice}<${Loaded} state=${state}>${(data) => {
    const { status } = data;
    const live = status.changes.filter((row) => row.stage === "adopted" || row.stage === "trial");
    const past = status.changes.filter((row) => !live.includes(row));
    const names = Object.keys(status.frozen);
    const frozen = status.all_frozen ? "every knob" : names.length > 3 ? plural(names.length, "knob") : names.join(", ");
    const card = (row) => html`<${Change} key=${row.id} row=${row} measured=${data.measured[row.id]} order=${order} setQuery=${setQuery} />`;
    return html`<p>hotset watches how sessions end, proposes changes of its settings (knobs), tries each on later sessions, and keeps what helps. What you set yourself it never changes.</p>
      <div class="figures"><${Figure} name="Learning" value=${status.is_on ? "on" : "off"} note=${status.is_on ? "new sessions get what was learned" : `by ${status.why_off}`} tone=${status.is_on ? "good" : "warn"} />
        <${Figure} name="Sessions observed" value=${number(status.observed)} /><${Figure} name="Changes in force" value=${number(live.filter((row) => row.stage === "adopted").length)} />
        <${Figure} name="On trial" value=${number(live.filter((row) => row.stage === "trial").length)} note="with a share of new sessions" /><${Figure} name="Frozen by you" value=${frozen || "nothing"} /></div>
      <div class="row">${status.is_on ? html`<${ActButton} label="Switch off" sure="New sessions get the defaults; what was learned stays." onAct=${() => order({ act: "off" }, { act: "on" })} />` : html`<${ActButton} label="Switch on" onAct=${() => order({ act: "on" }, { act: "off" })} />`}
        ${status.all_frozen || names.length ? html`<${ActButton} label="Unfreeze all" sure=${names.length ? "Values that you set are taken back, too." : ""} onAct=${() => order({ act: "unfreeze" }, names.length ? null : { act: "freeze" })} />` : html`<${ActButton} label="Freeze all" sure="Nothing learned changes any knob." onAct=${() => order({ act: "freeze" }, { act: "unfreeze" })} />`}
        <${Choice} label="One knob" value=${query.knob ?? ""} onChoose=${(knob) => setQuery({ knob })} choices=${[["", "choose …"], ...[...new Set([...data.knobs, ...(query.knob ? [query.knob] : [])])].map((name) => [name, name])]} /></div>
      ${query.knob && html`<${Knob} key=${query.knob} name=${query.knob} setQuery=${setQuery} order=${order} again=${again} data=${data} />`}
      <${Parts} label="parts of learning" shown=${part} onShow=${show}
        parts=${[["changes", "What changed", live.length], ["time", "Over time"], ["compare", "Profiles compared"], ["beliefs", "Beliefs"], ["evolution", "Search"]]} />
      ${part === "changes" && html`${live.length === 0 && html`<${Empty}>Nothing was changed yet. Sessions teach when they end.<//>`}
        ${live.map(card)}
        ${past.length > 0 && html`<details><summary>${plural(past.length, "change")} that ${past.length === 1 ? "is" : "are"} not in force</summary>${past.map(card)}</details>`}`}
      ${part === "time" && html`<${OverTime} query=${query} setQuery=${setQuery} again=${again} />`}
      ${part === "compare" && html`<${Trial} data=${data} order=${order} />`}
      ${part === "beliefs" && html`<${Beliefs} status=${status} order=${order} /><${BeliefsOverTime} query=${query} setQuery=${setQuery} again=${again} />`}
      ${part === "evolution" && html`<${Evolution} again=${again} order=${order} />`}`;
  }}<//></div>`;
}
