// Curves: values of knobs, shares of profiles and beliefs over time, each with the same numbers as a table.
import { Empty, Loaded, Pager, Plot, Table, html, moment, number, percent, useApi, useMemo, useStyle } from "../../lib.js";
import { Choice } from "../../parts.js";
import { shown } from "./words.js";

const SPANS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"], ["0", "ever"]];
const LIMIT = 12;
const HIGH = 150;
const BECAUSE = { adopted: "it was shown to be better", "rolled back": "a change of it was taken back", reset: "you took a change of it back", order: "you ordered it" };
const TONES = ["--accent", "--warn", "--good", "--call", "--system", "--prompt", "--ours", "--file"];
const DASHES = [undefined, [8, 4], [2, 3], [12, 3, 2, 3]];

export const days = (query) => (SPANS.some(([each]) => each === query.days) ? query.days : "90");

export const Span = ({ query, setQuery }) => html`<${Choice} label="How far back" value=${days(query)} choices=${SPANS} onChoose=${(value) => setQuery({ days: value === "90" ? "" : value, offset: "" })} />`;

const AsTable = ({ children }) => html`<details><summary>The same as a table</summary>${children}</details>`;

const dayOf = (seconds) => new Date(seconds * 1000).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });
const isNumber = (value) => typeof value === "number" || typeof value === "boolean";

/** The numbers in a value by name; empty where it has none that can be drawn. */
function numbersIn(value) {
  if (isNumber(value)) return { "": Number(value) };
  if (value === null || typeof value !== "object") return {};
  return Object.fromEntries(Object.entries(value).filter(([, each]) => isNumber(each)).map(([name, each]) => [name, Number(each)]));
}

/** {x, series} of a knob: what held from each moment on, and the default beside it. */
function linesOf(curve, since, until) {
  const base = numbersIn(curve.default);
  const steps = curve.steps.map((each) => ({ time: Math.max(since, each.time), values: each.value === null ? base : numbersIn(each.value) }));
  const names = [...new Set([...Object.keys(base), ...steps.flatMap((each) => Object.keys(each.values))])];
  const held = steps.length && steps[0].time > since && curve.left_out === 0 ? [{ time: since, values: base }, ...steps] : steps;
  if (held.length === 0) return { x: [], series: [] };
  const points = [...held, { time: Math.max(until, held.at(-1).time), values: held.at(-1).values }];
  const x = points.map((each) => each.time);
  const series = names.flatMap((name, at) => [
    { label: name || "value", values: points.map((each) => each.values[name] ?? null), stroke: TONES[at % TONES.length], stepped: true },
    ...(name in base ? [{ label: name ? `default of ${name}` : "default", values: x.map(() => base[name]), stroke: "--dim", dash: [4, 4], width: 1, points: { show: false } }] : []),
  ]);
  return { x, series };
}

export function KnobPicture({ curve, since, until, setQuery }) {
  const { x, series } = useMemo(() => linesOf(curve, since, until), [curve, since, until]);
  const last = curve.steps.at(-1);
  return html`<section class="card curve"><h3>${setQuery ? html`<button type="button" class="link" onClick=${() => setQuery({ knob: curve.knob })}>${curve.knob}</button>` : "Over time"} <span class="dim">${setQuery ? curve.what : ""}</span></h3>
    <p>Now <strong>${last.value === null ? shown(curve.default) : shown(last.value)}</strong>${last.value === null ? ", the default" : html` <span class="dim">instead of ${shown(curve.default)}</span>`}, since ${moment(last.time)}: ${BECAUSE[last.what] ?? last.what}.</p>
    ${series.length > 0 && html`<${Plot} time x=${x} series=${series} height=${HIGH} format=${shown} label=${`${curve.knob} over time; the table below has the same values`} />`}
    <${AsTable}><${Table} caption=${`${curve.knob}: what new sessions got${curve.left_out ? `; ${number(curve.left_out)} earlier values are left out` : ""}`} rows=${[...curve.steps].reverse()} keyOf=${(row) => row.time + row.change} columns=${[
      { title: "From", cell: (row) => moment(row.time) }, { title: "Value", cell: (row) => (row.value === null ? `${shown(curve.default)} (default)` : shown(row.value)) },
      { title: "Because", cell: (row) => BECAUSE[row.what] ?? row.what }, { title: "Change", cell: (row) => row.change || "–" }]} /><//></section>`;
}

/** The curve of one knob, where it ever had another value. */
export const OneKnob = ({ name, again }) => html`<${Loaded} state=${useApi("learning/curves/knobs", { knob: name, days: 0 }, again)}>${(found) => found.rows.map((curve) => html`<${KnobPicture} curve=${curve} since=${found.since} until=${found.until} />`)}<//>`;

function Shares({ found }) {
  const { x, series } = useMemo(() => {
    const names = [...new Set(found.days.flatMap((each) => Object.keys(each.shares)))];
    const points = [...found.days.map((each) => ({ time: Math.max(found.since, each.day), shares: each.shares })), ...found.days.slice(-1).map((each) => ({ time: Math.max(found.until, each.day), shares: each.shares }))];
    return { x: points.map((each) => each.time), series: names.map((name, at) => ({ label: name, values: points.map((each) => each.shares[name] ?? 0), stroke: TONES[at % TONES.length], dash: DASHES[at % DASHES.length], stepped: true, points: { show: false } })) };
  }, [found]);
  if (series.length < 2) return html`<${Empty}>Every new session got the same profile in this time.<//>`;
  return html`<section class="card curve"><${Plot} time x=${x} series=${series} height=${HIGH} format=${(value) => percent(value)} label="shares of new sessions over time; the table below has the same values" />
    <${AsTable}><${Table} caption="Shares of new sessions at the end of each day (UTC)" rows=${[...found.days].reverse()} keyOf=${(row) => row.day} columns=${[
      { title: "Day", cell: (row) => dayOf(row.day) }, ...series.map((each) => ({ title: each.label, right: true, cell: (row) => percent(row.shares[each.label] ?? 0) }))]} /><//></section>`;
}

export function OverTime({ query, setQuery, again }) {
  useStyle("learning");
  const offset = Number(query.offset ?? 0);
  const knobs = useApi("learning/curves/knobs", { days: days(query), offset, limit: LIMIT }, again);
  const shares = useApi("learning/curves/shares", { days: days(query) }, again);
  return html`<div class="filters"><${Span} query=${query} setQuery=${setQuery} /></div>
    <h2>Values of knobs</h2><p class="dim">What new sessions got, and when that changed. The dashed line is the default.</p>
    <${Loaded} state=${knobs}>${(found) => (found.total === 0 ? html`<${Empty}>No knob has ever had another value than its default.<//>`
      : html`<div class="two">${found.rows.map((curve) => html`<${KnobPicture} key=${curve.knob} curve=${curve} since=${found.since} until=${found.until} setQuery=${setQuery} />`)}</div>
        <${Pager} offset=${offset} limit=${LIMIT} total=${found.total} onGo=${(next) => setQuery({ offset: next || "" })} />`)}<//>
    <h2>Who gets what</h2><p class="dim">The share of new sessions that each profile, or change on trial, got.</p>
    <${Loaded} state=${shares}>${(found) => html`<${Shares} found=${found} />`}<//>`;
}

function BeliefPicture({ curve, until }) {
  const { x, series } = useMemo(() => {
    const { points } = curve;
    const every = points.length ? [...points, { ...points.at(-1), day: Math.max(until, points.at(-1).day) }] : [];
    return { x: every.map((each) => each.day), series: [
      { label: "at most", values: every.map((each) => each.high), stroke: "--accent", width: 1, dash: [2, 3], points: { show: false } },
      { label: "at least", values: every.map((each) => each.low), stroke: "--accent", width: 1, dash: [2, 3], points: { show: false } },
      { label: "probably", values: every.map((each) => each.mean), stroke: "--accent" },
      { label: "default", values: every.map(() => curve.default), stroke: "--dim", dash: [4, 4], width: 1, points: { show: false } }] };
  }, [curve, until]);
  return html`<section class="card curve"><h3>${curve.knob} <span class="dim">${curve.what}</span></h3>
    <${Plot} time x=${x} series=${series} band=${[0, 1]} height=${HIGH} format=${shown} label=${`where the best value of ${curve.knob} probably lies, over time; the table below has the same values`} />
    <${AsTable}><${Table} caption=${`${curve.knob}: its best value, with a probability of 90 %`} rows=${[...curve.points].reverse()} keyOf=${(row) => row.day} columns=${[
      { title: "Day", cell: (row) => dayOf(row.day) }, { title: "Probably", right: true, cell: (row) => shown(row.mean) }, { title: "Between", right: true, cell: (row) => `${shown(row.low)} and ${shown(row.high)}` },
      { title: "Sessions", right: true, cell: (row) => number(row.sessions) }]} /><//></section>`;
}

export function BeliefsOverTime({ query, setQuery, again }) {
  const offset = Number(query.offset ?? 0);
  const state = useApi("learning/curves/beliefs", { days: days(query), offset, limit: LIMIT }, again);
  return html`<${Loaded} state=${state}>${(found) => found.total > 0 && html`<h2>How they came to be</h2>
    <p class="dim">The band has the best value with a probability of 90 %: it narrows with the sessions that explored. The dashed line is the default.</p>
    <div class="filters"><${Span} query=${query} setQuery=${setQuery} /></div>
    <div class="two">${found.rows.map((curve) => html`<${BeliefPicture} key=${curve.knob} curve=${curve} until=${found.until} />`)}</div>
    <${Pager} offset=${offset} limit=${LIMIT} total=${found.total} onGo=${(next) => setQuery({ offset: next || "" })} />`}<//>`;
}
