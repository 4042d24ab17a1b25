// One session: its turns and what made each larger, one turn as sent beside as seen, what left, summaries, its family.
import { BASE, Empty, Failure, Figure, Loaded, Pager, Table, ago, dollars, html, moment, number, percent, plural, tokens, useApi, useEffect, useRef, useStyle } from "../lib.js";
import { SearchField, SessionName } from "./sessions.js";

export const title = "Session";

const TURNS = 50;
const CHANGES = 20;
const TABS = [["turns", "Turns"], ["search", "Search inside"], ["left", "What left the window"], ["summaries", "Summaries"], ["family", "Family"]];

const inside = (id, part) => `sessions/${encodeURIComponent(id)}${part ? `/${part}` : ""}`;

/** What a turn added, as bars. */
function Growth({ rows }) {
  const most = Math.max(1, ...rows.map((each) => each.tokens));
  return html`<ul class="growth">${rows.map((each) => html`<li key=${each.what}>
    <span class="bar" aria-hidden="true"><span style=${{ width: `${Math.max(2, (100 * each.tokens) / most)}%` }}></span></span>
    <span>${each.what} <span class="dim">+${tokens(each.tokens)}</span></span></li>`)}</ul>`;
}

function Happened({ row }) {
  const lines = [
    ...(row.outcome ? [`${row.outcome}${row.error ? `: ${row.error}` : ""}`] : []),
    ...(row.broke ? [`began anew: ${row.broke}`] : []),
    ...(row.rounds ? [plural(row.rounds, "hidden round")] : []),
    ...row.happened,
  ];
  return lines.length ? html`<ul class="happened">${lines.map((each) => html`<li>${each}</li>`)}</ul>` : null;
}

function Turns({ id, query, setQuery, changed }) {
  const offset = Number(query.offset ?? 0);
  const state = useApi(inside(id, "history"), { offset, limit: TURNS }, changed);
  return html`<${Loaded} state=${state}>${(list) => (list.rows.length === 0
    ? html`<${Empty}>This session has no turn yet.<//>`
    : html`<div class="turns"><${Table} caption="The latest turn first. “Saw” is what was sent to the model, “sent” what the client gave; both estimated." rows=${list.rows} keyOf=${(row) => row.number}
        onOpen=${(row) => setQuery({ turn: row.number })} columns=${[
          { title: "turn", cell: (row) => html`${row.number}${row.branch ? html` <span class="tag">branch ${row.branch}</span>` : ""}` },
          { title: "what happened", cell: (row) => html`<div class="words">${row.came && html`<p><span class="who">in</span> ${row.came}</p>`}${row.said && html`<p><span class="who">out</span> ${row.said}</p>`}<${Happened} row=${row} /></div>` },
          { title: "what it added", cell: (row) => html`<${Growth} rows=${row.grew} />` },
          { title: "model saw / client sent", right: true, cell: (row) => (row.whole ? html`${tokens(row.sent)} / ${tokens(row.whole)}` : "–") },
          { title: "paid", right: true, cell: (row) => html`${dollars(row.dollars)}${row.is_measured ? "" : " ≈"}` },
        ]} /></div>
      <${Pager} offset=${offset} limit=${TURNS} total=${list.total} onGo=${(next) => setQuery({ offset: next || null })} />`)}<//>`;
}

const SIDES = { client: new Set(["same", "cut"]), model: new Set(["same", "added"]) };

function Side({ pieces, side, empty }) {
  const shown = pieces.filter((each) => SIDES[side].has(each.op));
  if (shown.length === 0) return html`<p class="dim">${empty}</p>`;
  return html`<pre tabindex="0">${shown.map((each) => (each.op === "cut" ? html`<del>${each.text}</del>` : each.op === "added" ? html`<ins>${each.text}</ins>` : html`<span>${each.text}</span>`))}</pre>`;
}

function Change({ change, setQuery }) {
  return html`<section class="card change">
    <h3>${change.title}</h3>
    <p>Shown as ${change.form}, ${change.cause}${change.is_fresh ? " (decided for this turn)" : ""}: ${number(change.whole)} tokens became ${number(change.tokens)}.</p>
    <div class="sides">
      <div><h4>The client sent</h4><${Side} pieces=${change.pieces} side="client" empty="nothing" /></div>
      <div><h4>The model saw</h4><${Side} pieces=${change.pieces} side="model" empty="nothing in its place" /></div>
    </div>
    <p class="row">
      ${change.is_clipped && html`<span class="dim">Only beginnings are compared here.</span>`}
      ${change.pages.length === 1 && html`<button type="button" onClick=${() => setQuery({ page: change.pages[0] })}>The whole page</button>`}
      ${change.reference && html`<button type="button" onClick=${() => setQuery({ reference: change.reference })}>Open ${change.reference}</button>`}
    </p>
  </section>`;
}

function TurnView({ id, latest, query, setQuery }) {
  const turn = Number(query.turn);
  const offset = Number(query.changes ?? 0);
  const state = useApi(inside(id, `turns/${turn}/difference`), { offset, limit: CHANGES });
  const heading = useRef(null);
  useEffect(() => heading.current?.focus(), [turn]);
  const to = (next) => setQuery({ turn: next, changes: null, page: null, reference: null });
  return html`<nav class="row" aria-label="turns">
      <button type="button" onClick=${() => to(null)}>All turns</button>
      <button type="button" disabled=${turn <= 1} onClick=${() => to(turn - 1)}>Turn before</button>
      <button type="button" disabled=${turn >= latest} onClick=${() => to(turn + 1)}>Turn after</button>
    </nav>
    <h2 tabindex="-1" ref=${heading}>Turn ${turn}</h2>
    <${Loaded} state=${state}>${({ turn: row, ...found }) => html`
      <div class="figures">
        <${Figure} name="client sent" value=${row.whole ? tokens(row.whole) : "–"} note="tokens, estimated" />
        <${Figure} name="model saw" value=${row.whole ? tokens(row.sent) : "–"} note="tokens, estimated" />
        <${Figure} name="prompt" value=${tokens(row.prompt)} note=${row.is_measured ? "tokens, measured" : "tokens, counted by us"} />
        <${Figure} name="from the cache" value=${percent(row.prompt ? row.cache_read / row.prompt : 0)} note="measured" />
        <${Figure} name="paid" value=${dollars(row.dollars)} note=${row.is_measured ? "measured" : "counted by us"} />
        <${Figure} name="took" value=${row.seconds ? `${row.seconds.toFixed(1)} s` : "–"} note=${moment(row.started)} />
      </div>
      <div class="words">${row.came && html`<p><span class="who">in</span> ${row.came}</p>`}${row.said && html`<p><span class="who">out</span> ${row.said}</p>`}<${Happened} row=${row} /></div>
      <h3>What it added</h3><${Growth} rows=${row.grew} />
      ${found.retrievals.length > 0 && html`<h3>What the model asked back</h3><ul>${found.retrievals.map((each) => html`<li>${each}</li>`)}</ul>`}
      ${found.uses.length > 0 && html`<h3>Tools of hotset that it used</h3><ul>${found.uses.map((each) => html`<li>${each}</li>`)}</ul>`}
      ${found.tools.length > 0 && html`<h3>Tools beside the client's</h3><p>${found.tools.join(", ")}</p>`}
      <h3>What the client sent, and what the model saw</h3>
      ${found.total === 0 && found.hidden.length === 0 && html`<${Empty}>${found.is_planned ? "Looked at, and nothing was changed: it went out as it came." : "It went out as it came, byte for byte."}<//>`}
      ${found.total > 0 && html`<p class="dim">${plural(found.total, "part")} of this request ${found.total === 1 ? "was" : "were"} not sent as they came; everything else was. Those that this turn decided come first. “−” is what only the client sent, “+” what only the model saw.</p>`}
      ${found.changes.map((each, at) => html`<${Change} key=${each.pages[0] ?? at} change=${each} setQuery=${setQuery} />`)}
      <${Pager} offset=${offset} limit=${CHANGES} total=${found.total} onGo=${(next) => setQuery({ changes: next || null })} />
      ${found.hidden.length > 0 && html`<h3>Messages that the client never saw</h3>
        ${found.hidden.map((each) => html`<details class="card"><summary>${plural(each.texts.length, "message")} of turn ${each.turn}</summary>
          ${each.texts.map((text) => html`<pre tabindex="0"><ins>${text}</ins></pre>`)}</details>`)}`}
    `}<//>`;
}

function Search({ id, query, setQuery }) {
  const words = query.words ?? "";
  const state = useApi(words.trim() ? inside(id, "search") : null, { words });
  return html`<form class="row choices" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${SearchField} label="Find in this session" value=${words} onSearch=${(next) => setQuery({ words: next }, true)} /></form>
    ${!words.trim() ? html`<${Empty}>Type what you look for: words, a file, an error. It is found by meaning too.<//>` : html`<${Loaded} state=${state}>${(found) => html`
      ${found.note && html`<p class="dim">${found.note}</p>`}
      ${found.rows.length === 0 ? html`<${Empty}>Nothing found. Try other words.<//>` : html`<ol class="hits">${found.rows.map((row) => html`<li key=${row.page} class="card">
        <p><button type="button" class="link" onClick=${() => setQuery({ page: row.page })}>${row.tool} ${row.kind.replaceAll("_", " ")}</button>
          <span class="dim"> in </span><button type="button" class="link" onClick=${() => setQuery({ tab: "turns", turn: row.turn })}>turn ${row.turn}</button></p>
        ${row.lines.some((line) => line.text.trim()) && html`<pre tabindex="0">${row.lines.map((line) => html`<${Marked} line=${line} />`)}</pre>`}</li>`)}</ol>`}`}<//>`}`;
}

function Marked({ line }) {
  const parts = [];
  let at = 0;
  for (const [start, end] of line.marks) {
    if (start > at) parts.push(line.text.slice(at, start));
    parts.push(html`<mark>${line.text.slice(Math.max(at, start), end)}</mark>`);
    at = end;
  }
  return html`<span>${parts}${line.text.slice(at)}${"\n"}</span>`;
}

function Left({ id, query, setQuery, changed }) {
  const offset = Number(query.offset ?? 0);
  const state = useApi(inside(id, "references"), { offset, limit: TURNS }, changed);
  return html`<${Loaded} state=${state}>${(list) => (list.rows.length === 0
    ? html`<${Empty}>Nothing left this session's window.<//>`
    : html`<${Table} caption="Each line stands for pages that left; the model gets them back by its id" rows=${list.rows} onOpen=${(row) => setQuery({ reference: row.id })} columns=${[
        { title: "line", cell: (row) => row.id },
        { title: "turns", cell: (row) => (row.first === row.last ? row.first : `${row.first} to ${row.last}`) },
        { title: "pages", right: true, cell: (row) => number(row.pages) },
        { title: "tokens", right: true, cell: (row) => tokens(row.tokens) },
        { title: "about", cell: (row) => row.topics.join(", ") },
        { title: "left", cell: (row) => moment(row.time) },
      ]} /><${Pager} offset=${offset} limit=${TURNS} total=${list.total} onGo=${(next) => setQuery({ offset: next || null })} />`)}<//>`;
}

function Summaries({ id, changed }) {
  const state = useApi(inside(id, "summaries"), {}, changed);
  return html`<${Loaded} state=${state}>${(rows) => (rows.length === 0
    ? html`<${Empty}>No stretch of this session was summarised.<//>`
    : rows.map((row) => html`<section class="card"><h3>Turns ${row.first} to ${row.last}${row.branch ? `, branch ${row.branch}` : ""}</h3>
        <p class="prose">${row.text}</p><p class="dim">written by ${row.by}, ${moment(row.time)}</p></section>`))}<//>`;
}

function Family({ view, setQuery, go }) {
  return html`<h2>Sessions that belong together</h2>
    <ul class="family">${view.family.map((row) => html`<li key=${row.id}>
      ${row.id === view.id ? html`<strong aria-current="true"><${SessionName} row=${row} /> <span class="dim">(this one)</span></strong>` : html`<button type="button" class="link" onClick=${() => go("session", { id: row.id })}><${SessionName} row=${row} /></button>`}
      <span class="dim"> ${row.agent}, ${plural(row.turns, "turn")}, ${ago(row.last)}</span></li>`)}</ul>
    ${view.handoffs.length > 0 && html`<h2>Handoffs</h2><p class="dim">The agent's window began again with a state of its work; each successor goes on in this session.</p>
      <ol class="chain">${view.handoffs.map((each) => html`<li><details><summary>
        After turns ${each.turns}: a successor ${each.kind && `(${each.kind})`} goes on with <button type="button" class="link" onClick=${() => setQuery({ tab: "turns", turn: each.turn })}>turn ${each.turn}</button>, because ${each.reason || "its window was filled"}; ${tokens(each.tokens)} tokens left</summary>
        <pre tabindex="0">${each.text}</pre></details></li>`)}</ol>`}
    ${view.branches.length > 0 && html`<h2>Branches</h2><p class="dim">An edit, a rewind or a fork of the conversation opens a branch.</p>
      <ul>${view.branches.map((each) => html`<li>Branch ${each.branch} begins with <button type="button" class="link" onClick=${() => setQuery({ tab: "turns", turn: each.first })}>turn ${each.first}</button>, ${each.after ? `after turn ${each.after}` : "from the beginning"}</li>`)}</ul>`}`;
}

function Opened({ query, setQuery }) {
  const reference = useApi(query.reference ? `references/${encodeURIComponent(query.reference)}` : null, {});
  const page = useApi(query.page ? `pages/${encodeURIComponent(query.page)}` : null);
  const close = useRef(null);
  useEffect(() => { if (query.page || query.reference) close.current?.focus(); }, [query.page, query.reference]);
  if (!query.page && !query.reference) return null;
  const shut = () => setQuery(query.page ? { page: null } : { reference: null });
  return html`<aside class="opened card" aria-label="opened" onKeyDown=${(event) => event.key === "Escape" && shut()}>
    <p class="row"><strong>${query.page ? `Page ${query.page}` : `Line ${query.reference}`}</strong><button type="button" ref=${close} onClick=${shut}>Close</button></p>
    ${query.page ? html`<${Loaded} state=${page}>${(found) => html`
      <p class="dim">${found.page.tool} ${found.page.kind.replaceAll("_", " ")} of turn ${found.page.turn}, ${number(found.tokens)} tokens, shown as ${found.form}</p>
      <pre tabindex="0">${found.text}</pre>${found.is_cut && html`<p class="dim">The rest: hotset recall ${found.page.id}</p>`}
      ${found.asked_back.length > 0 && html`<h3>Asked back</h3><ul>${found.asked_back.map((each) => html`<li>${each}</li>`)}</ul>`}`}<//>`
    : html`<${Loaded} state=${reference}>${(found) => html`
      <p>Stands for ${plural(found.total, "page")} of turns ${found.reference.first} to ${found.reference.last}${found.reference.topics.length ? `, about ${found.reference.topics.join(", ")}` : ""}.</p>
      <ol>${found.rows.map((row) => html`<li key=${row.id}><button type="button" class="link" onClick=${() => setQuery({ page: row.id })}>${row.tool} ${row.kind.replaceAll("_", " ")}, turn ${row.turn}</button> <span class="dim">${row.head}</span></li>`)}</ol>
      ${found.total > found.rows.length && html`<p class="dim">and ${plural(found.total - found.rows.length, "more page")}: hotset recall ${found.reference.id}</p>`}`}<//>`}
  </aside>`;
}

export default function SessionView({ query, setQuery, go, changed }) {
  useStyle("sessions");
  useStyle("session");
  const id = query.id ?? "last";
  const tab = TABS.some(([name]) => name === query.tab) ? query.tab : "turns";
  const state = useApi(inside(id), {}, changed);
  const costs = useApi(state.data ? "costs" : null, { sessions: state.data?.id }, changed);
  const cost = costs.data?.[0];
  return html`<${Loaded} state=${state}>${(view) => html`
    <p class="row"><button type="button" class="link" onClick=${() => go("sessions")}>All sessions</button>
      <button type="button" class="link" onClick=${() => go("now", { session: view.id })}>Its window</button>
      <a href=${`${BASE}api/${inside(view.id, "export")}`} download=${`${view.id}.jsonl`}>Download it (JSON lines, secrets removed)</a></p>
    <h1>${view.title || view.id}</h1>
    <p class="dim">${[view.agent, view.model, view.id, view.key, `began ${moment(view.started)}`, `last used ${ago(view.last)}`].filter(Boolean).join(" · ")}</p>
    <div class="figures">
      <${Figure} name="turns" value=${number(view.turns)} note=${view.branches.length ? plural(view.branches.length + 1, "branch", "branches") : ""} />
      <${Figure} name="paid" value=${cost ? dollars(cost.spent) : costs.loading ? "…" : "–"} note=${cost && !cost.is_measured ? "partly counted by us" : "measured"} />
      <${Figure} name="full history" value=${cost ? dollars(cost.everything) : costs.loading ? "…" : "–"} note="estimated" />
      <${Figure} name="saved" value=${cost ? dollars(cost.saved) : costs.loading ? "…" : "–"} note=${cost ? `${percent(cost.saved_pct / 100)}, estimated` : "estimated"} tone=${cost && cost.saved > 0 ? "good" : ""} />
      <${Figure} name="from the cache" value=${cost ? percent(cost.cache_read_pct / 100) : "–"} note="of prompt tokens, measured" />
    </div>
    <${Failure} error=${costs.error} />
    <nav class="tabs" aria-label="parts of this session">${TABS.map(([name, label]) => html`<button type="button" aria-current=${tab === name ? "true" : undefined}
      onClick=${() => setQuery({ tab: name === "turns" ? null : name, turn: null, offset: null, changes: null, page: null, reference: null })}>${label}</button>`)}</nav>
    <${Opened} query=${query} setQuery=${setQuery} />
    ${tab === "turns" && (query.turn ? html`<${TurnView} id=${view.id} latest=${view.latest} query=${query} setQuery=${setQuery} />` : html`<${Turns} id=${view.id} query=${query} setQuery=${setQuery} changed=${changed} />`)}
    ${tab === "search" && html`<${Search} id=${view.id} query=${query} setQuery=${setQuery} />`}
    ${tab === "left" && html`<${Left} id=${view.id} query=${query} setQuery=${setQuery} changed=${changed} />`}
    ${tab === "summaries" && html`<${Summaries} id=${view.id} changed=${changed} />`}
    ${tab === "family" && html`<${Family} view=${view} setQuery=${setQuery} go=${go} />`}`}<//>`;
}
