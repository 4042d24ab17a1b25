// Now: the window as it was sent, what the client sent, and every turn before.
import {
  Empty, Failure, Figure, ago, api, dollars, html, number, percent, plural, tokens, useApi, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useStyle,
} from "../lib.js";
import Panel, { Orders, SwitchOff } from "./now/panel.js";
import Scrubber from "./now/scrubber.js";
import { Palette, TOTAL, between, hit, itemOf, paint, place } from "./now/strip.js";
import { FORMS, KINDS, ORDERS, causeOf, describe, formOf, kindOf, nameOf } from "./now/words.js";

export const title = "Now";

const MOVE_MS = 600;
const KNOWN = 60; // windows that are remembered while one moves over the turns
const ROWS = 40;
const LABEL = 255; // pixels of a price beside the line
const HINT = "hotset.now.hint";
const SHORT = new Set(["preview", "pointer", "gone"]);

/** The window of a turn and the one before it. One question at a time: while one moves fast, turns in between are left out. */
function useWindow(session, turn, stamp) {
  const [state, setState] = useState({ view: null, before: null, error: "" });
  const own = useRef({ wanted: null, busy: false, known: new Map(), stamp: 0 });
  const read = useCallback(async (id, number, isFinal) => {
    const { known } = own.current;
    const key = `${id}/${number}`;
    if (known.has(key)) return known.get(key);
    const view = await api(`sessions/${encodeURIComponent(id)}/window`, { turn: number || undefined });
    if (isFinal || view.turn < view.turns) {
      known.set(`${view.session}/${view.turn}`, view);
      if (known.size > KNOWN) known.delete(known.keys().next().value);
    }
    return view;
  }, []);
  useEffect(() => {
    const mine = own.current;
    if (mine.stamp !== stamp) { mine.known.clear(); mine.stamp = stamp; }
    mine.wanted = { session, turn };
    const work = async () => {
      if (mine.busy) return;
      mine.busy = true;
      while (mine.wanted) {
        const asked = mine.wanted;
        mine.wanted = null;
        try {
          const view = await read(asked.session, asked.turn);
          setState((last) => (last.view?.session === view.session ? last : { view, before: null, error: "" })); // the first look does not wait for the turn before
          const before = view.turn > 1 ? await read(view.session, view.turn - 1, true).catch(() => null) : null;
          setState({ view, before, error: "" });
        } catch (error) {
          setState((last) => ({ ...last, error: error.message }));
        }
      }
      mine.busy = false;
    };
    work();
  }, [session, turn, stamp]);
  return state;
}

/** The session's turns in short; after a change only what is new is read. */
function useTimeline(session, changed) {
  const [line, setLine] = useState(null);
  useEffect(() => {
    if (!session) return undefined;
    let live = true;
    const known = line?.session === session ? line : null;
    const first = known ? Math.max(1, known.last - 1) : 1;
    api(`sessions/${encodeURIComponent(session)}/timeline`, { first }).then((found) => {
      if (!live) return;
      if (!known) { setLine(found); return; }
      const keep = known.turns.filter((each) => each < first).length;
      const joined = { ...found, marks: [...known.marks.filter((each) => each.turn < first), ...found.marks] };
      for (const name of ["turns", "sent", "whole", "spent", "everything"]) joined[name] = [...known[name].slice(0, keep), ...found[name]];
      setLine(joined);
    }, () => {});
    return () => { live = false; };
  }, [session, changed]);
  return line?.session === session ? line : null;
}

/** What is different from the turn before: for the picture (by piece) and in words. */
function compare(before, view) {
  if (!before || before.session !== view.session) return { pages: new Map(), words: [] };
  const forms = (each) => new Map(each.segments.flatMap((segment) => segment.pages.map((page) => [page, segment])));
  const old = forms(before);
  const pages = new Map();
  const sums = { born: [0, 0], short: [0, 0], left: [0, 0], back: [0, 0] };
  const causes = new Set();
  for (const segment of view.segments) {
    const form = formOf(segment);
    for (const page of segment.pages) {
      const last = old.get(page);
      const was = last && formOf(last);
      let how = "";
      if (!last) how = "born";
      else if (form === "gone" && was !== "gone") how = "left";
      else if (form === "whole" && SHORT.has(was)) how = "back";
      else if (SHORT.has(form) && was === "whole") how = "short";
      if (!how) continue;
      pages.set(page, how === "short" ? "left" : how);
      sums[how][0] += 1;
      sums[how][1] += how === "left" ? (last?.tokens ?? 0) : segment.tokens / segment.pages.length;
      if (how === "left") causes.add(causeOf(segment.cause));
    }
  }
  const hidden = (each) => each.segments.filter((segment) => segment.kind === "hidden").length;
  const words = [];
  if (sums.born[0]) words.push(`${plural(sums.born[0], "piece")} new, ${tokens(sums.born[1])} tokens`);
  if (sums.left[0]) words.push(`${plural(sums.left[0], "piece")} left the window, ${tokens(sums.left[1])} tokens: ${[...causes].join(", ")}`);
  if (sums.short[0]) words.push(`${plural(sums.short[0], "piece")} shortened`);
  if (sums.back[0]) words.push(`${plural(sums.back[0], "piece")} whole again`);
  if (hidden(view) > hidden(before)) words.push("the model had asked hotset for something, which your client never saw");
  return { pages, words };
}

function SessionPicker({ value, view, onPick }) {
  const [rows, setRows] = useState([]);
  const read = useCallback(() => {
    api("sessions", { limit: 200 }).then((found) => setRows((found.rows ?? found).map((each) => each.session?.id ? { ...each, ...each.session } : each)), () => setRows([]));
  }, []);
  useEffect(read, []);
  const known = rows.some((each) => each.id === value) || !value;
  return html`<label class="picker">Session <select value=${value} onFocus=${read} onChange=${(event) => onPick(event.target.value)}>
    <option value="">latest, whichever that is</option>
    ${!known && html`<option value=${value}>${value}</option>`}
    ${rows.map((each) => html`<option key=${each.id} value=${each.id}>${`${each.title || each.key || each.id} – ${[each.agent ?? each.client, ago(each.last ?? each.started)].filter(Boolean).join(", ")}`}</option>`)}
  </select> ${view && html`<span class="dim small">${view.session}, ${view.model}</span>`}</label>`;
}

function Hint() {
  const [shown, setShown] = useState(() => !localStorage.getItem(HINT));
  if (!shown) return null;
  return html`<p class="card hint">The upper row is what the model could see in this turn: one block for each message and result, in order, as wide as it is long. The lower row is what your client sent; where the bands between them narrow, hotset left something out that the model can ask back.
    ${" "}<button type="button" onClick=${() => { localStorage.setItem(HINT, "1"); setShown(false); }}>Got it</button></p>`;
}

function Headline({ view, onOpen }) {
  const next = view.segments.find((each) => each.pages.some((page) => view.next_pages.includes(page)));
  const saved = view.everything > 0 ? 1 - view.spent / view.everything : 0;
  const full = percent(view.sent / view.window, view.sent / view.window < 0.1 ? 1 : 0);
  return html`<div class="card figures now-figures">
    <${Figure} name="Spent so far" value=${dollars(view.spent)} note=${view.boundary.is_measured ? "measured, at list prices" : "partly our own count, at list prices"} />
    <${Figure} name="Without hotset" value=${dollars(view.everything)} note=${`estimated${saved > 0.005 ? `; ${percent(saved)} saved` : ""}`} tone=${saved > 0.005 ? "saves" : ""} />
    <${Figure} name="The window is full in" value=${view.turns_left === null ? "–" : `about ${plural(view.turns_left, "turn")}`} note=${view.turns_left === null ? "it does not grow" : `${full} of ${tokens(view.window)} tokens are used`} />
    <div class="figure"><span class="name">Leaves next</span><strong>${next ? html`<button type="button" class="link" onClick=${() => onOpen(view.next_pages[0])}>${nameOf(next)}${next.turn ? `, turn ${next.turn}` : ""}</button>` : "nothing"}</strong><span class="note">${view.next_when}</span></div>
  </div>`;
}

/** Dollars for a million tokens. */
const price = (value) => `$${value < 0.1 ? value.toFixed(3) : value.toFixed(2)}`;

const LETTERS = 15; // pixels of a letter for which the picture is drawn

const prefersCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** [the width in the picture's own pixels, how large one of them is: letters grow on a large screen, and the picture with them]. */
function useWidth(ref) {
  const [size, setSize] = useState([0, 1]);
  useLayoutEffect(() => {
    const look = () => {
      const zoom = parseFloat(getComputedStyle(document.documentElement).fontSize) / LETTERS;
      const width = Math.floor((ref.current?.clientWidth ?? 0) / zoom);
      setSize((before) => (before[0] === width && before[1] === zoom ? before : [width, zoom]));
    };
    look();
    const watch = new ResizeObserver(look);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return size;
}

/** The two strips with their ribbons. Pieces are reached by pointer and by arrow keys. */
function Strips({ view, before, scale, selected, onSelect, onOpen, onTurn, setScale }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const last = useRef(null);
  const [width, zoom] = useWidth(box);
  const [over, setOver] = useState(null); // {index, x, y}
  const [focused, setFocused] = useState(false);
  const layout = useMemo(() => (width ? place(view, width, scale) : null), [view, width, scale]);
  const changes = useMemo(() => compare(before, view), [before, view]);
  const marked = over?.index ?? selected;
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const again = () => setScheme((each) => each + 1);
    query.addEventListener("change", again);
    return () => query.removeEventListener("change", again);
  }, []);
  const labels = useMemo(() => layout && new Map(layout.items.filter((each) => each.w >= 64).map((each) => {
    const one = each.from === each.to;
    return [each.key, [one ? nameOf(each.lead) : `${each.to - each.from + 1} pieces`, `${tokens(each.tokens)} tokens`]];
  })), [layout]);
  const changed = useMemo(() => {
    const found = new Map();
    layout?.items.forEach((item) => {
      for (let at = item.from; at <= item.to; at += 1) for (const page of view.segments[at].pages) if (changes.pages.has(page)) found.set(item.key, changes.pages.get(page));
    });
    return found;
  }, [layout, changes]);
  const draw = useRef(null);
  draw.current = (frame, palette) => {
    const key = marked === null || marked === undefined ? null : itemOf(layout, marked)?.key;
    paint(canvas.current.getContext("2d"), palette, frame, { width, marked: key, changed, labels });
  };
  const palette = useMemo(() => {
    if (!width || !canvas.current) return null;
    const ratio = zoom * (devicePixelRatio || 1);
    Object.assign(canvas.current, { width: width * ratio, height: TOTAL * ratio });
    const pen = canvas.current.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return new Palette(pen, ratio);
  }, [width, zoom, scheme]);
  useEffect(() => {
    if (!layout || !palette) return undefined;
    const from = last.current?.view.session === view.session && last.current.layout.width === width ? last.current.layout : null;
    const isSame = last.current?.view === view && from !== null && last.current.scale === scale;
    last.current = { view, layout, scale };
    if (isSame || !from || prefersCalm()) { draw.current(between(null, layout, 1), palette); return undefined; }
    let stop = 0;
    const began = performance.now();
    const step = (time) => {
      const at = Math.min(1, Math.max(0, (time - began) / MOVE_MS));
      draw.current(between(from, layout, at), palette);
      if (at < 1) stop = requestAnimationFrame(step);
    };
    stop = requestAnimationFrame(step);
    return () => cancelAnimationFrame(stop);
  }, [layout, palette, changed]);
  useEffect(() => { if (layout && palette) draw.current(between(null, layout, 1), palette); }, [marked]);

  const find = (event) => hit(layout, view, event.offsetX / zoom, event.offsetY / zoom);
  const open = (index) => { const segment = view.segments[index]; onOpen(segment.pages.length === 1 ? segment.pages[0] : `at:${index}`); };
  const move = (by) => onSelect(Math.max(0, Math.min(view.segments.length - 1, (selected ?? (by > 0 ? -1 : view.segments.length)) + by)));
  const keys = (event) => {
    const does = {
      ArrowRight: () => move(1), ArrowLeft: () => move(-1), PageDown: () => move(10), PageUp: () => move(-10),
      Home: () => onSelect(0), End: () => onSelect(view.segments.length - 1),
      ArrowUp: () => onTurn(-1), "[": () => onTurn(-1), ArrowDown: () => onTurn(1), "]": () => onTurn(1),
      Enter: () => selected !== null && open(selected), " ": () => selected !== null && open(selected),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setOver(null);
    does();
  };
  const pointed = over?.index ?? (focused ? selected : null);
  const piece = pointed === null ? null : view.segments[pointed];
  const item = piece && layout ? itemOf(layout, pointed) : null;
  const edge = layout?.boundary ?? null;
  const { boundary } = view;
  return html`<section class="card strips" aria-label="the window and what the client sent">
    <div class="row"><h2>What the model saw <span class="sum">${number(view.sent)} tokens</span></h2><span class="spring"></span>
      <label class="small">Widths <select value=${scale} onChange=${(event) => setScale(event.target.value)}>
        <option value="">as fits best</option><option value="same">both rows to one scale</option><option value="fill">each row over the whole width</option></select></label></div>
    <p class="small changes" aria-live="polite">${changes.words.length ? `New in this turn: ${changes.words.join("; ")}.` : " "}</p>
    ${edge !== null && layout && html`<div class="edge" aria-hidden="true">
      ${edge > LABEL ? html`<span class="before" style=${{ right: `${(width - edge) * zoom + 8}px` }}>from the provider's cache: ${price(boundary.read_price)} a million</span>` : null}
      ${width - edge > LABEL ? html`<span class="after" style=${{ left: `${edge * zoom + 8}px` }}>sent anew: ${price(boundary.write_price)} a million</span>` : null}</div>`}
    <div class="canvas" ref=${box} role="slider" tabindex="0" aria-label="pieces of the window" aria-describedby="strip-keys" aria-orientation="horizontal"
      aria-valuemin="1" aria-valuemax=${view.segments.length} aria-valuenow=${(selected ?? 0) + 1}
      aria-valuetext=${selected !== null && view.segments[selected] ? describe(view.segments[selected], tokens) : `${plural(view.segments.length, "piece")}, none chosen`} onKeyDown=${keys} onFocus=${() => setFocused(true)} onBlur=${() => setFocused(false)}>
      <canvas ref=${canvas} aria-hidden="true" onPointerMove=${(event) => { const index = find(event); setOver(index === null ? null : { index, x: event.offsetX, y: event.offsetY }); }}
        onPointerLeave=${() => setOver(null)} onClick=${(event) => { const index = find(event); if (index !== null) { onSelect(index); open(index); } }}></canvas>
      ${piece && item && html`<div class="tip" aria-hidden="true" style=${{ left: `${Math.max(0, Math.min(width * zoom - 260, (over?.x ?? (item.x + item.w / 2) * zoom) - 130))}px` }}>
        <strong>${nameOf(piece)}</strong><span>${FORMS[formOf(piece)][0]}${piece.cause && piece.cause !== "birth" ? ` – ${causeOf(piece.cause)}` : ""}</span>
        <span>${tokens(piece.tokens)} tokens${piece.whole !== piece.tokens && piece.whole ? ` of ${tokens(piece.whole)}` : ""}${piece.turn ? `, turn ${piece.turn}` : ""}</span>
        ${piece.order && html`<span>you ordered: ${ORDERS[piece.order]?.[0] ?? piece.order}</span>`}</div>`}
    </div>
    <h2 class="lower">What your client sent <span class="sum">${number(view.whole)} tokens</span>${layout?.fill && view.whole !== view.sent && html`<span class="dim small"> drawn to a scale of its own</span>`}</h2>
    <p class="dim small" id="strip-keys">Click a piece, or press Tab to come here: ← → moves between pieces, Enter opens one, [ ] or ↑ ↓ changes the turn.${" "}${edge === null ? "Nothing was read from the provider's cache." : `The line marks where the provider's cache ends${boundary.is_measured ? ` (measured: ${number(boundary.tokens)} tokens)` : ` (estimated: ${number(boundary.tokens)} tokens)`}; in front of it a million tokens cost ${price(boundary.read_price)}, behind it ${price(boundary.write_price)}.`}</p>
    <${Sums} view=${view} />
  </section>`;
}

/** How much of each kind is in the window: the key to the colours. */
function Sums({ view }) {
  const sums = new Map();
  for (const each of view.segments) {
    const [name, says, colour] = kindOf(each.kind);
    const known = sums.get(colour) ?? { names: new Set(), says, tokens: 0 };
    known.names.add(name);
    known.tokens += each.tokens;
    sums.set(colour, known);
  }
  const rows = [...sums].sort((one, other) => other[1].tokens - one[1].tokens);
  return html`<p class="legend small" aria-label="what is in the window">${rows.map(([colour, each]) => html`<span class="key" key=${colour} title=${each.says}><i class=${`swatch c${colour}`}></i>${[...each.names].join(", ")} <span class="dim">${tokens(each.tokens)}</span></span>`)}</p>`;
}

function Legend() {
  const kinds = Object.values(KINDS);
  return html`<details class="card"><summary>What the colours and patterns mean</summary>
    <div class="meanings"><div><h3>Colours: what it is</h3><dl>${kinds.map(([name, says, colour]) => html`<div key=${name}><dt><i class=${`swatch c${colour}`}></i>${name}</dt><dd>${says}</dd></div>`)}</dl></div>
    <div><h3>Patterns: how much of it the model sees</h3><dl>${Object.entries(FORMS).map(([form, [name, says]]) => html`<div key=${form}><dt><i class=${`swatch f-${form}`}></i>${name}</dt><dd>${says}</dd></div>`)}</dl>
    <h3>Marks</h3><dl><div><dt><i class="bar born"></i>green bar</dt><dd>New in this turn.</dd></div><div><dt><i class="bar gone"></i>red bar</dt><dd>Became shorter, or left, in this turn.</dd></div>
      <div><dt><i class="bar back"></i>orange bar</dt><dd>Whole again in this turn.</dd></div><div><dt><i class="corner"></i>dark corner</dt><dd>You ordered something about it.</dd></div></dl></div></div>
  </details>`;
}

/** The same as the strips, as a list. */
function List({ view, offset, onOffset, onOpen }) {
  const total = view.segments.length;
  const start = Math.min(offset, Math.max(0, total - 1));
  const rows = view.segments.slice(start, start + ROWS);
  return html`<details class="card list" open=${offset > 0}><summary>The same as a list (${plural(total, "piece")})</summary>
    <div class="scroll"><table><caption>Pieces of the window in the order in which they were sent</caption>
      <thead><tr><th scope="col" class="right">No.</th><th scope="col">Piece</th><th scope="col">Form</th><th scope="col" class="right">The model saw, tokens</th><th scope="col" class="right">The client sent, tokens</th><th scope="col" class="right">Turn</th><th scope="col">Your order</th></tr></thead>
      <tbody>${rows.map((each, at) => html`<tr key=${start + at}><td class="right">${start + at + 1}</td>
        <td><button type="button" class="link" onClick=${() => onOpen(each.pages.length === 1 ? each.pages[0] : `at:${start + at}`)}>${nameOf(each)}</button></td>
        <td><i class=${`swatch f-${formOf(each)}`}></i>${FORMS[formOf(each)][0]}</td><td class="right">${number(each.tokens)}</td><td class="right">${each.whole ? number(each.whole) : "–"}</td><td class="right">${each.turn || "–"}</td><td>${each.order ? ORDERS[each.order]?.[0] ?? each.order : ""}</td></tr>`)}</tbody></table></div>
    ${total > ROWS && html`<nav class="pager" aria-label="pages of the list"><button type="button" disabled=${start === 0} onClick=${() => onOffset(Math.max(0, start - ROWS))}>Previous</button>
      <span>${number(start + 1)}–${number(Math.min(total, start + ROWS))} of ${number(total)}</span>
      <button type="button" disabled=${start + ROWS >= total} onClick=${() => onOffset(start + ROWS)}>Next</button></nav>`}
  </details>`;
}

export default function Now({ query, setQuery, changed }) {
  useStyle("now");
  const [acted, setActed] = useState(0);
  const [chosen, setChosen] = useState(null); // {page, at}: a page stays chosen in other turns
  const [playing, setPlaying] = useState(false);
  const session = query.session || "last";
  const turn = Number(query.turn) || 0;
  const { view, before, error } = useWindow(session, turn, `${turn ? 0 : changed}/${acted}`);
  const line = useTimeline(view?.session, changed);
  const orders = useApi("orders", {}, `${changed}/${acted}`);
  const returnTo = useRef(null);
  const latest = line?.last ?? view?.turns ?? 0;
  const selected = useMemo(() => {
    if (!chosen || !view) return null;
    const at = chosen.page ? view.segments.findIndex((each) => each.pages.includes(chosen.page)) : Math.min(chosen.at, view.segments.length - 1);
    return at < 0 ? null : at;
  }, [chosen, view]);
  const setSelected = useCallback((at) => setChosen({ at, page: view.segments[at].pages[0] }), [view]);
  const goTurn = useCallback((number) => {
    if (!number) return;
    setQuery({ turn: number >= latest ? "" : number, from: "" }, true);
  }, [setQuery, latest]);
  const open = useCallback((piece) => {
    if (!document.activeElement?.closest(".panel")) returnTo.current = document.activeElement;
    setQuery({ piece });
  }, [setQuery]);
  const close = useCallback(() => { setQuery({ piece: "" }, true); returnTo.current?.focus?.(); }, [setQuery]);
  const done = useCallback(() => setActed((each) => each + 1), []);
  if (!view) {
    return html`<h1>Now</h1>${error ? html`<${Failure} error=${error} /><${Empty}>Nothing was sent through hotset yet? Run your agent through it: hotset wrap claude. The picture appears with its first request.<//>` : html`<p class="loading" role="status">Loading …</p>`}`;
  }
  const single = { session: view.session, last: view.turns, turns: [view.turn], sent: [view.sent], whole: [view.whole], marks: [] };
  const atTurn = turn || view.turn;
  return html`<div class=${query.piece ? "now with-panel" : "now"}><div class="picture">
    <div class="row top"><h1>Now</h1><${SessionPicker} value=${query.session ?? ""} view=${view} onPick=${(id) => { setChosen(null); setQuery({ session: id, turn: "", piece: "", from: "" }); }} /></div>
    <${Failure} error=${error} />
    <${Headline} view=${view} onOpen=${open} />
    <${Hint} />
    <${Strips} view=${view} before=${before} scale=${query.scale ?? ""} selected=${selected} onSelect=${setSelected} onOpen=${open} setScale=${(scale) => setQuery({ scale }, true)}
      onTurn=${(by) => goTurn(Math.max(1, Math.min(latest, atTurn + by)))} />
    <${Scrubber} line=${line ?? single} turn=${atTurn} isLatest=${!turn || turn >= latest} playing=${playing} onGo=${goTurn} onPlay=${setPlaying} />
    <${Legend} />
    <${List} view=${view} offset=${Number(query.from) || 0} onOffset=${(from) => setQuery({ from: from || "" }, true)} onOpen=${open} />
    <section class="card" aria-label="your orders"><h2>Your orders</h2>
      <p class="small dim">What you ordered holds until you take it back; nothing that hotset learns changes it.</p>
      ${orders.data && html`<${Orders} orders=${orders.data} onDone=${done} onOpen=${open} />`}
      <${SwitchOff} key=${view.session} session=${view.session} changed=${acted} onDone=${done} /></section>
    </div>
    ${query.piece && html`<${Panel} open=${query.piece} view=${view} changed=${`${acted}/${view.turns}`} onOpen=${open} onClose=${close} onDone=${done} />`}
  </div>`;
}
