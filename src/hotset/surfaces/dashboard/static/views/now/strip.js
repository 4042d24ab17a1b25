// The two strips and the ribbons between them: where each piece is, and how it is painted.
import { formOf, kindOf } from "./words.js";

export const HEIGHT = { top: 6, sent: 72, ribbon: 84, whole: 44, bottom: 4 };
export const TOTAL = HEIGHT.top + HEIGHT.sent + HEIGHT.ribbon + HEIGHT.whole + HEIGHT.bottom;
const SENT_Y = HEIGHT.top;
const WHOLE_Y = HEIGHT.top + HEIGHT.sent + HEIGHT.ribbon;
const LEAST = 3; // pixels of a piece
const LEAST_GROUP = 4; // neighbours that are smaller are painted together
const FEW = 8; // pixels for each piece, above which none are painted together
const NARROW = 0.3; // a smaller upper row gets a scale of its own

/** What is painted as one: a piece, or neighbours that are too small. */
function groups(segments, scaleSent, scaleWhole, width) {
  const together = segments.length * FEW > width;
  const found = [];
  let open = null;
  const close = () => { if (open) { found.push(open); open = null; } };
  segments.forEach((segment, at) => {
    const size = Math.max(segment.tokens * scaleSent, segment.whole * scaleWhole);
    if (!together || size >= LEAST_GROUP) {
      close();
      found.push({ from: at, to: at, tokens: segment.tokens, whole: segment.whole, lead: segment });
      return;
    }
    open ??= { from: at, to: at, tokens: 0, whole: 0, lead: segment };
    open.to = at;
    open.tokens += segment.tokens;
    open.whole += segment.whole;
    if (segment.tokens > open.lead.tokens) open.lead = segment;
    if (Math.max(open.tokens * scaleSent, open.whole * scaleWhole) >= LEAST_GROUP) close();
  });
  close();
  return found;
}

/** Widths that sum up to `room`, none below the least, zero where there is nothing. */
function widths(sizes, room) {
  const total = sizes.reduce((sum, each) => sum + each, 0);
  if (!total) return sizes.map(() => 0);
  const least = Math.min(LEAST, room / Math.max(1, sizes.filter((each) => each > 0).length));
  let fixed = new Set();
  for (let round = 0; round < 6; round += 1) {
    let rest = room; let free = 0;
    sizes.forEach((each, at) => { if (fixed.has(at)) rest -= least; else free += each; });
    const scale = free ? rest / free : 0;
    const next = new Set(fixed);
    sizes.forEach((each, at) => { if (each > 0 && each * scale < least) next.add(at); });
    if (next.size === fixed.size) return sizes.map((each, at) => (each <= 0 ? 0 : fixed.has(at) ? least : each * scale));
    fixed = next;
  }
  return sizes.map((each, at) => (each <= 0 ? 0 : fixed.has(at) ? least : (each / total) * room));
}

/** Every piece with its place on both strips. `fill`: each strip takes the whole width. */
export function place(view, width, scale) {
  const sent = view.segments.reduce((sum, each) => sum + each.tokens, 0);
  const whole = view.segments.reduce((sum, each) => sum + each.whole, 0);
  const most = Math.max(sent, whole, 1);
  const fill = scale === "fill" || (scale !== "same" && Math.min(sent, whole) < NARROW * most);
  const roomSent = fill ? width : Math.max(40, (sent / most) * width);
  const roomWhole = fill ? width : Math.max(whole ? 40 : 0, (whole / most) * width);
  const found = groups(view.segments, roomSent / Math.max(1, sent), roomWhole / Math.max(1, whole), width);
  const above = widths(found.map((each) => each.tokens), roomSent);
  const below = widths(found.map((each) => each.whole), roomWhole);
  let x = 0; let X = 0; let tokens = 0; let boundary = null;
  const edge = view.boundary.tokens;
  const items = found.map((each, at) => {
    const item = { ...each, x, w: above[at], X, W: below[at], kind: each.lead.kind, form: formOf(each.lead), key: each.lead.pages[0] ?? `${each.lead.kind}:${each.lead.tool}:${each.from}` };
    if (boundary === null && edge > 0 && tokens + each.tokens >= edge) boundary = x + item.w * ((edge - tokens) / Math.max(1, each.tokens));
    tokens += each.tokens;
    x += item.w; X += item.W;
    return item;
  });
  if (boundary === null && edge > 0) boundary = x;
  const byPage = new Map();
  items.forEach((item, index) => { for (let at = item.from; at <= item.to; at += 1) for (const page of view.segments[at].pages) byPage.set(page, index); });
  return { items, boundary, width, fill, roomSent, roomWhole, byPage };
}

/** The piece under a point of the canvas; null beside them. */
export function hit(layout, view, x, y) {
  const isSent = y >= SENT_Y && y <= SENT_Y + HEIGHT.sent;
  const isWhole = y >= WHOLE_Y && y <= WHOLE_Y + HEIGHT.whole;
  if (!isSent && !isWhole) return null;
  const item = layout.items.find((each) => (isSent ? x >= each.x && x < each.x + each.w : x >= each.X && x < each.X + each.W));
  if (!item) return null;
  if (item.from === item.to) return item.from;
  const share = isSent ? (x - item.x) / item.w : (x - item.X) / item.W;
  return Math.min(item.to, item.from + Math.floor(share * (item.to - item.from + 1)));
}

export const itemOf = (layout, index) => layout.items.find((each) => each.from <= index && index <= each.to);

/** From one layout to the next: what to paint at a moment between 0 and 1. */
export function between(before, after, at) {
  if (!before || at >= 1) return { items: after.items.map((each) => ({ ...each, alpha: 1 })), boundary: after.boundary };
  const soft = 1 - (1 - at) ** 3;
  const mix = (from, to) => from + (to - from) * soft;
  const known = new Map(before.items.map((each) => [each.key, each]));
  const items = after.items.map((each) => {
    const old = known.get(each.key);
    known.delete(each.key);
    if (!old) return { ...each, w: each.w * soft, alpha: soft, isBorn: true };
    return { ...each, x: mix(old.x, each.x), w: mix(old.w, each.w), X: mix(old.X, each.X), W: mix(old.W, each.W), alpha: 1, form: at < 0.5 ? old.form : each.form };
  });
  for (const old of known.values()) { // what left moves to the piece that stands for it
    const target = after.items[after.byPage.get(old.lead.pages[0])];
    if (target) items.push({ ...old, x: mix(old.x, target.x), w: mix(old.w, Math.min(old.w, target.w)), X: mix(old.X, target.X), W: 0, alpha: 1 - soft });
    else items.push({ ...old, W: 0, alpha: 1 - soft });
  }
  const boundary = before.boundary === null || after.boundary === null ? after.boundary : mix(before.boundary, after.boundary);
  return { items, boundary };
}

/** Colours of the scheme that holds now, and the patterns made of them. */
export class Palette {
  constructor(context, ratio) {
    this.style = getComputedStyle(document.documentElement);
    this.context = context;
    this.ratio = ratio;
    this.patterns = new Map();
  }

  colour(name) { return this.style.getPropertyValue(name).trim() || "#888"; }

  /** The fill of a piece: its kind's colour in its form's pattern. */
  fill(kind, form) {
    const key = `${kind}/${form}`;
    let found = this.patterns.get(key);
    if (!found) { found = this.make(this.colour(kindOf(kind)[2]), form); this.patterns.set(key, found); }
    return found;
  }

  make(colour, form) {
    if (form === "whole") return colour;
    const size = 8;
    const tile = document.createElement("canvas");
    tile.width = size * this.ratio; tile.height = size * this.ratio;
    const pen = tile.getContext("2d");
    pen.scale(this.ratio, this.ratio);
    const paper = this.colour("--card");
    const isLight = form === "pointer" || form === "gone" || form === "ghost";
    pen.fillStyle = isLight ? paper : colour;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = isLight ? colour : paper;
    pen.fillStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    if (form === "preview") for (const at of [-size, 0, size]) { pen.moveTo(at, size); pen.lineTo(at + size, 0); }
    if (form === "gone") { pen.lineWidth = 1.5; pen.moveTo(2, 0); pen.lineTo(2, size); pen.moveTo(6, 0); pen.lineTo(6, size); }
    if (form === "reminder") { pen.lineWidth = 1.5; pen.moveTo(0, 4); pen.lineTo(size, 4); }
    pen.stroke();
    if (form === "pointer") { pen.beginPath(); pen.arc(2, 2, 1.4, 0, 7); pen.arc(6, 6, 1.4, 0, 7); pen.fill(); }
    const pattern = this.context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / this.ratio));
    return pattern;
  }
}

/** Paints one moment. `marked`: the piece that is pointed at; `changed`: keys of pieces that changed in this turn. */
export function paint(pen, palette, frame, { width, marked, changed, labels }) {
  pen.clearRect(0, 0, width, TOTAL);
  const paper = palette.colour("--card");
  const ink = palette.colour("--ink");
  for (const each of frame.items) {
    if (!each.W || !each.w) continue;
    const isShort = each.form !== "whole";
    pen.globalAlpha = each.alpha * (marked === each.key ? 0.75 : isShort ? 0.38 : 0.16);
    pen.fillStyle = palette.colour(kindOf(each.kind)[2]);
    ribbon(pen, each);
  }
  for (const each of frame.items) {
    pen.globalAlpha = each.alpha;
    if (each.w > 0) block(pen, palette, each, { x: each.x, y: SENT_Y, w: each.w, h: HEIGHT.sent, form: each.form, paper });
    if (each.W > 0) block(pen, palette, each, { x: each.X, y: WHOLE_Y, w: each.W, h: HEIGHT.whole, form: "whole", paper });
  }
  pen.globalAlpha = 1;
  for (const each of frame.items) {
    const how = changed?.get(each.key);
    if (how && each.w > 0) { // a bar above it: new, shorter or brought back
      pen.fillStyle = palette.colour({ born: "--good", left: "--bad", back: "--ours" }[how]);
      pen.fillRect(each.x, 0, Math.max(2, each.w - 1), 4);
    }
    if (each.lead.order && each.w > 0) { // a person's order
      pen.fillStyle = ink;
      const size = Math.min(12, Math.max(4, each.w - 2));
      pen.beginPath(); pen.moveTo(each.x, SENT_Y); pen.lineTo(each.x + size, SENT_Y); pen.lineTo(each.x, SENT_Y + size); pen.fill();
    }
    if (marked === each.key) {
      pen.strokeStyle = ink; pen.lineWidth = 2;
      pen.strokeRect(each.x + 1, SENT_Y + 1, Math.max(2, each.w - 2), HEIGHT.sent - 2);
      if (each.W) pen.strokeRect(each.X + 1, WHOLE_Y + 1, Math.max(2, each.W - 2), HEIGHT.whole - 2);
    }
  }
  if (frame.boundary !== null) {
    pen.strokeStyle = paper; pen.lineWidth = 6; line(pen, frame.boundary);
    pen.strokeStyle = ink; pen.lineWidth = 2; line(pen, frame.boundary);
  }
  for (const each of frame.items) {
    const text = labels?.get(each.key);
    if (text && each.w >= 64) label(pen, palette, each, text);
  }
}

function line(pen, x) {
  pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, SENT_Y + HEIGHT.sent + 8); pen.stroke();
}

function ribbon(pen, each) {
  const top = SENT_Y + HEIGHT.sent;
  const middle = top + HEIGHT.ribbon / 2;
  pen.beginPath();
  pen.moveTo(each.x, top);
  pen.bezierCurveTo(each.x, middle, each.X, middle, each.X, WHOLE_Y);
  pen.lineTo(each.X + each.W, WHOLE_Y);
  pen.bezierCurveTo(each.X + each.W, middle, each.x + each.w, middle, each.x + each.w, top);
  pen.fill();
}

function block(pen, palette, each, { x, y, w, h, form, paper }) {
  const gap = w > 6 ? 1 : w > 3 ? 0.5 : 0;
  pen.fillStyle = palette.fill(each.kind, form);
  pen.fillRect(x, y, w - gap, h);
  if (form === "pointer" || form === "gone" || form === "ghost") {
    pen.strokeStyle = palette.colour(kindOf(each.kind)[2]);
    pen.lineWidth = 1;
    if (form === "ghost") pen.setLineDash([4, 3]);
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(1, w - gap - 1), h - 1);
    pen.setLineDash([]);
  }
}

/** A text cut to a width. */
function cut(pen, text, wide) {
  if (pen.measureText(text).width <= wide) return text;
  let many = text.length - 1;
  while (many > 0 && pen.measureText(`${text.slice(0, many)}…`).width > wide) many -= 1;
  return `${text.slice(0, many)}…`;
}

/** Its name and size, in the piece itself. */
function label(pen, palette, { x, w }, texts) {
  const bottom = SENT_Y + HEIGHT.sent;
  const high = 16 * texts.length;
  pen.save();
  pen.beginPath(); pen.rect(x, SENT_Y, w - 4, HEIGHT.sent); pen.clip();
  pen.font = "12px system-ui, sans-serif";
  const lines = texts.map((text) => cut(pen, text, w - 20));
  const wide = Math.min(w - 8, Math.max(...lines.map((text) => pen.measureText(text).width)) + 10);
  pen.fillStyle = palette.colour("--card");
  pen.fillRect(x + 5, bottom - 8 - high, wide, high + 3);
  pen.fillStyle = palette.colour("--ink");
  lines.forEach((text, at) => pen.fillText(text, x + 10, bottom - 9 - 16 * (lines.length - 1 - at)));
  pen.restore();
}
