// The project's files as agents can search them: how far they are indexed, your consent, and search.
import {
  ActButton, Empty, Figure, Loaded, Table, bytes, html, moment, number, percent, useApi, useStyle,
} from "../lib.js";
import { SearchField, useOrders } from "../parts.js";

export const title = "Code";

/** A line with its matches marked. */
function Line({ line }) {
  const pieces = [];
  let at = 0;
  for (const [begin, end] of line.marks) {
    pieces.push(line.text.slice(at, begin), html`<mark>${line.text.slice(begin, end)}</mark>`);
    at = end;
  }
  return html`<span class="code-line"><span class="code-number" aria-hidden="true">${line.number || ""}</span><span>${pieces}${line.text.slice(at)}</span></span>`;
}

function Hits({ query }) {
  const state = useApi(query.text ? "code/search" : "", { text: query.text, path: query.path });
  if (!query.text) return null;
  return html`<${Loaded} state=${state}>${(found) => html`
    ${found.note && html`<p class="warn">${found.note}</p>`}
    ${!found.is_indexed ? html`<${Empty}>The files are not indexed yet, so nothing can be found in them.<//>`
      : found.rows.length === 0 ? html`<${Empty}>Nothing found; ask in other words, or for a shorter path.<//>` : null}
    ${found.rows.map((hit) => html`<article class="card"><h2 class="hit"><code>${hit.path}:${hit.first}–${hit.last}</code> <span class="dim">${[hit.what, hit.language].filter(Boolean).join(", ").slice(0, 140)}</span></h2>
      <pre class="code" tabindex="0">${hit.lines.map((line) => html`<${Line} line=${line} />`)}</pre></article>`)}`}<//>`;
}

function Consent({ data, order }) {
  const isAllowed = data.answer === "granted";
  return html`<section class="card"><h2>Your consent</h2>
    ${isAllowed ? html`<p>You allowed on ${moment(data.since)} that the files below <code>${data.project}</code> are read and indexed. Nothing leaves this machine; secrets are left out.</p>
        <${ActButton} label="Withdraw" sure="All that was made from the files is removed from the disk." onAct=${() => order({ act: "withdraw" })} />`
      : html`<p>${data.answer === "denied" ? `You refused on ${moment(data.since)} that the files are read.` : "You were not asked yet."} With your consent hotset reads the files below <code>${data.project}</code>,
        except those that .gitignore or .hotsetignore exclude and files of secrets, so that you and your agents can search them. What it finds is kept in <code>${data.folder}</code>; nothing leaves this machine.</p>
        <${ActButton} label="Allow" sure="It can be withdrawn at any time." onAct=${() => order({ act: "allow" })} />`}</section>`;
}

export default function Code({ query, setQuery, changed }) {
  useStyle("parts"); useStyle("code");
  const [notice, order, again] = useOrders("code/act");
  const state = useApi("code", {}, changed + again);
  return html`<div class="parted"><h1>Code</h1>${notice}<${Loaded} state=${state}>${(data) => {
    const { code, index } = data;
    const refused = Object.entries(code?.refused ?? {}).sort((one, two) => two[1] - one[1]);
    const freshness = data.indexer ? ["yes", `process ${data.indexer} watches them`] : data.fresh ? ["yes", "nothing changed since"] : data.unfinished ? ["no", "the last run was interrupted"] : data.fresh === null ? ["unknown", code ? "too many files to look at now" : ""] : ["no", "something changed since: hotset index"];
    return html`
      ${code && html`<div class="figures">
        <${Figure} name="Files" value=${number(code.files)} note=${bytes(code.bytes)} /><${Figure} name="Definitions" value=${number(code.symbols)} note="functions, classes, headings" />
        <${Figure} name="Up to date" value=${freshness[0]} note=${freshness[1]} tone=${freshness[0] === "yes" ? "good" : "warn"} />
        ${index && html`<${Figure} name="Waiting" value=${number(index.lag)} note="pieces found by their words alone so far" />`}
        ${index && html`<${Figure} name="Index" value=${bytes(index.bytes)} note=${`${number(index.entries)} pieces, with those of conversations`} />`}
        ${index?.building != null && html`<${Figure} name="A new one is built" value=${percent(index.building)} />`}
      </div>`}
      ${index?.troubles.map((each) => html`<p class="warn">${each}</p>`)}
      ${code ? html`<div class="filters"><${SearchField} label="Search the code" placeholder="where are retries counted" value=${query.text} onSend=${(text) => setQuery({ text })} />
        <${SearchField} label="Only in" placeholder="src/ or *.py" value=${query.path} onSend=${(path) => setQuery({ path })} button="Set" /></div>
        <${Hits} query=${query} />` : data.answer === "granted" && html`<p class="warn">Allowed, and not indexed yet: the proxy does it in the background (unless it runs with --no-index), or run <code>hotset index</code>.</p>`}
      <div class="two"><${Consent} data=${data} order=${order} />
      ${code && html`<section class="card"><h2>Left out</h2>${refused.length === 0 && Object.keys(code.in_part).length === 0 ? html`<${Empty}>No file was left out.<//>`
        : html`<${Table} rows=${[...refused.map(([why, times]) => [why, times, (code.examples[why] ?? []).join(", ")]), ...Object.entries(code.in_part).map(([why, times]) => [`in part: ${why}`, times, code.in_part_files.join(", ")])]} keyOf=${(row) => row[0]} columns=${[
          { title: "Why", cell: (row) => row[0] }, { title: "Files", right: true, cell: (row) => number(row[1]) }, { title: "Such as", cell: (row) => row[2] },
        ]} />`}</section>`}</div>`;
  }}<//></div>`;
}
