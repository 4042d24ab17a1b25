// The tools that agents can use: how each fares, what waits for a yes, what runs, which go together.
import {
  ActButton, Empty, Figure, Loaded, Pager, Table, ago, bytes, html, moment, number, percent, plural, useApi, useStyle,
} from "../lib.js";
import { Choice, DiffText, GraphPicture, Parts, SearchField, useOrders } from "../parts.js";

export const title = "Tools";

const SIZE = 50;
const TIERS = {
  hot: ["used often", "--bad"], warm: ["used sometimes", "--call"], cold: ["used rarely", "--result"],
  probation: ["never used yet", "--thinking"], protected: ["kept by you", "--good"], "": ["not known any more", "--dim"],
};
const STATES = { ready: "can be used", changed: "changed, waits for you", flagged: "looks odd, waits for you", denied: "forbidden", unapproved: "new, waits for you", gone: "gone from its source" };
const ORIGINS = { server: "a server (MCP)", skill: "a skill", created: "written by an agent", callable: "a function of a program" };

const span = (seconds) => (seconds < 3600 ? plural(Math.ceil(seconds / 60), "minute") : seconds < 172800 ? plural(Math.round(seconds / 3600), "hour") : plural(Math.round(seconds / 86400), "day"));

const State = ({ row }) => html`<span class=${`chip ${row.state === "ready" ? "good" : row.state === "denied" || row.state === "gone" ? "bad" : "warn"}`}>${STATES[row.state] ?? row.state}</span>${
  row.status === "inactive" && html` <span class="chip">asleep</span>`}`;

const Heat = ({ row }) => html`<span class="nowrap"><span class="meter" aria-hidden="true"><span style=${{ width: `${100 * (row.calls || row.pinned ? row.score : 0)}%` }}></span></span>${TIERS[row.tier]?.[0] ?? row.tier}</span>`;

const stays = (row) => (row.ttl_left === null ? (row.pinned ? "always" : "–") : `${span(row.ttl_left)} unless it is used`);

const PinButton = ({ row, order }) => html`<${ActButton} label=${row.pinned ? "Unpin" : "Pin"} title=${row.pinned ? "It may fall asleep again" : "Keep it: it never falls asleep"}
  onAct=${() => order({ act: row.pinned ? "unpin" : "pin", name: row.name })} />`;

const DenyButton = ({ row, order }) => (row.state === "denied"
  ? html`<${ActButton} label="Allow" onAct=${() => order({ act: "allow", name: row.name })} />`
  : html`<${ActButton} label="Deny" sure="Agents will neither find nor call it." onAct=${() => order({ act: "deny", name: row.name })} />`);

function Approvals({ order, again, changed }) {
  const state = useApi("tools/approvals", {}, changed + again);
  if (!state.data || state.data.total === 0) return null;
  return html`<section aria-labelledby="waiting"><h2 id="waiting">Waiting for your decision: ${state.data.total}</h2>
    <p class="dim">No tool runs unseen. Read what it says now; agents get it after your yes.</p>
    ${state.data.rows.map((each) => html`<article class="card" key=${each.name}>
      <h3>${each.name} <span class="chip warn">${STATES[each.state] ?? each.state}</span></h3>
      <p>${each.why.split("; a person can")[0]}.</p>
      ${each.warnings.map((warning) => html`<p class="warn">${warning}</p>`)}
      <${DiffText} text=${each.text} isDiff=${each.is_diff} />
      <div class="row"><${ActButton} label="Approve" onAct=${() => order({ act: "approve", name: each.name, seen: each.seen })} />
        <${ActButton} label="Deny" sure="Agents will neither find nor call it." onAct=${() => order({ act: "deny", name: each.name })} /></div>
    </article>`)}
  </section>`;
}

function Library({ query, setQuery, order, again, changed }) {
  const offset = Number(query.offset ?? 0);
  const params = { text: query.text, source: query.source, state: query.state, order: query.order, offset, limit: SIZE };
  const state = useApi("tools/list", params, changed + again);
  const choose = (name) => (value) => setQuery({ [name]: value, offset: "" });
  const columns = [
    { title: "Tool", cell: (row) => row.name },
    { title: "Use", cell: (row) => html`<${Heat} row=${row} />` },
    { title: "Calls", right: true, cell: (row) => number(row.calls) },
    { title: "Failed", right: true, cell: (row) => (row.failures ? html`<span class="bad">${number(row.failures)}</span>` : "0") },
    { title: "Last used", cell: (row) => (row.last_used ? ago(row.last_used) : "never") },
    { title: "State", cell: (row) => html`<${State} row=${row} />` },
    { title: "Stays", cell: stays },
    { title: "What it does", cell: (row) => row.says },
    { title: "Decide", cell: (row) => html`<span class="row nowrap"><${PinButton} row=${row} order=${order} /><${DenyButton} row=${row} order=${order} /></span>` },
  ];
  return html`<div class="filters">
      <${SearchField} label="Search tools" value=${query.text} onSend=${choose("text")} />
      <${Choice} label="Source" value=${query.source} onChoose=${choose("source")} choices=${[["", "all"], ...(state.data?.sources ?? []).map((each) => [each, each])]} />
      <${Choice} label="State" value=${query.state} onChoose=${choose("state")} choices=${[["", "all"], ["active", "awake"], ["inactive", "asleep"], ["pinned", "kept by you"], ...Object.entries(STATES)]} />
      <${Choice} label="Order" value=${query.order} onChoose=${choose("order")} choices=${[["", "most used lately"], ["calls", "most calls"], ["failures", "most failures"], ["name", "name"]]} />
    </div>
    <${Loaded} state=${state}>${(found) => (found.total === 0
      ? html`<${Empty}>${query.text || query.source || query.state ? "No tool fits; ask for fewer things at once." : html`No tool is known yet. Add some in a terminal: <code>hotset tools import</code> takes over the servers of your other programs.`}<//>`
      : html`<div class="wide"><${Table} caption=${plural(found.total, "tool")} columns=${columns} rows=${found.rows} keyOf=${(row) => row.name} onOpen=${(row) => setQuery({ tool: row.name })} /></div>
        <${Pager} offset=${offset} limit=${SIZE} total=${found.total} onGo=${(to) => setQuery({ offset: to || "" })} />`)}<//>`;
}

function Running({ data, order }) {
  return html`${data.running.length === 0
    ? html`<${Empty}>Nothing runs. A server is started when one of its tools is called, and stopped when it is idle.<//>`
    : html`<${Table} caption=${`${data.running.length} of at most ${data.limit} run`} rows=${data.running} keyOf=${(row, at) => at} columns=${[
      { title: "Server", cell: (row) => row.source },
      { title: "Process", right: true, cell: (row) => row.pid ?? "elsewhere" },
      { title: "Memory", right: true, cell: (row) => (row.bytes ? bytes(row.bytes) : "–") },
      { title: "Calls", right: true, cell: (row) => number(row.calls) },
      { title: "Started", cell: (row) => ago(row.since) },
      { title: "For", cell: (row) => (row.session ? `${row.whose}, session ${row.session.slice(0, 13)}` : row.whose || "all sessions") },
    ]} />`}
    ${data.troubles.length > 0 && html`<h2>Troubles</h2><ul>${data.troubles.map((each) => html`<li class="warn">${each}</li>`)}</ul>`}
    <h2>Tools that agents wrote</h2>
    <p>${data.creates ? `${data.created} of at most ${data.capacity} are kept.` : "Agents may not write tools of their own here (create in [tools])."}${data.next_to_leave && ` Next to leave: ${data.next_to_leave}.`}</p>
    ${data.deleted.length > 0 && html`<${Table} caption="Deleted; each can come back" rows=${data.deleted} keyOf=${(row) => row.name} columns=${[
      { title: "Tool", cell: (row) => row.name }, { title: "Deleted", cell: (row) => moment(row.time) },
      { title: "Decide", cell: (row) => html`<${ActButton} label="Restore" onAct=${() => order({ act: "restore", name: row.name })} />` },
    ]} />`}`;
}

function Graph({ setQuery, again }) {
  const state = useApi("tools/graph", {}, again);
  return html`<${Loaded} state=${state}>${(graph) => (graph.edges.length === 0
    ? html`<${Empty}>No two tools were used together yet.<//>`
    : html`<p class="dim">A line joins tools that are used one after the other, or that need each other; dashed: they only resemble each other. A larger dot was used more lately.</p>
      <${GraphPicture} graph=${graph} tones=${TIERS} label="which tools go together" onOpen=${(name) => setQuery({ tool: name })} />`)}<//>`;
}

function OneTool({ name, setQuery, order, again }) {
  const state = useApi(`tools/tool/${encodeURIComponent(name)}`, {}, again);
  return html`<p><button type="button" class="link" onClick=${() => setQuery({ tool: "" })}>All tools</button></p>
    <${Loaded} state=${state}>${(found) => {
      const row = found.row;
      let parameters = found.parameters;
      try { parameters = JSON.stringify(JSON.parse(parameters), null, 2); } catch { /* as it is */ }
      return html`<h2>${row.name}</h2>
        <div class="row"><${State} row=${row} /><${Heat} row=${row} /><${PinButton} row=${row} order=${order} /><${DenyButton} row=${row} order=${order} /></div>
        ${row.why && html`<p class="warn">${row.why}</p>`}${found.warnings.map((each) => html`<p class="warn">${each}</p>`)}
        <div class="figures">
          <${Figure} name="Calls" value=${number(row.calls)} note="measured" />
          <${Figure} name="Failed" value=${row.calls ? percent(row.failures / row.calls) : "–"} note=${plural(row.failures, "call")} />
          <${Figure} name="A call takes" value=${row.calls ? `${(row.seconds / row.calls).toFixed(2)} s` : "–"} note="in the mean" />
          <${Figure} name="Last used" value=${row.last_used ? ago(row.last_used) : "never"} />
          <${Figure} name="Stays" value=${stays(row)} />
          <${Figure} name="Comes from" value=${row.source} note=${ORIGINS[row.origin] ?? row.origin} />
        </div>
        <div class="two"><section class="card"><h3>What it says of itself</h3><pre tabindex="0">${found.description || "nothing"}</pre>
          <details><summary>Its arguments (JSON schema)</summary><pre tabindex="0">${parameters}</pre></details></section>
        <section class="card"><h3>Goes with</h3>${found.goes_with.length === 0 ? html`<${Empty}>Nothing yet.<//>` : html`<ul class="plain">${found.goes_with.map((each) => html`<li>
          <button type="button" class="link" onClick=${() => setQuery({ tool: each.other })}>${each.other}</button> <span class="dim">${each.why.join(", ")}, ${percent(each.weight)}</span></li>`)}</ul>`}</section></div>`;
    }}<//>`;
}

export default function Tools({ query, setQuery, changed }) {
  useStyle("parts");
  const [notice, order, again] = useOrders("tools/act");
  const state = useApi("tools", {}, changed + again);
  const part = query.part ?? "library";
  return html`<div class="parted"><h1>Tools</h1>${notice}
    <${Loaded} state=${state}>${(data) => html`
      <div class="figures">
        <${Figure} name="Known tools" value=${number(data.tools)} note=${`of ${plural(data.sources, "source")}`} />
        <${Figure} name="Awake" value=${number(data.active)} note="found first" />
        <${Figure} name="Asleep" value=${number(data.inactive)} note="unused for long; still found" />
        <${Figure} name="Kept by you" value=${number(data.pinned)} note=${`also by name: ${data.pins.join(", ") || "none"}`} />
        <${Figure} name="Running now" value=${number(data.running.length)} note=${data.running.length ? bytes(data.running.reduce((sum, each) => sum + each.bytes, 0)) : `at most ${data.limit}`} />
        <${Figure} name="Waiting for you" value=${number(data.waiting)} tone=${data.waiting ? "warn" : ""} />
      </div>
      ${query.tool ? html`<${OneTool} name=${query.tool} setQuery=${setQuery} order=${order} again=${again} />` : html`
        ${data.waiting > 0 && html`<${Approvals} order=${order} again=${again} changed=${changed} />`}
        <${Parts} label="parts of tools" shown=${part} onShow=${(name) => setQuery({ part: name === "library" ? "" : name })}
          parts=${[["library", "Library"], ["running", "What runs", data.troubles.length || data.running.length], ["graph", "What goes together"]]} />
        ${part === "library" && html`<${Library} query=${query} setQuery=${setQuery} order=${order} again=${again} changed=${changed} />`}
        ${part === "running" && html`<${Running} data=${data} order=${order} />`}
        ${part === "graph" && html`<${Graph} setQuery=${setQuery} again=${again} />`}`}`}<//></div>`;
}
