// Savings: what was paid and what it would have been, in groups, over days; why prefixes broke.
import { Empty, Figure, Loaded, Pager, Plot, Table, dollars, html, number, percent, plural, tokens, useApi, useMemo, useState, useStyle } from "../lib.js";

export const title = "Savings";

const GROUPS = [["day", "day"], ["session", "session"], ["client", "client"], ["model", "model"], ["project", "project"]];
const SPANS = [[1, "today"], [7, "7 days"], [30, "30 days"], [90, "90 days"], [0, "ever"]];
const LIMIT = 50;

/** The first moment of a day as it is written, in the reader's time. */
const seconds = (day) => new Date(`${day}T00:00:00`).getTime() / 1000;

const round = (value) => dollars(value).replace(/\.00$/, "");

function Days({ days }) {
  const x = useMemo(() => days.map((each) => seconds(each.name)), [days]);
  const series = useMemo(() => [
    { label: "paid (measured)", values: days.map((each) => each.spent), stroke: "--accent" },
    { label: "full history (estimated)", values: days.map((each) => each.everything), stroke: "--warn", dash: [6, 4] },
  ], [days]);
  if (days.length < 2) return null;
  return html`<h2>Day by day</h2>
    <${Plot} x=${x} series=${series} time=${true} format=${round} label="dollars paid a day, and what sending everything would have cost; grouped by day, the table below has the same figures" />`;
}

function Groups({ view, query, setQuery, go }) {
  const named = {
    day: (row) => row.name,
    session: (row) => row.title || row.name || "no session",
    client: (row) => row.name || "unknown",
    model: (row) => row.name,
    project: (row) => row.name,
  }[view.by];
  const columns = [
    { title: GROUPS.find(([key]) => key === view.by)[1], cell: named },
    { title: "turns", right: true, cell: (row) => number(row.turns) },
    { title: "paid", right: true, cell: (row) => html`${dollars(row.spent)}${row.unmeasured ? html` <abbr title=${`${plural(row.unmeasured, "turn")} without a report of the provider: counted by us`}>≈</abbr>` : ""}` },
    { title: "full history, estimated", right: true, cell: (row) => dollars(row.everything) },
    { title: "saved, estimated", right: true, cell: (row) => html`${dollars(row.saved)} <span class="dim">${percent(row.saved_pct / 100)}</span>` },
    { title: "prompts", right: true, cell: (row) => tokens(row.prompt) },
    { title: "from the cache", right: true, cell: (row) => percent(row.cache_read_pct / 100) },
    { title: "began anew", right: true, cell: (row) => number(row.breaks) },
  ];
  const offset = Number(query.offset ?? 0);
  return html`<${Table} caption=${`By ${view.by}. Paid is what the provider measured, at list prices; the rest is estimated.`}
      columns=${columns} rows=${view.rows} keyOf=${(row) => row.name}
      onOpen=${view.by === "session" ? (row) => go("session", { id: row.name }) : undefined} />
    <${Pager} offset=${offset} limit=${LIMIT} total=${view.total} onGo=${(next) => setQuery({ offset: next || null })} />`;
}

function Breaks({ rows }) {
  if (rows.length === 0) return html`<p>Every prompt extended the one before it, so the provider's cache could be used.</p>`;
  return html`<p class="dim">A provider charges little for the part of a prompt that is the same as before. Where a prompt begins anew, that part is paid for again.</p>
    <${Table} caption="Why prompts began anew; tokens and dollars are estimated" rows=${rows} keyOf=${(row) => row.cause} columns=${[
      { title: "because", cell: (row) => row.words },
      { title: "turns", right: true, cell: (row) => number(row.turns) },
      { title: "tokens sent anew", right: true, cell: (row) => tokens(row.tokens) },
      { title: "cost more", right: true, cell: (row) => dollars(row.dollars) },
    ]} />`;
}

function Control({ control }) {
  if (!control) {
    return html`<p>Estimates can be checked: have a share of your sessions go out unchanged, and compare. <code>hotset learn trial off=10%</code></p>`;
  }
  const figures = [
    html`<${Figure} name="with hotset" value=${percent(control.cost)} note=${`of full history, ${plural(control.sessions, "session")}`} />`,
    html`<${Figure} name="unchanged on purpose" value=${percent(control.control_cost)} note=${`of full history, ${plural(control.controls, "session")}`} />`,
  ];
  const known = control.saved_pct !== null;
  return html`<div class="figures">${figures}
    ${known && html`<${Figure} name="cheaper by, measured" value=${percent(control.saved_pct / 100)} note=${`between ${percent(control.low_pct / 100)} and ${percent(control.high_pct / 100)}${control.low_pct <= 0 ? ": not yet sure" : ""}`} />`}</div>
    ${!known && html`<p class="dim">Too few sessions to compare yet.</p>`}`;
}

function BigWindow({ big }) {
  return html`<div class="figures">
      <${Figure} name=${`full history in a window of ${tokens(big.tokens)} tokens`} value=${dollars(big.dollars)} note="estimated" />
      <${Figure} name="paid instead" value=${dollars(big.spent)} note="measured" />
    </div>
    <p class="dim">Every turn's full history at the same model's list prices and cache rules (long prompts dearer where the provider says so), set right by what the provider measured.
      ${big.over > 0 ? ` ${plural(big.over, "turn")} would not have fitted even there.` : ""}
      ${big.too_long > 0 ? ` ${plural(big.too_long, "turn")} would not have fitted into the model's own window.` : ""}</p>`;
}

export default function SavingsView({ query, setQuery, go }) {
  useStyle("savings");
  const by = GROUPS.some(([key]) => key === query.by) ? query.by : "day";
  const days = query.days ?? "30";
  const [looks, setLooks] = useState(0);
  const state = useApi("savings", { by, days, offset: query.offset, limit: LIMIT }, looks);
  return html`<h1>Savings</h1>
    <div class="row choices">
      <label>Group by <select value=${by} onChange=${(event) => setQuery({ by: event.target.value, offset: null })}>
        ${GROUPS.map(([key, name]) => html`<option value=${key} selected=${key === by}>${name}</option>`)}</select></label>
      <label>Since <select value=${days} onChange=${(event) => setQuery({ days: event.target.value, offset: null })}>
        ${SPANS.map(([key, name]) => html`<option value=${key} selected=${String(key) === days}>${name}</option>`)}</select></label>
      <button type="button" onClick=${() => setLooks(looks + 1)}>Add up again</button>
    </div>
    <${Loaded} state=${state}>${(view) => (view.all.turns === 0
      ? html`<${Empty}>No turn was paid for in this time. Start a session with: hotset wrap AGENT<//>`
      : html`<div class="figures">
          <${Figure} name="paid" value=${dollars(view.all.spent)} note=${view.all.unmeasured ? `measured, ${plural(view.all.unmeasured, "turn")} counted by us` : "measured"} />
          <${Figure} name="full history" value=${dollars(view.all.everything)} note="estimated" />
          <${Figure} name="saved" value=${dollars(view.all.saved)} note=${`${percent(view.all.saved_pct / 100)}, estimated`} tone=${view.all.saved >= 0 ? "good" : "bad"} />
          <${Figure} name="read from the provider's cache" value=${percent(view.all.cache_read_pct / 100)} note="of prompt tokens, measured" />
          <${Figure} name="turns" value=${number(view.all.turns)} note=${`${number(view.all.breaks)} began anew`} />
        </div>
        ${view.unlisted.length > 0 && html`<p class="warn">No list price is known for ${view.unlisted.join(", ")}: a guess is used instead.</p>`}
        <${Days} days=${view.days} />
        <h2>By ${by}</h2><${Groups} view=${view} query=${query} setQuery=${setQuery} go=${go} />
        <h2>Why prompts began anew</h2><${Breaks} rows=${view.breaks} />
        <h2>Checked against sessions without hotset</h2><${Control} control=${view.control} />
        <h2>What a larger window would have cost</h2><${BigWindow} big=${view.big_window} />`)}<//>`;
}
