// Sessions: families, the one used last first; found by words and by agent on the server.
import { Empty, Loaded, Pager, Table, ago, dollars, html, moment, number, percent, plural, useApi, useEffect, useMemo, useRef, useState, useStyle } from "../lib.js";

export const title = "Sessions";

const LIMIT = 30;
const WAIT = 250; // milliseconds behind the last key

const KIN = { subagent: "subagent", continuation: "continues it" };

/** A session's name with its place in its family. */
export function SessionName({ row }) {
  const name = row.title || row.id;
  return html`<span class=${`kin depth-${Math.min(row.depth, 8)}`}>${row.depth > 0 && html`<span aria-hidden="true">└ </span>`}${name}
    ${row.depth > 0 && html` <span class="tag">${KIN[row.kinship] ?? row.kinship}</span>`}
    ${row.handoffs > 0 && html` <span class="tag">${plural(row.handoffs, "handoff")}</span>`}</span>`;
}

/** Text that asks the server once its writer pauses. */
export function SearchField({ label, value, onSearch }) {
  const given = value ?? "";
  const asked = useRef(given); // what was typed here, and is in the address by now
  const [typed, setTyped] = useState(given);
  const search = (words) => {
    if (words === asked.current) return;
    asked.current = words;
    onSearch(words);
  };
  useEffect(() => {
    if (given !== asked.current) {
      asked.current = given;
      setTyped(given);
    }
  }, [given]);
  useEffect(() => {
    const timer = setTimeout(() => search(typed), WAIT);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<label>${label} <input type="search" value=${typed} maxlength="300" onInput=${(event) => setTyped(event.target.value)}
    onKeyDown=${(event) => event.key === "Enter" && search(typed)} /></label>`;
}

export default function SessionsView({ query, setQuery, go, changed }) {
  useStyle("sessions");
  const offset = Number(query.offset ?? 0);
  const state = useApi("sessions", { words: query.words, agent: query.agent, offset, limit: LIMIT }, changed);
  const ids = state.data?.rows.map((row) => row.id).join(",");
  const costs = useApi(ids ? "costs" : null, { sessions: ids }, changed);
  const costOf = useMemo(() => new Map((costs.data ?? []).map((each) => [each.session, each])), [costs.data]);
  const paid = (row) => {
    const cost = costOf.get(row.id);
    if (!cost) return costs.loading ? "…" : "–";
    return html`${dollars(cost.spent)}${cost.is_measured ? "" : html` <abbr title="the provider reported no usage for some turns: counted by us">≈</abbr>`}`;
  };
  const saved = (row) => {
    const cost = costOf.get(row.id);
    return cost ? html`${dollars(cost.saved)} <span class="dim">${percent(cost.saved_pct / 100)}</span>` : costs.loading ? "…" : "–";
  };
  const columns = [
    { title: "session", cell: (row) => html`<${SessionName} row=${row} />` },
    { title: "agent", cell: (row) => row.agent },
    { title: "last used", cell: (row) => html`<time title=${moment(row.last)}>${ago(row.last)}</time>` },
    { title: "turns", right: true, cell: (row) => number(row.turns) },
    { title: "model", cell: (row) => row.model },
    { title: "paid", right: true, cell: paid },
    { title: "saved, estimated", right: true, cell: saved },
  ];
  return html`<h1>Sessions</h1>
    <form class="row choices" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${SearchField} label="Find" value=${query.words} onSearch=${(words) => setQuery({ words, offset: null }, true)} />
      <label>Agent <select value=${query.agent ?? ""} onChange=${(event) => setQuery({ agent: event.target.value, offset: null })}>
        <option value="">all</option>
        ${(state.data?.agents ?? []).map((agent) => html`<option value=${agent} selected=${agent === query.agent}>${agent}</option>`)}</select></label>
    </form>
    <${Loaded} state=${state}>${(list) => (list.rows.length === 0
      ? html`<${Empty}>${query.words || query.agent ? "No session fits. Try fewer words, or all agents." : "No session is kept yet. Start one with: hotset wrap AGENT"}<//>`
      : html`<div class="sessions"><${Table}
          caption=${list.is_tree ? `${plural(list.total, "task")}: the one used last first, subagents and continued sessions below the session they belong to` : plural(list.total, "session found", "sessions found")}
          columns=${columns} rows=${list.rows} keyOf=${(row) => row.id} onOpen=${(row) => go("session", { id: row.id })} /></div>
        ${list.rows.filter((row) => row.left_out > 0).map((row) => html`<p class="dim">${row.title || row.id}: ${plural(row.left_out, "more session")} below it; find them by their words.</p>`)}
        <${Pager} offset=${offset} limit=${LIMIT} total=${list.total} onGo=${(next) => setQuery({ offset: next || null })} />`)}<//>`;
}
