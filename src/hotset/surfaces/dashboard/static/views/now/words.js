// What kinds and forms are called, in plain words.

/** kind: [name, what it is, colour]. */
export const KINDS = {
  system: ["instructions", "What the client tells the model about its role and its rules.", "--system"],
  tools: ["tool list", "The descriptions of the tools that the model may call. Sent with every request.", "--tools"],
  prompt: ["your words", "What you, or your agent, asked.", "--prompt"],
  response: ["answer", "What the model answered.", "--response"],
  thinking: ["thinking", "What the model thought before it answered.", "--thinking"],
  tool_call: ["tool call", "The model asks for a tool to be run.", "--call"],
  plan: ["plan", "The model's list of what it will do.", "--call"],
  tool_result: ["tool result", "What a tool gave back.", "--result"],
  file: ["file", "A file that a tool read.", "--file"],
  web_fetch: ["web page", "A page that a tool fetched.", "--result"],
  paper: ["paper", "A document that a tool read.", "--result"],
  test_result: ["test run", "What a test run printed.", "--result"],
  agent_message: ["another agent", "What another agent reported.", "--result"],
  finding: ["finding", "A result that was noted down.", "--result"],
  image: ["image", "A picture.", "--result"],
  opaque: ["other", "Content of a type that hotset passes on without reading it.", "--tools"],
  ghost: ["hotset's tools", "Tools that hotset adds to the list, such as the one that brings something back.", "--ours"],
  reminder: ["reminder", "A line of hotset behind your words.", "--ours"],
  excerpt: ["excerpt", "Lines of a file that hotset put beside your words because they fit.", "--ours"],
  hint: ["hint", "A hint that hotset added.", "--ours"],
  reference: ["reference", "Says what can be brought back.", "--ours"],
  hidden: ["brought back", "What the model asked hotset for, and your client never saw.", "--hidden"],
};

const UNKNOWN = ["other", "Content that hotset does not know.", "--tools"];

export const kindOf = (kind) => KINDS[kind] ?? UNKNOWN;

/** form: [name, what it means]. Each has a pattern of its own, in `strip.js` and in `now.css`. */
export const FORMS = {
  whole: ["whole", "The model sees all of it."],
  preview: ["preview", "The model sees the part that matters, and can ask for the rest."],
  pointer: ["pointer", "The same text is in the window already: a line says where, or only what is new is shown."],
  gone: ["left", "It left the window. A line stays by which the model can get it back."],
  reminder: ["added", "hotset added it; your client did not send it."],
  ghost: ["offered tool", "A tool that hotset lists beside those of the client."],
};

const BY_FORM = { full: "whole", excerpt: "preview", echo: "pointer", overlap: "pointer", change: "pointer", stub: "gone", gone: "gone" };
const ADDED = new Set(["reminder", "excerpt", "hint", "reference", "hidden"]);

export const formOf = (segment) => (segment.kind === "ghost" ? "ghost" : ADDED.has(segment.kind) ? "reminder" : BY_FORM[segment.form] ?? "whole");

const CAUSES = {
  birth: "decided when it was first sent",
  overflow: "the window would have been exceeded",
  cold: "the provider had dropped its cache anyway, so it was free",
  rewound: "the client had changed the past anyway, so it was free",
  pays: "sending it again and again would have cost more than leaving it out",
  handoff: "the work was handed over to a fresh window",
  person: "you ordered it",
  grown: "the window had grown past its limit",
};

export const causeOf = (cause) => CAUSES[cause] ?? cause;

export const ORDERS = {
  pin: ["pinned", "it stays as it is"],
  restore: ["brought back", "it is shown whole, and stays"],
  evict: ["evicted", "it leaves the window"],
  whole: ["never shortened", "new results of this tool are always shown whole"],
  off: ["switched off", "requests of this session go out unchanged"],
};

/** What a piece is, in a few words. */
export function nameOf(segment) {
  const [kind] = kindOf(segment.kind);
  if (segment.pages.length > 1) return `${segment.pages.length.toLocaleString("en-US")} messages and results`;
  if (!segment.tool) return kind;
  if (segment.kind === "tool_call") return `call of ${segment.tool}`;
  if (segment.kind === "file") return `file, by ${segment.tool}`;
  if (segment.kind === "ghost") return `tool ${segment.tool}`;
  return ["tool_result", "test_result", "web_fetch"].includes(segment.kind) ? `${kind} of ${segment.tool}` : `${kind} ${segment.tool}`;
}

/** A piece in one sentence, for tooltips and screen readers. */
export function describe(segment, short) {
  const form = FORMS[formOf(segment)][0];
  const size = segment.whole && segment.whole !== segment.tokens ? `${short(segment.tokens)} of ${short(segment.whole)} tokens` : `${short(segment.tokens)} tokens`;
  const parts = [nameOf(segment), form, size];
  if (segment.turn) parts.push(`turn ${segment.turn}`);
  if (segment.order) parts.push(`you ordered: ${ORDERS[segment.order]?.[0] ?? segment.order}`);
  return parts.join(", ");
}
