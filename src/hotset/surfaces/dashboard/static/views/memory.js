// What is remembered: topics, days, what waits for a decision, one memory with where it comes from, links, costs.
import {
  ActButton, Empty, Figure, Loaded, Table, ago, html, moment, number, percent, plural, tokens, useApi, useState, useStyle,
} from "../lib.js";
import { Choice, GraphPicture, Parts, SearchField, useOrders } from "../parts.js";

export const title = "Memory";

const SIZE = 30;
const KINDS = {
  episode: ["work that was done", "--result"], fact: ["a fact", "--good"], procedure: ["how to do something", "--response"], pitfall: ["a pitfall", "--bad"],
  learning: ["something learned", "--system"], ledger: ["notes on work", "--call"], handoff: ["a handoff", "--ours"],
};
const STANDINGS = { active: "holds", candidate: "waits for a yes", superseded: "replaced", merged: "merged into another", forgotten: "forgotten" };
const TRUST = { person: "you said or confirmed it", outcome: "what was done worked", agent: "a model said it", outside: "text of a tool, a file or the web" };
const RELATIONS = { derived_from: ["drawn from", "led to"], related_to: ["related to", "related to"], contradicts: ["contradicts", "contradicted by"], supersedes: ["replaces", "replaced by"] };
const ENDINGS = { success: "ended well", failure: "failed", partial: "half done" };
const METRICS = { ratio: "looking took too much of it", savings: "too little was saved", full_loads: "too many were read in one task", discovery_tokens: "the index was too long", timeline_tokens: "the timeline was too long", tokens_saved: "too few tokens were saved" };
const DAY = 86400;

const About = ({ row }) => html`<span class="dim">${KINDS[row.kind]?.[0] ?? row.kind}, ${ago(row.created)}</span> ${
  row.standing !== "active" && html`<span class=${`chip ${row.standing === "candidate" ? "warn" : ""}`}>${STANDINGS[row.standing] ?? row.standing}</span> `}${
  row.ending && html`<span class=${`chip ${row.ending === "success" ? "good" : row.ending === "failure" ? "bad" : "warn"}`}>${ENDINGS[row.ending] ?? row.ending}</span>`}`;

const Open = ({ row, setQuery }) => html`<button type="button" class="link" onClick=${() => setQuery({ id: row.id })}>${row.title}</button>`;

function Topics({ data, setQuery }) {
  return html`${data.topics.length === 0
    ? html`<${Empty}>Nothing is remembered yet. Sessions that go through hotset are remembered when they end; earlier ones: <code>hotset memory learn</code>.<//>`
    : html`<${Table} caption="Topics, those with the most and the latest memories first" rows=${data.topics} keyOf=${(row) => row.name}
      onOpen=${(row) => setQuery({ part: "list", topic: row.name })} columns=${[
        { title: "Topic", cell: (row) => row.name }, { title: "Memories", right: true, cell: (row) => number(row.count) },
        { title: "Tokens", right: true, cell: (row) => tokens(row.tokens) }, { title: "Last", cell: (row) => ago(row.last) },
        { title: "The newest", cell: (row) => (row.latest ? html`<${Open} row=${{ id: row.latest, title: row.title || "work that was done" }} setQuery=${setQuery} />` : "–") },
      ]} />`}`;
}

function Undo({ runs, order }) {
  if (runs.length === 0) return null;
  return html`<h2>What can be undone</h2><${Table} caption="Pieces of work that wrote memories, the latest first" rows=${runs} keyOf=${(row) => row.name} columns=${[
    { title: "When", cell: (row) => moment(row.time) }, { title: "What", cell: (row) => html`<code>${row.name}</code>` },
    { title: "Memories", right: true, cell: (row) => number(row.versions) },
    { title: "Decide", cell: (row) => html`<${ActButton} label="Undo" sure=${`${plural(row.versions, "memory", "memories")} become as before.`} onAct=${() => order({ act: "undo", id: row.name })} />` },
  ]} />`;
}

function Timeline({ query, setQuery, changed }) {
  const days = Number(query.days ?? 7);
  const state = useApi("memory/timeline", { days, until: query.until }, changed);
  return html`<div class="filters"><${Choice} label="Show" value=${String(days)} onChoose=${(value) => setQuery({ days: value })} choices=${[["7", "a week"], ["30", "a month"], ["366", "a year"]]} />
      ${query.until && html`<button type="button" onClick=${() => setQuery({ until: "" })}>Up to now</button>`}</div>
    <${Loaded} state=${state}>${(found) => html`
      ${!query.until && found.open.length > 0 && html`<section class="card"><h2>Open</h2><ul class="plain">${found.open.map((line) => html`<li>${line}</li>`)}</ul></section>`}
      ${found.days.length === 0 && html`<${Empty}>Nothing was done in this time.<//>`}
      ${found.days.map((day) => html`<section class="card" key=${day.day}><h2>${new Date(`${day.day}T12:00`).toLocaleDateString(undefined, { dateStyle: "full" })}</h2>
        ${day.done.map((work) => html`<p><strong>${work.name || "Done"}</strong></p><ul class="plain">${work.rows.map((row) => html`<li><${Open} row=${row} setQuery=${setQuery} /> ${row.ending && html`<span class="dim">${ENDINGS[row.ending] ?? row.ending}</span>`}</li>`)}</ul>`)}
        ${[["Decided", day.decided], ["Noted", day.noted]].filter(([, rows]) => rows.length).map(([name, rows]) => html`<p><strong>${name}</strong></p><ul class="plain">${rows.map((row) => html`<li><${Open} row=${row} setQuery=${setQuery} /></li>`)}</ul>`)}
      </section>`)}
      ${found.earlier && html`<p><button type="button" onClick=${() => setQuery({ until: Math.min(found.since, found.earlier + DAY / 2) })}>Earlier</button> <span class="dim">the last before that: ${moment(found.earlier)}</span></p>`}`}<//>`;
}

function Card({ row, order, setQuery }) {
  const [text, setText] = useState(null);
  return html`<article class="card"><h2><${Open} row=${row} setQuery=${setQuery} /></h2><p><${About} row=${row} /> <span class="dim">${TRUST[row.trust] ?? row.trust}</span></p>
    ${row.text !== row.title && html`<pre tabindex="0">${row.text}</pre>`}
    ${text === null
      ? html`<div class="row"><${ActButton} label="Keep" title="It is right" onAct=${() => order({ act: "keep", id: row.id })} />
        <button type="button" onClick=${() => setText(row.text)}>Correct</button>
        <${ActButton} label="Drop" title="Forget it" onAct=${() => order({ act: "drop", id: row.id })} />
        <${ActButton} label="Not a person's words" title="A tool, a file or a model said it" onAct=${() => order({ act: "not_a_person", id: row.id })} /></div>`
      : html`<label>What should it say?<textarea rows="3" maxlength="10000" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
        <div class="row"><${ActButton} label="Save the correction" disabled=${!text.trim()} onAct=${() => order({ act: "correct", id: row.id, text })} />
        <button type="button" onClick=${() => setText(null)}>Cancel</button></div>`}
  </article>`;
}

function Review({ query, setQuery, order, again, changed }) {
  const offset = Number(query.offset ?? 0);
  const state = useApi("memory/review", { offset, limit: 10 }, changed + again);
  return html`<${Loaded} state=${state}>${(found) => html`
    ${found.conflicts.map(({ one, other }) => html`<article class="card"><h2>These contradict each other. Which one holds?</h2>
      <div class="two">${[[one, other], [other, one]].map(([row, against]) => html`<div><p><${Open} row=${row} setQuery=${setQuery} /></p><p><${About} row=${row} /></p><pre tabindex="0">${row.text}</pre>
        <${ActButton} label="This one holds" onAct=${() => order({ act: "holds", id: row.id, other: against.id })} /></div>`)}</div>
      <p><${ActButton} label="Both hold" sure="You are not asked about these two again." onAct=${() => order({ act: "both", id: one.id, other: other.id })} /></p></article>`)}
    ${found.total === 0 && found.conflicts.length === 0 ? html`<${Empty}>Nothing waits for you.<//>` : html`<p class="dim">Agents are told what you keep as yours. What you do not look at stays as it is.</p>`}
    ${found.rows.map((row) => html`<${Card} key=${row.id} row=${row} order=${order} setQuery=${setQuery} />`)}
    ${found.total > 10 && html`<nav class="pager" aria-label="pages"><button type="button" disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - 10) || "" })}>Newer</button>
      <span>${number(offset + 1)}–${number(Math.min(found.total, offset + 10))} of ${number(found.total)}</span>
      <button type="button" disabled=${offset + 10 >= found.total} onClick=${() => setQuery({ offset: offset + 10 })}>Older</button></nav>`}`}<//>`;
}

function List({ query, setQuery, order, again, changed }) {
  const offset = Number(query.offset ?? 0);
  const state = useApi("memory/list", { text: query.text, kind: query.kind, standing: query.standing, topic: query.topic, offset, limit: SIZE }, changed + again);
  const choose = (name) => (value) => setQuery({ [name]: value, offset: "" });
  const named = (all) => Object.entries(all).map(([value, word]) => [value, Array.isArray(word) ? word[0] : word]);
  return html`<div class="filters"><${SearchField} label="Search memories" placeholder="by meaning and words" value=${query.text} onSend=${choose("text")} />
      <${Choice} label="Kind" value=${query.kind} onChoose=${choose("kind")} choices=${[["", "all"], ...named(KINDS)]} />
      <${Choice} label="State" value=${query.standing} onChoose=${choose("standing")} choices=${[["", "all that is found"], ...named(STANDINGS)]} />
      ${query.topic && html`<span class="chip">topic: ${query.topic} <button type="button" class="link" onClick=${() => choose("topic")("")} aria-label=${`without the topic ${query.topic}`}>×</button></span>`}</div>
    <${Loaded} state=${state}>${(found) => (found.rows.length === 0 ? html`<${Empty}>No such memory.<//>` : html`<div class="wide"><${Table} caption=${query.text ? "Best first" : "Newest first"} rows=${found.rows} onOpen=${(row) => setQuery({ id: row.id })} columns=${[
      { title: "Memory", cell: (row) => row.title }, { title: "What it is", cell: (row) => html`<${About} row=${row} />` },
      { title: "Topics", cell: (row) => row.topics.slice(0, 3).join(", ") }, { title: "Tokens", right: true, cell: (row) => number(row.tokens) },
      { title: "Decide", cell: (row) => (row.standing === "forgotten" || row.standing === "superseded" || row.standing === "merged"
        ? html`<${ActButton} label="Restore" onAct=${() => order({ act: "restore", id: row.id })} />`
        : html`<${ActButton} label="Forget" sure="No search finds it any more; it can be restored." onAct=${() => order({ act: "forget", id: row.id })} />`) },
    ]} /></div>
    ${(found.has_more || offset > 0) && html`<nav class="pager" aria-label="pages"><button type="button" disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - SIZE) || "" })}>Newer</button>
      <button type="button" disabled=${!found.has_more} onClick=${() => setQuery({ offset: offset + SIZE })}>Older</button></nav>`}`)}<//>`;
}

const Links = ({ setQuery, again }) => html`<${Loaded} state=${useApi("memory/graph", {}, again)}>${(graph) => (graph.edges.length === 0
  ? html`<${Empty}>No links yet; find what memories have in common: <code>hotset memory consolidate</code>.<//>`
  : html`<${GraphPicture} graph=${graph} tones=${KINDS} label="memories and their links" onOpen=${(id) => setQuery({ id })} />`)}<//>`;

const Costs = () => html`<${Loaded} state=${useApi("memory/economics", {})}>${(found) => (found.rows.length === 0
  ? html`<${Empty}>No agent has used memories yet.<//>`
  : html`<div class="figures"><${Figure} name="Memory took" value=${tokens(found.spent)} note="tokens, measured" />
      <${Figure} name="Loading all of it would have taken" value=${tokens(found.available)} note="tokens, estimated: all of it once a session" />
      <${Figure} name="Saved" value=${percent(found.available ? 1 - found.spent / found.available : null)} tone=${found.spent <= found.available ? "good" : "bad"} note="estimated" /></div>
    <${Table} caption="The latest sessions that used memories" rows=${found.rows} keyOf=${(row, at) => at} columns=${[
      { title: "Session", cell: (row) => row.session.slice(0, 13) || "outside of one" }, { title: "When", cell: (row) => ago(row.time) },
      { title: "Took", right: true, cell: (row) => tokens(row.spent) }, { title: "All would be", right: true, cell: (row) => tokens(row.available) },
      { title: "Saved", right: true, cell: (row) => html`<span class=${row.saved < 0 ? "bad" : "good"}>${tokens(row.saved)}</span>` },
      { title: "Read whole", right: true, cell: (row) => number(row.full_loads) }, { title: "Asked for", right: true, cell: (row) => number(row.asked) },
      { title: "Limits crossed", cell: (row) => row.breaches.map((each) => METRICS[each] ?? each).join("; ") || "none" },
    ]} />`)}<//>`;

function OneMemory({ id, setQuery, order, again }) {
  const state = useApi(`memory/memory/${encodeURIComponent(id)}`, {}, again);
  return html`<p><button type="button" class="link" onClick=${() => setQuery({ id: "" })}>All memories</button></p><${Loaded} state=${state}>${(found) => {
    const row = found.row;
    const isAway = row.standing !== "active" && row.standing !== "candidate";
    return html`<h2>${row.title}</h2><p><${About} row=${row} /></p>
      <div class="row">${isAway ? html`<${ActButton} label="Restore" onAct=${() => order({ act: "restore", id: row.id })} />`
        : html`<${ActButton} label="Forget" sure="No search finds it any more; it can be restored." onAct=${() => order({ act: "forget", id: row.id })} />`}</div>
      ${!isAway && html`<details><summary>Keep, correct or drop it</summary><${Card} row=${row} order=${order} setQuery=${setQuery} /></details>`}
      <div class="two"><section class="card"><h3>What it says</h3><pre tabindex="0">${row.text}</pre>
        <dl class="facts"><dt>Sure</dt><dd>${percent(found.confidence)}, ${TRUST[row.trust] ?? row.trust}</dd><dt>Topics</dt><dd>${row.topics.join(", ") || "none"}</dd>
          <dt>Used</dt><dd>shown ${found.shown}, read ${found.read}, helped ${found.helped}, misled ${found.misled} times</dd>
          ${found.valid_until && html`<dt>Held until</dt><dd>${moment(found.valid_until)}</dd>`}</dl></section>
      <section class="card"><h3>Where it comes from</h3><ul>${found.why.map((line) => html`<li>${line}</li>`)}</ul>
        ${row.session && html`<p><code>${row.session}</code>, ${plural(found.pages.length, "page")}${found.places.length ? `, from ${found.places.join(", ")}` : ""}</p>`}</section></div>
      <h3>Links</h3>${found.links.length === 0 ? html`<${Empty}>It has no links.<//>` : html`<ul class="plain">${found.links.map((link) => html`<li>${RELATIONS[link.relation]?.[link.points_away ? 0 : 1] ?? link.relation} <button type="button" class="link" onClick=${() => setQuery({ id: link.id })}>${link.title || link.id}</button></li>`)}</ul>
        <${GraphPicture} graph=${found.graph} tones=${KINDS} center=${row.id} label="links around this memory" onOpen=${(other) => setQuery({ id: other })} />`}
      <h3>Versions</h3><${Table} caption="Earlier versions never change" rows=${found.versions} keyOf=${(each) => each.version} columns=${[
        { title: "Version", right: true, cell: (each) => each.version }, { title: "When", cell: (each) => moment(each.time) }, { title: "Why", cell: (each) => each.why || "it was first kept" },
        { title: "State", cell: (each) => STANDINGS[each.standing] ?? each.standing }, { title: "What it said", cell: (each) => each.text },
      ]} />`;
  }}<//>`;
}

export default function Memory({ query, setQuery, changed }) {
  useStyle("parts"); useStyle("memory");
  const [notice, order, again] = useOrders("memory/act");
  const state = useApi("memory", {}, changed + again);
  const part = query.part ?? "topics";
  const own = { query, setQuery, order, again, changed };
  return html`<div class="parted"><h1>Memory</h1>${notice}<${Loaded} state=${state}>${(data) => html`
    ${!data.is_on && html`<p class="warn">Memory is switched off: enabled = true in [memory]. What is kept can be read and taken back.</p>`}
    <div class="figures"><${Figure} name="Memories" value=${number(data.memories)} note=${`${tokens(data.tokens)} tokens`} /><${Figure} name="Topics" value=${number(data.topics.length)} />
      <${Figure} name="To look at" value=${number(data.waiting)} note="you have not seen them" tone=${data.waiting ? "warn" : ""} /><${Figure} name="Contradictions" value=${number(data.conflicts)} tone=${data.conflicts ? "warn" : ""} /></div>
    ${query.id ? html`<${OneMemory} id=${query.id} ...${own} />` : html`
      <${Parts} label="parts of memory" shown=${part} onShow=${(name) => setQuery({ part: name === "topics" ? "" : name, offset: "" })}
        parts=${[["topics", "Topics"], ["timeline", "Day by day"], ["review", "To look at", data.waiting + data.conflicts], ["list", "All and search"], ["links", "Links"], ["costs", "What it costs"]]} />
      ${part === "topics" && html`<${Topics} data=${data} setQuery=${setQuery} /><${Undo} runs=${data.runs} order=${order} />`}
      ${part === "timeline" && html`<${Timeline} ...${own} />`}${part === "review" && html`<${Review} ...${own} />`}${part === "list" && html`<${List} ...${own} />`}
      ${part === "links" && html`<${Links} setQuery=${setQuery} again=${again} />`}${part === "costs" && html`<${Costs} />`}`}`}<//></div>`;
}
