// What every view uses: the API, formats, and small pieces of pages.
import {
  html, useCallback, useEffect, useMemo, useRef, useState,
} from "./vendor/preact-htm.js";

export * from "./vendor/preact-htm.js";

/** The path of this project's dashboard, with a slash at its end: it names the project, so that tabs of two projects never mix. */
export const BASE = new URL(".", import.meta.url).pathname;
const API = `${BASE}api/`;

/** The answer of the API as JSON; throws an Error with the server's sentence. */
export async function api(path, params = {}, options = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const query = new URLSearchParams(given).toString();
  const answer = await fetch(API + path + (query ? `?${query}` : ""), { credentials: "same-origin", ...options });
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) {
    throw new Error(answer.status === 401 ? "this page was closed by the server; open it again with: hotset open" : body.error?.message ?? body.error);
  }
  return body;
}

/** Changes something; resolves to the API's answer. */
export function act(path, body) {
  return api(path, {}, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

/** {data, error, loading}; asks again when `path`, `params` or `changed` change. The last data stays while it loads. */
export function useApi(path, params = {}, changed = 0) {
  const [state, setState] = useState({ data: null, error: "", loading: true });
  const key = path && JSON.stringify([path, params]);
  useEffect(() => {
    if (!path) {
      setState({ data: null, error: "", loading: false });
      return undefined;
    }
    let live = true;
    setState((before) => ({ ...before, loading: true }));
    api(path, params).then(
      (data) => live && setState({ data, error: "", loading: false }),
      (error) => live && setState((before) => ({ data: before.key === key ? before.data : null, error: error.message, loading: false })),
    );
    return () => { live = false; };
  }, [key, changed]);
  return state;
}

const whole = new Intl.NumberFormat("en-US");

export const number = (value) => (value === null || value === undefined ? "–" : whole.format(Math.round(value)));

/** 12,345 tokens as `12.3k`. */
export function tokens(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10_000) return whole.format(Math.round(value));
  if (Math.abs(value) < 1_000_000) return `${(value / 1000).toFixed(1)}k`;
  return `${(value / 1e6).toFixed(2)}M`;
}

export function dollars(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size > 0 && size < 0.0001) return "under $0.0001";
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 3 : 4;
  return `${value < 0 ? "-" : ""}$${size.toFixed(digits)}`;
}

export const percent = (share, digits = 0) => (share === null || share === undefined || Number.isNaN(share) ? "–" : `${(100 * share).toFixed(digits)} %`);

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB"];
  let size = value ?? 0;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** Seconds since the epoch as the reader's own date and time. */
export const moment = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "–");

export function ago(seconds) {
  if (!seconds) return "–";
  const gone = Math.max(0, Date.now() / 1000 - seconds);
  if (gone < 60) return "just now";
  if (gone < 3600) return `${Math.floor(gone / 60)} min ago`;
  if (gone < 86_400) return `${Math.floor(gone / 3600)} h ago`;
  return `${Math.floor(gone / 86_400)} d ago`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** Loads `views/NAME.css` once. */
export function useStyle(name) {
  useEffect(() => {
    const href = `${BASE}views/${name}.css`;
    if ([...document.styleSheets].some((each) => each.href?.endsWith(href)) || document.querySelector(`link[href="${href}"]`)) return;
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    document.head.append(link);
  }, [name]);
}

/** A sentence where there is nothing to show, and what to do. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export const Failure = ({ error }) => (error ? html`<p class="failure" role="alert">${error}</p>` : null);

/** Shows the data of `useApi`, its error, or that it loads. */
export function Loaded({ state, children }) {
  if (state.error) return html`<${Failure} error=${state.error} />`;
  if (state.data === null) return html`<p class="loading" role="status">Loading …</p>`;
  return children(state.data);
}

/** columns: [{title, cell: row => node, right?, sort?}]. A row with `onOpen` opens by click and Enter. */
export function Table({ caption, columns, rows, onOpen, keyOf = (row, at) => row.id ?? at }) {
  return html`<div class="scroll" tabindex=${onOpen ? undefined : "0"}><table>
    ${caption && html`<caption><span>${caption}</span></caption>`}
    <thead><tr>${columns.map((each) => html`<th scope="col" class=${each.right ? "right" : ""}>${each.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, at) => html`<tr key=${keyOf(row, at)} class=${onOpen ? "opens" : ""}>
      ${columns.map((each, index) => html`<td class=${each.right ? "right" : ""}>${
        onOpen && index === 0
          ? html`<button type="button" class="link" onClick=${() => onOpen(row)}>${each.cell(row)}</button>`
          : each.cell(row)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

/** Pages of a list that the server cuts: `{rows, total}`. */
export function Pager({ offset, limit, total, onGo }) {
  if (total <= limit) return null;
  return html`<nav class="pager" aria-label="pages">
    <button type="button" disabled=${offset === 0} onClick=${() => onGo(Math.max(0, offset - limit))}>Newer</button>
    <span>${number(offset + 1)}–${number(Math.min(total, offset + limit))} of ${number(total)}</span>
    <button type="button" disabled=${offset + limit >= total} onClick=${() => onGo(offset + limit)}>Older</button>
  </nav>`;
}

/** A figure with its name; `note` says whether it is measured or estimated. */
export const Figure = ({ name, value, note, tone }) => html`<div class=${`figure ${tone ?? ""}`}>
  <span class="name">${name}</span><strong>${value}</strong>${note && html`<span class="note">${note}</span>`}
</div>`;

/** A button that asks once more before it acts, and says what went wrong. `onAct` returns a promise of a sentence, or nothing. */
export function ActButton({ label, sure, onAct, disabled, title }) {
  const [state, setState] = useState({ step: "rest", says: "" });
  const run = useCallback(() => {
    setState({ step: "busy", says: "" });
    Promise.resolve(onAct()).then(
      (says) => setState({ step: "rest", says: says ?? "" }),
      (error) => setState({ step: "rest", says: error.message }),
    );
  }, [onAct]);
  if (state.step === "ask") {
    return html`<span class="act"><span>${sure}</span>
      <button type="button" onClick=${run}>Yes, ${label.toLowerCase()}</button>
      <button type="button" onClick=${() => setState({ step: "rest", says: "" })}>Cancel</button></span>`;
  }
  return html`<span class="act"><button type="button" title=${title} disabled=${disabled || state.step === "busy"}
    onClick=${() => (sure ? setState({ step: "ask", says: "" }) : run())}>${label}</button>
    ${state.says && html`<span role="status">${state.says}</span>`}</span>`;
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Grows when the page turns dark or light: colours of pictures are read anew. */
function useScheme() {
  const [turns, setTurns] = useState(0);
  useEffect(() => {
    const turn = () => setTurns((before) => before + 1);
    dark.addEventListener("change", turn);
    return () => dark.removeEventListener("change", turn);
  }, []);
  return turns;
}

/** A uPlot picture. series: [{label, values, stroke, dash?, stepped?}]; `band: [high, low]`, two of the series by place, is filled between them. Show the same numbers in a table near it. */
export function Plot({ x, series, height = 220, label, time = false, format = number, band }) {
  const place = useRef(null);
  const scheme = useScheme();
  const data = useMemo(() => [x, ...series.map((each) => each.values)], [x, series]);
  useEffect(() => {
    if (!place.current || !window.uPlot || x.length === 0) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const plot = new window.uPlot({
      width: place.current.clientWidth || 600, height,
      scales: { x: { time } }, cursor: { y: false }, legend: { live: true },
      axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((each) => format(each)) }],
      hooks: { ready: [(made) => made.setLegend({ idx: x.length - 1 })] }, // the latest values, before anything is pointed at
      bands: band && [{ series: band.map((each) => each + 1), fill: `${colour("--accent")}2b` }],
      series: [{}, ...series.map((each) => ({
        label: each.label, stroke: colour(each.stroke ?? "--accent"), width: each.width ?? 2, dash: each.dash, points: each.points,
        paths: each.stepped ? window.uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (_, value) => (value === null || value === undefined ? "–" : format(value)),
      }))],
    }, data, place.current);
    const watch = new ResizeObserver(() => plot.setSize({ width: place.current?.clientWidth || 600, height }));
    watch.observe(place.current);
    return () => { watch.disconnect(); plot.destroy(); };
  }, [data, height, scheme]);
  return html`<figure class="plot" role="img" aria-label=${label}><div ref=${place}></div></figure>`;
}
