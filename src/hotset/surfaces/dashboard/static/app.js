// The shell: which view is shown, by the address; the list of views; light and dark; events as they come.
import { BASE, Component, Failure, html, render, useCallback, useEffect, useState } from "./lib.js";

export const VIEWS = [
  ["now", "Now"], ["findings", "What should I do?"], ["savings", "Savings"], ["sessions", "Sessions"],
  ["tools", "Tools"], ["memory", "Memory"], ["code", "Code"], ["learning", "Learning"], ["health", "Health"],
];
const NAMES = new Map(VIEWS);
const HIDDEN = new Set(["session"]); // a view that another one opens
const LAST = "hotset.view";
const TOGETHER_MS = 400;
const PATIENT_MS = 300; // for the first event

function place() {
  const name = location.pathname.slice(BASE.length).split("/")[0];
  const known = NAMES.has(name) || HIDDEN.has(name);
  return { name: known ? name : localStorage.getItem(LAST) ?? "now", query: Object.fromEntries(new URLSearchParams(location.search)) };
}

function address(name, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const words = new URLSearchParams(given).toString();
  return `${BASE}${name}${words ? `?${words}` : ""}`;
}

/** A view that fails shows why; the others go on. */
class Guarded extends Component {
  constructor() { super(); this.state = { error: "" }; }
  componentDidCatch(error) { this.setState({ error: `this view failed: ${error.message}` }); }
  render() { return this.state.error ? html`<${Failure} error=${this.state.error} />` : this.props.children; }
}

/** What happens, as it happens. Views are shown when the first event has come: whatever they ask is then new, and is not asked twice. */
function useChanges() {
  const [state, setState] = useState({ changed: 0, live: false, ready: false });
  useEffect(() => {
    let source = null;
    let waits = null; // a reply is kept in several steps: one look at the end is enough
    let begun = false;
    const begin = () => { begun = true; setState((before) => ({ ...before, ready: true })); };
    const late = setTimeout(begin, PATIENT_MS);
    const tell = () => { waits = null; setState((before) => ({ ...before, changed: before.changed + 1, live: true })); };
    const listen = () => {
      if (document.hidden) { // a tab in the background costs nothing
        source?.close();
        source = null;
        begin();
        return;
      }
      if (source) return;
      source = new EventSource(`${BASE}live`);
      source.addEventListener("changed", () => { if (begun) waits ??= setTimeout(tell, TOGETHER_MS); else begin(); });
      source.onopen = () => setState((before) => ({ ...before, live: true }));
      source.onerror = () => { begin(); setState((before) => ({ ...before, live: false })); };
    };
    listen();
    document.addEventListener("visibilitychange", listen);
    return () => { document.removeEventListener("visibilitychange", listen); source?.close(); clearTimeout(waits); clearTimeout(late); };
  }, []);
  return state;
}

function App() {
  const [here, setHere] = useState(place);
  const [view, setView] = useState(null);
  const { changed, live, ready } = useChanges();
  const go = useCallback((name, query = {}, replace = false) => {
    history[replace ? "replaceState" : "pushState"](null, "", address(name, query));
    setHere({ name, query: Object.fromEntries(Object.entries(query).map(([key, value]) => [key, String(value)])) });
  }, []);
  const setQuery = useCallback((changes, replace = false) => {
    const now = place();
    const query = Object.fromEntries(Object.entries({ ...now.query, ...changes }).filter(([, value]) => value !== undefined && value !== null && value !== ""));
    go(now.name, query, replace);
  }, [go]);
  useEffect(() => {
    const back = () => setHere(place());
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  useEffect(() => {
    let wanted = true;
    document.querySelector("header nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone the list of views is wider than the page
    if (NAMES.has(here.name)) localStorage.setItem(LAST, here.name);
    import(`./views/${here.name}.js`).then(
      (found) => { if (wanted) { setView({ name: here.name, show: found.default, title: found.title }); document.title = `${found.title} – hotset`; } },
      (error) => { if (wanted) setView({ name: here.name, show: () => html`<${Failure} error=${`this view could not be loaded: ${error.message}`} />`, title: here.name }); },
    );
    return () => { wanted = false; };
  }, [here.name]);
  return html`
    <a class="skip" href="#main">Skip to the view</a>
    <header>
      <span class="brand">hotset</span>
      <nav aria-label="views">${VIEWS.map(([name, title]) => html`<a href=${address(name, {})}
        aria-current=${here.name === name || (here.name === "session" && name === "sessions") ? "page" : undefined}
        onClick=${(event) => { if (!event.metaKey && !event.ctrlKey) { event.preventDefault(); go(name); document.getElementById("main").focus(); scrollTo(0, 0); } }}>${title}</a>`)}</nav>
      <span class=${live ? "live on" : "live"} role="status">${live ? "live" : "not connected"}</span>
    </header>
    <main id="main" tabindex="-1">
      ${ready && view && view.name === here.name
        ? html`<${Guarded} key=${view.name}><${view.show} query=${here.query} setQuery=${setQuery} go=${go} changed=${changed} /><//>`
        : html`<p class="loading" role="status">Loading …</p>`}
    </main>`;
}

render(html`<${App} />`, document.getElementById("app"));
