// Pieces that the views of tools, memory, code, learning and health share.
import { ActButton, act, html, useCallback, useEffect, useState } from "./lib.js";

/** Parts of a view, one shown at a time; which one is in the address. parts: [[name, title, count?]]. */
export const Parts = ({ parts, shown, onShow, label }) => html`<nav class="parts" aria-label=${label}>
  ${parts.map(([name, title, count]) => html`<button type="button" aria-current=${shown === name ? "true" : undefined}
    onClick=${() => onShow(name)}>${title}${count ? html` <span class="count">${count}</span>` : null}</button>`)}
</nav>`;

/** A text that is asked for when it is sent with Enter or the button. */
export function SearchField({ label, value, onSend, placeholder, button = "Search" }) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  return html`<form class="field" onSubmit=${(event) => { event.preventDefault(); onSend(text.trim()); }}>
    <label>${label} <input type="search" value=${text} placeholder=${placeholder} maxlength="300"
      onInput=${(event) => setText(event.target.value)} onSearch=${(event) => event.target.value === "" && value && onSend("")} /></label>
    <button>${button}</button>
  </form>`;
}

/** choices: [[value, title]]. */
export const Choice = ({ label, value, choices, onChoose }) => html`<label class="field">${label} <select value=${value ?? ""}
  onChange=${(event) => onChoose(event.target.value)}>${choices.map(([each, title]) => html`<option value=${each} selected=${each === (value ?? "")}>${title}</option>`)}</select></label>`;

/** [what was said last, a function that acts and says it, a number that grows with every act]. `back` is the order that undoes it: then a button does. */
export function useOrders(path) {
  const [state, setState] = useState({ says: "", undo: "", back: null, again: 0 });
  const order = useCallback(async (body, back = null) => {
    const done = await act(path, body);
    setState((before) => ({ says: done.says, undo: done.undo, back, again: before.again + 1 }));
    return "";
  }, [path]);
  const notice = html`<div class="notice"><span role="status" aria-live="polite">${state.says
    && html`<strong>${state.says}.</strong> ${!state.back && html`<span class="dim">${state.undo}</span>`}`}</span>
    ${state.back && html`<${ActButton} key=${state.again} label="Undo" title=${state.undo} onAct=${() => order(state.back)} />`}</div>`;
  return [notice, order, state.again];
}

/** A unified diff, or text as it is. */
export const DiffText = ({ text, isDiff }) => html`<pre tabindex="0" class="diff">${isDiff
  ? text.split("\n").map((line) => {
    if (/^(\+\+\+|---)/.test(line)) return html`<span class="dim">${line}${"\n"}</span>`;
    if (line.startsWith("+")) return html`<ins>${line}${"\n"}</ins>`;
    return line.startsWith("-") ? html`<del>${line}${"\n"}</del>` : `${line}\n`;
  })
  : text}</pre>`;

const WIDE = 900;
const HIGH = 520;

const highOf = (nodes) => Math.min(HIGH, 160 + 24 * nodes.length);
const STEPS = 220;

/** Places of nodes by repulsion and springs; the same for the same graph. */
function placed(nodes, edges) {
  const at = nodes.map((_, index) => {
    const turn = index * 2.399963;
    const far = 14 * Math.sqrt(index + 0.5);
    return { x: far * Math.cos(turn), y: far * Math.sin(turn) };
  });
  const index = new Map(nodes.map((node, number) => [node.name, number]));
  const ends = edges.map((edge) => [index.get(edge.one), index.get(edge.other), 0.3 + edge.weight]);
  const high = highOf(nodes);
  const ideal = Math.sqrt((WIDE * high) / (nodes.length + 2)) * 0.62;
  for (let step = 0; step < STEPS; step += 1) {
    const move = at.map(() => ({ x: 0, y: 0 }));
    for (let one = 0; one < at.length; one += 1) {
      for (let two = one + 1; two < at.length; two += 1) {
        const dx = at[one].x - at[two].x || 0.1;
        const dy = at[one].y - at[two].y || 0.1;
        const push = (ideal * ideal) / (dx * dx + dy * dy);
        move[one].x += dx * push; move[one].y += dy * push;
        move[two].x -= dx * push; move[two].y -= dy * push;
      }
      const pull = 0.06;
      move[one].x -= at[one].x * pull * 0.7; move[one].y -= at[one].y * pull * 1.2;
    }
    for (const [one, two, weight] of ends) {
      const dx = at[one].x - at[two].x;
      const dy = at[one].y - at[two].y;
      const pull = (weight * Math.hypot(dx, dy)) / ideal;
      move[one].x -= dx * pull * 0.5; move[one].y -= dy * pull * 0.5;
      move[two].x += dx * pull * 0.5; move[two].y += dy * pull * 0.5;
    }
    const heat = 30 * (1 - step / STEPS);
    at.forEach((place, number) => {
      const far = Math.hypot(move[number].x, move[number].y) || 1;
      const go = Math.min(far, heat) / far;
      place.x += move[number].x * go; place.y += move[number].y * go;
    });
  }
  const spread = (axis, room) => {
    const values = at.map((place) => place[axis]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    const scale = high > low ? Math.min(room / (high - low), 1.6) : 1;
    return (value) => (value - (low + high) / 2) * scale;
  };
  const across = spread("x", WIDE - 220);
  const up = spread("y", high - 80);
  return at.map((place) => ({ x: WIDE / 2 + across(place.x), y: high / 2 + 10 + up(place.y) }));
}

const short = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

/** A graph, with a list of the same links. graph: {nodes, edges, total}; tones: kind -> [word, css variable]. */
export function GraphPicture({ graph, tones, onOpen, label, center }) {
  const key = JSON.stringify([graph.nodes.map((each) => each.name), graph.edges.length]);
  const [places, setPlaces] = useState({ key: "", at: [] });
  useEffect(() => setPlaces({ key, at: placed(graph.nodes, graph.edges) }), [key]);
  if (places.key !== key) return html`<p class="loading" role="status">Drawing …</p>`;
  const at = new Map(graph.nodes.map((node, number) => [node.name, places.at[number]]));
  const most = Math.max(1, ...graph.nodes.map((node) => node.weight));
  const named = new Map(graph.nodes.map((node) => [node.name, node.title || node.name]));
  const tone = (kind) => `var(${tones[kind]?.[1] ?? "--dim"})`;
  return html`<figure class="graph">
    <div class="scroll" tabindex="0" role="group" aria-label=${label}><svg viewBox=${`0 0 ${WIDE} ${highOf(graph.nodes)}`}>
      ${graph.edges.map((edge) => html`<line x1=${at.get(edge.one).x} y1=${at.get(edge.one).y} x2=${at.get(edge.other).x} y2=${at.get(edge.other).y}
        stroke="var(--line)" stroke-width=${1 + 4 * Math.min(1, edge.weight)} stroke-dasharray=${/^(alike|related_to)$/.test(edge.why) ? "5 4" : undefined}><title>${named.get(edge.one)} – ${named.get(edge.other)}: ${edge.why}</title></line>`)}
      ${graph.nodes.map((node) => html`<g class="node" transform=${`translate(${at.get(node.name).x} ${at.get(node.name).y})`} role="button" tabindex="0"
        aria-label=${`${short(named.get(node.name))}, ${tones[node.kind]?.[0] ?? node.kind}`} onClick=${() => onOpen(node.name)}
        onKeyDown=${(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onOpen(node.name); } }}>
        <circle r=${6 + 10 * Math.sqrt(node.weight / most)} fill=${tone(node.kind)} stroke=${node.name === center ? "var(--ink)" : "var(--card)"} stroke-width=${node.name === center ? 3 : 1.5} />
        ${(graph.nodes.length <= 40 || node.name === center) && html`<text y=${-10 - 10 * Math.sqrt(node.weight / most)} text-anchor="middle">${short(named.get(node.name))}</text>`}
        <title>${named.get(node.name)}</title></g>`)}
    </svg></div>
    <figcaption><span class="legend">${Object.entries(tones).filter(([kind]) => graph.nodes.some((node) => node.kind === kind)).map(([kind, [word]]) => html`<span><span class="dot" style=${{ background: tone(kind) }}></span>${word}</span>`)}</span>
      ${graph.total > graph.nodes.length && html`<span class="dim">The ${graph.nodes.length} with the most links of ${graph.total}.</span>`}
      <details><summary>The same as a list</summary><ul class="plain">${graph.edges.map((edge) => html`<li>${named.get(edge.one)} – ${named.get(edge.other)}: ${edge.why}</li>`)}</ul></details>
    </figcaption>
  </figure>`;
}
