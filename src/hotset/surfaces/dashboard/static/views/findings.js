// What should I do: findings, the dearest first, each with the action beside it.
import { ActButton, Empty, Loaded, act, dollars, html, moment, number, plural, useApi, useState, useStyle } from "../lib.js";

export const title = "What should I do?";

const KINDS = {
  unused_tools: "Tools that are never called",
  read_again: "Read again and again",
  fills: "Fills the window",
  no_cache: "No cache hits",
  break: "Began anew",
  told_often: "Told again and again",
  asked_back: "Asked back again and again",
  bypassed: "Went through unchanged",
};

function Copy({ text, label }) {
  const [says, setSays] = useState("");
  const copy = () => Promise.resolve().then(() => navigator.clipboard.writeText(text)).then(() => setSays("copied"), () => setSays("select it and copy it by hand"));
  return html`<div class="copy"><pre tabindex="0" aria-label=${label}>${text}</pre>
    <button type="button" onClick=${copy}>Copy</button>${says && html`<span role="status">${says}</span>`}</div>`;
}

function Action({ action }) {
  if (action.kind === "order") {
    return html`<div class="todo"><${ActButton} label=${action.label} title=${action.text}
      onAct=${() => act("act", { act: action.act, about: action.about }).then(() => "done; take it back on the view Now")} /></div>`;
  }
  const where = action.kind === "settings" ? "in your config.toml:" : "in a terminal:";
  return html`<div class="todo"><span>${action.label}, ${where}</span><${Copy} text=${action.text} label=${action.label} /></div>`;
}

export default function FindingsView({ go }) {
  useStyle("findings");
  const [looks, setLooks] = useState(0);
  const state = useApi("findings", {}, looks);
  return html`<h1>What should I do?</h1>
    <${Loaded} state=${state}>${(found) => html`
      <p class="dim">${found.turns ? `Looked at the latest ${plural(found.sessions, "session")} (${plural(found.turns, "turn")} since ${moment(found.since)}). What costs most comes first.` : "Nothing was looked at yet."}
        ${" "}<button type="button" onClick=${() => setLooks(looks + 1)}>Look again</button></p>
      ${found.rows.length === 0 && html`<${Empty}>${found.turns ? "Nothing to do: no finding is worth your time." : "No session is kept yet. Start one with: hotset wrap AGENT"}<//>`}
      <ol class="findings">${found.rows.map((row, at) => html`<li key=${row.kind + row.session + at} class="card">
        <div class="price"><strong>${row.dollars === null ? "no price" : dollars(row.dollars)}</strong>
          <span class="note">${row.dollars === null ? "cannot be told" : row.is_measured ? "measured" : "estimated"}</span></div>
        <div class="what"><h2>${KINDS[row.kind] ?? row.kind}</h2>
          <p>${row.sentence}</p>
          ${row.tokens > 0 && html`<p class="dim">${number(row.tokens)} tokens</p>`}
          ${row.session && html`<button type="button" class="link" onClick=${() => go("session", { id: row.session })}>Open the session</button>`}
        </div>
        <${Action} action=${row.action} />
      </li>`)}</ol>`}<//>`;
}
