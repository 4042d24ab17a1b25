// What is well and what is not: checks, what the proxy does, breakers, queues, caches, and what happened.
import {
  Empty, Figure, Loaded, Table, ago, bytes, html, moment, number, percent, plural, useApi, useState, useStyle,
} from "../lib.js";
import { Choice, Parts, SearchField } from "../parts.js";

export const title = "Health";

const LEVELS = { ok: ["well", "good"], warn: ["look at it", "warn"], fail: ["broken", "bad"] };
const ABOUT = { memory: "memory of the machine", folder: "data folder", token: "access token", disk: "disk", wal: "log of the latest changes", store: "what is kept", bypassed: "calls that went past hotset", keeping: "keeping", ballast: "reserve for a full disk", upstream: "where calls go", version: "version" };
const PRESSURE = { normal: ["enough", "good"], elevated: ["getting short", "warn"], high: ["short", "warn"], critical: ["very short", "bad"] };
const TYPES = { eviction: "left the window", compaction: "compacted by the client", retrieval: "asked back", bypass: "went past hotset", alert: "alert", checkpoint: "window filling", handoff: "handoff", prefetch: "offered ahead", tool: "tool", summary: "summary", memory: "memory", learning: "learning", order: "your order" };
const ms = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const span = (seconds) => (seconds < 3600 ? plural(Math.max(1, Math.round(seconds / 60)), "minute") : seconds < 172800 ? plural(Math.round(seconds / 3600), "hour") : plural(Math.round(seconds / 86400), "day"));

const Level = ({ level }) => html`<span class=${`chip ${LEVELS[level]?.[1] ?? ""}`}>${LEVELS[level]?.[0] ?? level}</span>`;

function Checks() {
  const [again, setAgain] = useState(0);
  const state = useApi("health/checks", {}, again);
  const worst = state.data?.[0]?.level ?? "ok";
  const bad = state.data?.filter((each) => each.level !== "ok").length ?? 0;
  return html`<section><div class="row"><button type="button" disabled=${state.loading} onClick=${() => setAgain(again + 1)}>Check again</button>
      ${state.data && html`<strong class=${LEVELS[worst][1]}>${bad === 0 ? "All is well." : `${plural(bad, "thing")} to look at.`}</strong>`}
      <span class="dim">How agents are connected is checked in a terminal: <code>hotset doctor</code></span></div>
    <${Loaded} state=${state}>${(rows) => html`<${Table} caption="Checks, the worst first" rows=${rows} keyOf=${(row, at) => at} columns=${[
      { title: "Is", cell: (row) => html`<${Level} level=${row.level} />` }, { title: "About", cell: (row) => ABOUT[row.about] ?? row.about },
      { title: "What was found", cell: (row) => row.says }, { title: "What to do", cell: (row) => row.todo || "–" },
    ]} />`}<//></section>`;
}

const Inside = ({ proxy }) => html`
  <h2>Safety switches</h2><p class="dim">After failures in a row a part is left alone for a while, and calls go on without it.</p>
  ${proxy.breakers.length === 0 ? html`<${Empty}>None was needed.<//>` : html`<${Table} caption="Safety switches (breakers)" rows=${proxy.breakers} keyOf=${(row, at) => at} columns=${[
    { title: "Part", cell: (row) => row.name }, { title: "State", cell: (row) => html`<span class=${`chip ${row.state === "closed" ? "good" : "bad"}`}>${row.state === "closed" ? "works" : row.state === "trying" ? "is tried again" : "left alone"}</span>` },
    { title: "Since", cell: (row) => (row.since ? moment(row.since) : "–") }, { title: "Why", cell: (row) => row.reason || "–" }, { title: "Tried again in", right: true, cell: (row) => (row.seconds_left ? `${Math.ceil(row.seconds_left)} s` : "–") },
  ]} />`}
  ${Object.keys(proxy.resting).length > 0 && html`<h2>Tool servers that rest</h2><ul>${Object.entries(proxy.resting).map(([name, why]) => html`<li><strong>${name}</strong>: ${why}</li>`)}</ul>`}
  <h2>Queues</h2><${Table} caption="Parts of the program, and what they hold; a part counts with those in it" rows=${proxy.scopes} keyOf=${(row, at) => at} columns=${[
    { title: "Part", cell: (row) => row.name.replace("process/", "") }, { title: "Threads", right: true, cell: (row) => number(row.threads) }, { title: "Tasks", right: true, cell: (row) => number(row.tasks) },
    { title: "Files", right: true, cell: (row) => number(row.files) }, { title: "Queued", right: true, cell: (row) => number(row.queued) }, { title: "Waiting for room", right: true, cell: (row) => html`<span class=${row.waiting ? "warn" : ""}>${number(row.waiting)}</span>` },
  ]} />
  <h2>Caches</h2><${Table} caption="What is kept in memory to answer faster; most of it gives way when memory is short" rows=${proxy.caches.filter((row) => row.entries)} keyOf=${(row) => row.name} columns=${[
    { title: "Cache", cell: (row) => row.name }, { title: "Entries", right: true, cell: (row) => number(row.entries) }, { title: "Size", right: true, cell: (row) => bytes(row.bytes) },
    { title: "Full", right: true, cell: (row) => percent(row.limit ? (row.unit === "bytes" ? row.bytes : row.entries) / row.limit : null) }, { title: "Gives way", cell: (row) => (row.shrinks ? "yes" : "no") },
  ]} />
  <p class="dim">${plural(proxy.caches.filter((row) => !row.entries).length, "more cache")} hold nothing now.</p>`;

/** Seconds since the epoch, and the value of a field for a date and a time. */
const toField = (seconds) => { if (!seconds) return ""; const at = new Date(seconds * 1000); return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16); };
const fromField = (value) => (value ? Math.round(new Date(value).getTime() / 1000) : "");

function Events({ query, setQuery, go, changed }) {
  const state = useApi("events", { type: query.type, session: query.session, text: query.text, since: query.since, until: query.until, before: query.before, limit: 50 }, query.before ? 0 : changed);
  const choose = (name) => (value) => setQuery({ [name]: value, before: "" });
  const types = [...new Set([...(state.data?.types ?? Object.keys(TYPES)), ...(query.type ? [query.type] : [])])];
  return html`<div class="filters"><${Choice} label="What" value=${query.type} onChoose=${choose("type")} choices=${[["", "everything"], ...types.map((each) => [each, TYPES[each] ?? each])]} />
      <${SearchField} label="With the words" value=${query.text} onSend=${choose("text")} button="Filter" />
      <${SearchField} label="Session" placeholder="id, or last" value=${query.session} onSend=${choose("session")} button="Filter" />
      <label class="field">From <input type="datetime-local" value=${toField(Number(query.since))} onChange=${(event) => choose("since")(fromField(event.target.value))} /></label>
      <label class="field">To <input type="datetime-local" value=${toField(Number(query.until))} onChange=${(event) => choose("until")(fromField(event.target.value))} /></label></div>
    <${Loaded} state=${state}>${(found) => html`${found.rows.length === 0 ? html`<${Empty}>${found.following ? "Not among those that were looked through; go on with Older." : "No such event."}<//>` : html`<div class="wide"><${Table} caption="What happened, the latest first" rows=${found.rows} keyOf=${(row) => row.number} columns=${[
      { title: "When", cell: (row) => html`<time datetime=${new Date(row.time * 1000).toISOString()} title=${moment(row.time)}>${ago(row.time)}</time>` }, { title: "Type", cell: (row) => html`<span class=${`chip ${row.type === "bypass" || row.type === "alert" ? "bad" : row.type === "eviction" ? "warn" : ""}`}>${TYPES[row.type] ?? row.type}</span>` },
      { title: "What happened", cell: (row) => row.says }, { title: "Where", cell: (row) => (row.session ? html`<button type="button" class="link" onClick=${() => go("session", { id: row.session, turn: row.turn || "" })}>${row.session.slice(0, 9)}${row.turn ? `, turn ${row.turn}` : ""}</button>` : "–") },
    ]} /></div>`}
      <nav class="pager" aria-label="pages"><button type="button" disabled=${!query.before} onClick=${() => setQuery({ before: "" })}>Newest</button><button type="button" disabled=${found.following === null} onClick=${() => setQuery({ before: found.following })}>Older</button></nav>`}<//>`;
}

export default function Health({ query, setQuery, go, changed }) {
  useStyle("parts");
  const state = useApi("health", {}, changed);
  const part = query.part ?? "checks";
  return html`<div class="parted"><h1>Health</h1><${Loaded} state=${state}>${({ proxy }) => {
    const memory = proxy?.memory;
    return html`${proxy && html`<div class="figures">
        <${Figure} name="Keeps what goes through" value=${proxy.store === "ok" ? "yes" : "no"} note=${proxy.store === "ok" ? `for ${span(proxy.uptime)}` : proxy.store} tone=${proxy.store === "ok" ? "good" : "bad"} />
        <${Figure} name="Calls" value=${number(proxy.requests)} note=${proxy.requests ? `${number(proxy.kept)} kept, the last ${ago(proxy.last)}` : "since it was started"} />
        <${Figure} name="Went past hotset" value=${number(proxy.bypassed)} note="unchanged, after an error of ours" tone=${proxy.bypassed ? "bad" : ""} />
        <${Figure} name="Added wait" value=${proxy.requests ? ms(proxy.wait.p50_ms) : "–"} note=${proxy.requests ? `measured, half of the calls; 99 of 100: ${ms(proxy.wait.p99_ms)}; longest: ${ms(proxy.wait.longest_ms)}` : "no call yet"} />
        <${Figure} name="Memory of the machine" value=${(PRESSURE[memory.level] ?? [memory.level])[0]} note=${`${bytes(memory.used)} used${memory.limit ? ` of ${bytes(memory.limit)}` : ""}`} tone=${PRESSURE[memory.level]?.[1] ?? "warn"} />
        <${Figure} name="Still being written" value=${number(proxy.keeping)} note=${`${number(proxy.late)} went on before they were on disk`} /></div>`}
      <${Parts} label="parts of health" shown=${part} onShow=${(name) => setQuery({ part: name === "checks" ? "" : name, before: "" })} parts=${[["checks", "Checks"], ["events", "What happened"], ["inside", "Inside"]]} />
      ${part === "checks" && html`<${Checks} />`}${part === "events" && html`<${Events} query=${query} setQuery=${setQuery} go=${go} changed=${changed} />`}
      ${part === "inside" && (proxy ? html`<${Inside} proxy=${proxy} />` : html`<${Empty}>No proxy serves this project now.<//>`)}`;
  }}<//></div>`;
}
