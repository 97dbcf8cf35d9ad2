// What the course's widgets share. Python joins this text with a widget's own module; no imports.

// Stops of matplotlib's viridis and PuOr, evenly spaced.
const VIRIDIS = stops(`440154 481769 472a7a 433d84 3d4e8a 355e8d 2e6d8e 297b8e 23898e
  1f978b 21a585 2eb37c 46c06f 65cb5e 89d548 b0dd2f d8e219 fde725`);
const PUOR = stops("7f3b08 b25706 e08214 fcb761 fee0b6 f6f6f7 d8daeb b1aad1 8073ac 532687 2d004b");

function stops(text) {
  return text.split(/\s+/).map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
}

// The colour [r, g, b] at x from 0 to 1.
function colourAt(map, x) {
  const place = Math.min(Math.max(x, 0), 1) * (map.length - 1);
  const low = Math.min(Math.floor(place), map.length - 2);
  return map[low].map((c, i) => Math.round(c + (place - low) * (map[low + 1][i] - c)));
}

const rgb = (colour) => `rgb(${colour.join(",")})`;

// Black or white, whichever reads better on a colour: never less than 4.5 to 1.
function inkOn(colour) {
  const [r, g, b] = colour.map((c) => {
    const x = c / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

// A number as Python prints it: an exact tie goes to the even digit.
function fixed(x, digits = 2) {
  if (!Number.isFinite(x)) return String(x).replace("Infinity", "inf").replace("-", "−");
  const scaled = x * 10 ** digits;
  const low = Math.floor(scaled);
  const even = (low + (low % 2 ? 1 : 0)) / 10 ** digits;
  return (scaled - low === 0.5 ? even : x).toFixed(digits).replace("-", "−");
}

// An element; text children become text nodes, so a token is never read as HTML.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// A token that can be seen: blanks and control characters are written out.
function visible(token) {
  if (token === "") return "(empty)";
  const code = (c) => "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const named = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  const seen = token
    .replace(/^ +| +$/g, (blanks) => "␣".repeat(blanks.length))
    .replace(/\p{Cc}/gu, (c) => named[c] ?? code(c));
  return /^[\p{Cf}\p{Z}\p{M}]+$/u.test(seen) ? [...seen].map(code).join("") : seen;
}

// A token with its own direction, so that right-to-left text doesn't reorder its neighbours.
const word = (token, attributes = {}) => el("bdi", attributes, visible(token));

// What Python sent as bytes: float32 numbers, and booleans eight to a byte, lowest bit first.
// Copied, since a Float32Array must start at a multiple of four.
const bytesOf = (view) =>
  view instanceof ArrayBuffer
    ? new Uint8Array(view)
    : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
const floats = (view) => new Float32Array(bytesOf(view).slice().buffer);
const bitAt = (bytes, at) => ((bytes[at >> 3] >> (at & 7)) & 1) === 1;

// JupyterLab takes arrows and letters for its own commands unless they stay inside.
function keepKeys(root, signal) {
  const passes = (event) =>
    ["Tab", "Escape"].includes(event.key) ||
    (event.key === "Enter" && event.shiftKey) ||
    event.ctrlKey || event.metaKey || event.altKey;
  root.addEventListener("keydown", (e) => passes(e) || e.stopPropagation(), { signal });
}

// Follow traits of the model until the signal aborts.
function follow(model, names, callback, signal) {
  const events = names.map((name) => `change:${name}`);
  for (const event of events) model.on(event, callback);
  signal.addEventListener("abort", () => events.forEach((event) => model.off(event, callback)));
}

// Set traits and tell Python, once.
function tell(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

const LIGHT = `color-scheme:light; --ink:#1c1c26; --soft:#565666; --paper:#fff; --tint:#f4f4f9;
  --line:#d6d6e0; --edge:#8b8b9b; --accent:#4a3aa7; --masked:#f1f1f5; --hatch:#8f8f9d;`;
const DARK = `color-scheme:dark; --ink:#ededf3; --soft:#adadbd; --paper:#17171d; --tint:#22222b;
  --line:#3b3b48; --edge:#777788; --accent:#b9adff; --masked:#25252e; --hatch:#6d6d7d;`;

// The look of every widget. JupyterLab and Colab name their theme; elsewhere the system's counts.
const STYLE = `
.abh{${LIGHT}}
@media (prefers-color-scheme:dark){.abh{${DARK}}}
[data-jp-theme-light=true] .abh,html[theme=light] .abh{${LIGHT}}
[data-jp-theme-light=false] .abh,html[theme=dark] .abh{${DARK}}
.abh{--ground:var(--jp-layout-color0,var(--paper)); box-sizing:border-box; max-width:100%;
  padding:14px 16px; border:1px solid var(--line); border-radius:10px; background:var(--ground);
  color:var(--ink); font:14px/1.45 var(--jp-ui-font-family,system-ui,sans-serif)}
.abh *{box-sizing:border-box}
.abh [hidden]{display:none!important}
.abh-title{margin:0 0 8px; font-size:15px; font-weight:600; overflow-wrap:anywhere}
.abh-bar{display:flex; flex-wrap:wrap; align-items:center; gap:8px 14px}
.abh label{display:inline-flex; align-items:center; gap:6px; color:var(--soft)}
.abh select,.abh button{font:inherit; color:var(--ink); background:var(--tint); margin:0;
  border:1px solid var(--edge); border-radius:6px; padding:3px 9px; cursor:pointer}
.abh button:hover:not(:disabled){border-color:var(--accent)}
.abh button[aria-pressed=true]{color:var(--ground); background:var(--accent); border-color:var(--accent)}
.abh button:disabled{opacity:.5; cursor:default}
.abh :focus-visible{outline:2px solid var(--accent); outline-offset:2px}
.abh-note{color:var(--soft); font-size:13px; margin:8px 0 0}
.abh-hatched{background-color:var(--masked);
  background-image:repeating-linear-gradient(135deg,var(--hatch) 0 1px,transparent 1px 5px)}
@media (prefers-reduced-motion:no-preference){.abh-eases{transition:background-color .12s}}
`;

// The element that holds one widget, its style inside it; it lives until the signal aborts.
function widgetRoot(parent, name, style, signal) {
  const root = el("section", { class: `abh ${name}` }, el("style", {}, STYLE + style));
  keepKeys(root, signal);
  signal.addEventListener("abort", () => root.remove());
  parent.append(root);
  return root;
}

// A page without a kernel: the same widget, with a model that lives in the page alone. The picture
// stays where drawing fails.
function runAlone(widget, name, state) {
  for (const place of document.querySelectorAll(`[data-course-widget="${name}"]`)) {
    const parent = el("div");
    widget.render({ model: modelAlone(state), el: parent });
    place.replaceChildren(parent);
  }
}

function modelAlone(state) {
  const values = { alone: true };
  for (const [name, value] of Object.entries(state)) {
    const text = value?.base64;
    values[name] =
      text === undefined ? value : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  }
  const page = new EventTarget();
  return {
    get: (name) => values[name],
    set(name, value) {
      if (values[name] === value) return;
      values[name] = value;
      page.dispatchEvent(new Event(`change:${name}`));
    },
    on: (event, callback) => page.addEventListener(event, callback),
    off: (event, callback) => page.removeEventListener(event, callback),
    save_changes() {},
  };
}
