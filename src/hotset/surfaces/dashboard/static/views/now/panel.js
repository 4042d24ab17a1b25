// One piece of the window: its text beside what the model sees, what it cost, and what can be ordered about it.
import {
  Failure, Loaded, act, dollars, html, number, tokens, useApi, useCallback, useEffect, useMemo, useRef, useState,
} from "../../lib.js";
import { FORMS, ORDERS, causeOf, describe, formOf, nameOf } from "./words.js";

const MOST_LINES = 1500;
const MANY = 25;
const ACTS = { pin: "Pin it", restore: "Bring it back whole", evict: "Evict it", off: "Switch hotset off" };
const EXPLAINED = { pin: "it stays as it is", restore: "the model sees all of it again, and it stays", evict: "it leaves the window; the model can still ask for it" };

/** When an order is carried out: at no cost, or with the next request. */
export function When({ now, onChange, price, name }) {
  const costs = price ? `${number(price.tokens)} tokens are written again, ${dollars(price.dollars)} more (estimated)` : "at no cost";
  return html`<fieldset class="when"><legend>When</legend>
    <label><input type="radio" name=${name} checked=${!now} onChange=${() => onChange(false)} /> when it is free: once the provider's cache is lost anyway</label>
    <label><input type="radio" name=${name} checked=${now} onChange=${() => onChange(true)} /> now, with the next request: ${costs}</label>
  </fieldset>`;
}

/** The orders that hold, each with a way back. */
export function Orders({ orders, onDone, onOpen }) {
  const [says, setSays] = useState("");
  const undo = (each) => act("act", { about: `${each.act}:${each.about}` }).then(() => { setSays(`Taken back: ${ORDERS[each.act]?.[0] ?? each.act}, ${each.about}.`); onDone(); }, (error) => setSays(error.message));
  return html`<div><p role="status" class="small">${says}</p>
    ${orders.length === 0 ? html`<p class="empty">You ordered nothing: hotset decides by itself. Click a piece to pin it, evict it or bring it back.</p>`
      : html`<ul class="orders">${orders.map((each) => html`<li key=${each.act + each.about}>
        <span><strong>${ORDERS[each.act]?.[0] ?? each.act}</strong>${": "}${["pin", "restore", "evict"].includes(each.act)
          ? html`<button type="button" class="link" onClick=${() => onOpen(each.about)}>${each.about}</button>` : each.about}${" – "}${ORDERS[each.act]?.[1]}${each.act === "pin" || each.act === "whole" ? "" : each.at_once ? ", at once" : ", when it is free"}</span>
        <button type="button" onClick=${() => undo(each)}>Undo</button></li>`)}</ul>`}
  </div>`;
}

/** Switches a session off; says what it costs first. */
export function SwitchOff({ session, changed, onDone }) {
  const [now, setNow] = useState(false);
  const [says, setSays] = useState("");
  const [opened, setOpened] = useState(false);
  const price = useApi(opened ? "price" : "", { session }, changed);
  const quote = price.data?.[0];
  const run = () => act("act", { act: "off", about: session, at_once: now }).then(() => { setSays("Switched off; take it back under your orders."); onDone(); }, (error) => setSays(error.message));
  return html`<details class="off" onToggle=${(event) => setOpened(event.target.open)}><summary>Switch hotset off for this session</summary>
    <p class="small">Its requests then go out exactly as your client sends them. What was kept stays kept.</p>
    <${Failure} error=${price.error} />
    ${quote && (quote.refused ? html`<p class="warn">${quote.refused}</p>` : html`<${When} name="when-off" now=${now} onChange=${setNow} price=${quote.price} />
      <p><button type="button" onClick=${run}>Switch off ${now ? "now" : "when it is free"}</button></p>`)}
    <p role="status" class="small">${says}</p></details>`;
}

/** The lines of a text, each marked whether the model sees it. Numbers in front of lines do not count. */
function compare(text, shown) {
  const seen = new Set(shown.split("\n").map((line) => line.trim()).filter(Boolean));
  const bare = (line) => line.replace(/^\s*\d+\s*[\t:|→ ]\s?/, "").trim();
  const runs = [];
  let last = null;
  let count = 0;
  const lines = text.split("\n");
  for (const line of lines.slice(0, MOST_LINES)) {
    const isSeen = bare(line) === "" ? last?.isSeen ?? true : seen.has(line.trim()) || seen.has(bare(line));
    if (!last || last.isSeen !== isSeen) { last = { isSeen, lines: [] }; runs.push(last); }
    last.lines.push(line);
    if (!isSeen) count += 1;
  }
  return { runs, left: count, cut: Math.max(0, lines.length - MOST_LINES), total: lines.length };
}

function Text({ page, form }) {
  const isWhole = form === "whole" || !(page.shown || form === "gone");
  const found = useMemo(() => (isWhole || form === "gone" ? null : compare(page.text, page.shown)), [page, form, isWhole]);
  const more = page.is_cut ? html`<p class="dim small">The first part; all of it: hotset recall ${page.page.id}</p>` : null;
  if (isWhole) return html`<h3>Its text, as the model sees it</h3><pre tabindex="0" aria-label="text">${page.text}</pre>${more}`;
  return html`<div class="sides">
    <div><h3>Whole, as your client sent it</h3>
      ${found && html`<p class="dim small">${found.left ? `${number(found.left)} of ${number(found.total)} lines are not shown to the model; they are marked −.` : "The model sees every line, in a shorter form."}</p>`}
      <pre tabindex="0" aria-label="whole text">${found ? found.runs.map((run) => (run.isSeen ? html`<span>${run.lines.map((line) => `  ${line}\n`)}</span>` : html`<del class="left">${run.lines.map((line) => `− ${line}\n`)}</del>`)) : page.text}${found?.cut ? `\n… ${number(found.cut)} more lines` : ""}</pre>${more}</div>
    <div><h3>What the model sees</h3>${page.shown ? html`<pre tabindex="0" aria-label="what the model sees">${page.shown}</pre>` : html`<p class="dim">Nothing but a line that stands for it and its neighbours.</p>`}</div>
  </div>`;
}

function Steering({ page, form, latest, changed, onDone }) {
  const [now, setNow] = useState(false);
  const [says, setSays] = useState({ text: "", undo: "" });
  const prices = useApi("price", { page: page.page.id }, changed);
  const tool = page.page.tool;
  const run = (order, about) => act("act", { act: order, about, at_once: now }).then(
    () => { setSays({ text: order === "whole" ? `New results of ${about} are shown whole from now on.` : `Ordered: ${ORDERS[order][1]}${order === "pin" ? "" : now ? ", with the next request" : ", when it is free"}.`, undo: `${order}:${about}` }); onDone(); },
    (error) => setSays({ text: error.message, undo: "" }));
  const undo = (about) => act("act", { about }).then(() => { setSays({ text: "Taken back.", undo: "" }); onDone(); }, (error) => setSays({ text: error.message, undo: "" }));
  const quotes = prices.data ?? [];
  const offered = quotes.filter((each) => !each.refused && each.act !== page.order && !(each.act === "restore" && form === "whole") && !(each.act === "evict" && form === "gone"));
  const price = quotes.find((each) => each.price)?.price;
  return html`<section aria-label="what you can change">
    <h3>What you can change</h3>
    ${page.order && html`<p><strong>You ordered:</strong> ${ORDERS[page.order]?.[1] ?? page.order}. <button type="button" onClick=${() => undo(`${page.order}:${page.page.id}`)}>Undo</button></p>`}
    ${!latest && html`<p class="dim small">Orders hold for the requests to come, not for this earlier turn.</p>`}
    ${prices.error && html`<p class="warn small">${prices.error}</p>`}
    ${offered.some((each) => each.act !== "pin") && html`<${When} name=${`when-${page.page.id}`} now=${now} onChange=${setNow} price=${price} />`}
    <div class="buttons">
      ${offered.map((each) => html`<button type="button" key=${each.act} title=${EXPLAINED[each.act]} onClick=${() => run(each.act, page.page.id)}>${ACTS[each.act]}${each.act === "pin" ? "" : now ? " now" : ""}</button>`)}
      ${tool && page.page.call && html`<button type="button" title="new results of this tool are always shown whole" onClick=${() => run("whole", tool)}>Never shorten ${tool}</button>`}
    </div>
    ${quotes.filter((each) => each.refused && each.act !== "pin").map((each) => html`<p class="dim small" key=${each.act}>${ACTS[each.act]}: not possible – ${each.refused}.</p>`)}
    <p role="status">${says.text} ${says.undo && !page.order && html`<button type="button" onClick=${() => undo(says.undo)}>Undo</button>`}</p>
  </section>`;
}

function PageDetails({ id, turn, latest, changed, onDone }) {
  const state = useApi(`pages/${encodeURIComponent(id)}`, { turn: latest ? undefined : turn }, changed);
  return html`<${Loaded} state=${state}>${(page) => {
    const form = formOf({ kind: page.page.kind, form: page.form });
    const { cause } = page;
    return html`<div>
      <p>${FORMS[form][1]}${cause && cause !== "birth" ? ` Why: ${causeOf(cause)}.` : ""}</p>
      <dl class="facts">
        <div><dt>Came with</dt><dd>turn ${number(page.page.turn)}</dd></div>
        <div><dt>Its text alone</dt><dd>${tokens(page.tokens)} tokens <span class="dim">counted by us</span></dd></div>
        <div><dt>Cost so far</dt><dd>${dollars(page.cost)} <span class="dim">estimated</span></dd></div>
        <div><dt>Its id</dt><dd><code>${page.page.id}</code></dd></div>
        ${page.reference && form === "gone" && html`<div><dt>Brought back by</dt><dd><code>${page.reference}</code></dd></div>`}
      </dl>
      <${Steering} page=${page} form=${form} latest=${latest} changed=${changed} onDone=${onDone} />
      <h3>Who asked for it again</h3>
      ${page.asked_back.length ? html`<ul>${page.asked_back.map((each, at) => html`<li key=${at}>${each}</li>`)}</ul>` : html`<p class="dim">Nobody so far.</p>`}
      <${Text} page=${page} form=${form} />
    </div>`;
  }}<//>`;
}

function Several({ segment, onOpen }) {
  const [offset, setOffset] = useState(0);
  const shown = segment.pages.slice(offset, offset + MANY);
  const lines = useApi("pages", { ids: shown.join(",") });
  const known = new Map((lines.data ?? []).map((each) => [each.id, each]));
  const say = (id) => { const each = known.get(id); return each ? `${nameOf({ ...each, pages: [id] })}, ${tokens(each.tokens)} tokens, turn ${each.turn}` : id; };
  return html`<section aria-label="what left together"><h3>What left together</h3>
    <p class="small">${number(segment.pages.length)} pieces, ${tokens(segment.whole)} tokens, left the window from turn ${segment.turn} on: ${causeOf(segment.cause)}. The model can get them back${segment.reference && html` with <code>${segment.reference}</code>`}.</p>
    <ol class="pages" start=${offset + 1}>${shown.map((id) => html`<li key=${id}><button type="button" class="link" onClick=${() => onOpen(id)}>${say(id)}</button></li>`)}</ol>
    ${segment.pages.length > MANY && html`<p class="row"><button type="button" disabled=${!offset} onClick=${() => setOffset(offset - MANY)}>Previous</button>
      <span>${number(offset + 1)}–${number(Math.min(segment.pages.length, offset + MANY))} of ${number(segment.pages.length)}</span>
      <button type="button" disabled=${offset + MANY >= segment.pages.length} onClick=${() => setOffset(offset + MANY)}>Next</button></p>`}
  </section>`;
}

/** `open`: a page's id, or `at:INDEX` for a piece without one. */
export default function Panel({ open, view, changed, onOpen, onClose, onDone }) {
  const heading = useRef(null);
  const at = open.startsWith("at:") ? Number(open.slice(3)) : view.segments.findIndex((each) => each.pages.includes(open));
  const segment = view.segments[at];
  const together = segment && segment.pages.length > 1;
  const isList = open.startsWith("at:");
  useEffect(() => { heading.current?.focus(); }, [open]);
  const keys = useCallback((event) => { if (event.key === "Escape") { event.stopPropagation(); onClose(); } }, [onClose]);
  const title = segment ? (together && !isList ? `part of ${nameOf(segment)}` : nameOf(segment)) : "a page";
  return html`<aside class="panel" aria-label="a piece of the window" onKeyDown=${keys}>
    <div class="row"><h2 ref=${heading} tabindex="-1">${title[0].toUpperCase() + title.slice(1)}</h2><span class="spring"></span><button type="button" onClick=${onClose}>Close</button></div>
    ${segment ? html`<p class="dim small">${describe(segment, tokens)}</p>` : html`<p class="dim small">It is not a part of the turn that is shown.</p>`}
    ${together && !isList && html`<p><button type="button" class="link" onClick=${() => onOpen(`at:${at}`)}>All ${number(segment.pages.length)} that left with it</button></p>`}
    ${isList && together && html`<${Several} segment=${segment} onOpen=${onOpen} />`}
    ${isList && segment && segment.pages.length === 0 && html`<p>${segment.kind === "tools" ? "The client's descriptions of its tools, and what the provider adds around them. They are measured as what remains of the prompt." : FORMS[formOf(segment)][1]}</p>`}
    ${!isList && html`<${PageDetails} key=${open} id=${open} turn=${view.turn} latest=${view.turn === view.turns} changed=${changed} onDone=${onDone} />`}
  </aside>`;
}
