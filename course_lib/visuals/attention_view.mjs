// AttentionView: who looks at whom, for every layer and head, drawn on the page from float32 bytes.

const VIEW_STYLE = `
.view-body{display:flex; flex-wrap:wrap; gap:16px 24px; margin-top:12px; align-items:flex-start}
.view-map{display:grid; grid-template-columns:auto auto; justify-content:start; max-width:100%;
  overflow-x:auto; padding:4px}
.view-corner{font-size:11px; color:var(--soft); align-self:end; text-align:right; padding:0 8px 4px 0}
.view-keys,.view-queries{display:flex; color:var(--soft); cursor:pointer; user-select:none}
.view-keys{align-items:flex-end; height:var(--tall)}
.view-queries{flex-direction:column; text-align:right}
.view-keys>span,.view-queries>span{flex:none; overflow:hidden; white-space:nowrap;
  text-overflow:ellipsis; font-size:var(--type)}
.view-keys>span{width:var(--cell); max-height:var(--tall); writing-mode:vertical-rl;
  transform:rotate(180deg); line-height:var(--cell); padding-top:4px}
.view-queries>span{height:var(--cell); line-height:var(--cell); max-width:116px; padding-right:8px}
.view-keys .on,.view-queries .on{color:var(--ink); font-weight:700}
.view-grid{position:relative; border:1px solid var(--edge); cursor:crosshair; width:max-content}
.view-grid canvas{display:block}
.view-grid:focus-visible{outline-offset:3px}
.view-cell{position:absolute; pointer-events:none; outline:2px solid var(--accent);
  box-shadow:inset 0 0 0 2px var(--ground); overflow:hidden; color:transparent; font-size:1px}
.view-side{flex:1 1 200px; min-width:190px; max-width:100%}
.view-said{font-size:16px; margin:0 0 8px; overflow-wrap:anywhere; min-height:1.5em}
.view-top{list-style:none; margin:0 0 12px; padding:0}
.view-top li{display:grid; grid-template-columns:minmax(0,90px) 1fr 3em; gap:8px; align-items:center;
  font-variant-numeric:tabular-nums; margin:2px 0}
.view-top bdi{overflow:hidden; text-overflow:ellipsis; white-space:nowrap}
.view-top i{height:10px; background:var(--accent); border-radius:2px; min-width:1px}
.view-scale{gap:8px; margin-top:8px; color:var(--soft); font-size:12px}
.view-scale i{width:110px; height:10px; border:1px solid var(--edge)}
.view-scale .abh-hatched{width:18px; margin-left:8px}
.view-thumbs{display:grid; gap:3px; margin-top:12px; overflow-x:auto; max-width:100%; padding:3px; width:max-content}
.view-thumbs span{font-size:11px; color:var(--soft); align-self:center; text-align:right;
  padding-right:5px; white-space:nowrap}
.view-thumbs .view-col{text-align:center; padding:0}
.view-thumbs button{padding:1px; line-height:0; border-radius:4px}
.view-thumbs canvas{image-rendering:pixelated; width:var(--thumb); height:var(--thumb);
  border-radius:2px}
.view-thumbs button[aria-pressed=true]{outline:2px solid var(--accent); outline-offset:1px}
.view-table{overflow:auto; max-height:420px; margin-top:10px}
.view-table table{border-collapse:collapse; font-size:12px; font-variant-numeric:tabular-nums}
.view-table :is(th,td){padding:2px 7px; border:1px solid var(--line); text-align:right;
  color:var(--ink); background:var(--ground); white-space:nowrap}
.view-table th{color:var(--soft); font-weight:400}
`;

// 256 colours of a scale, as they stand in an image.
const shades = (map) => Array.from({ length: 256 }, (_, i) => colourAt(map, i / 255));
const WEIGHT_SHADES = shades(VIRIDIS), SCORE_SHADES = shades(PUOR);
const TRAITS = ["layer", "head", "query", "key"];

function render({ model, el: parent }) {
  const life = new AbortController();
  const { signal } = life;
  const on = (node, event, callback) => node.addEventListener(event, callback, { signal });
  const [L, H, T, S] = model.get("sizes");
  const tokens = model.get("tokens"), keys = model.get("key_tokens");
  const isScore = model.get("kind") === "scores";
  const palette = isScore ? SCORE_SHADES : WEIGHT_SHADES;
  const reach = model.get("reach");
  const state = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const clamp = (x, n) => Math.min(Math.max(x, 0), n - 1);

  // All layers are here, or one at a time.
  let values, loaded, hidden, shared;
  function load() {
    values = floats(model.get("values"));
    loaded = model.get("loaded");
    hidden = bytesOf(model.get("hidden"));
    shared = hidden.length === Math.ceil((T * S) / 8);
  }
  const has = (layer) => loaded < 0 || loaded === layer;
  const baseOf = (layer, head) => ((loaded < 0 ? layer : 0) * H + head) * T * S;
  const isHidden = (base, at) => hidden.length > 0 && bitAt(hidden, shared ? at : base + at);
  const shadeOf = (x) =>
    palette[Math.round(255 * Math.min(Math.max(isScore ? (x / reach + 1) / 2 : x, 0), 1))];

  const cell = Math.max(6, Math.min(40, Math.floor(400 / Math.max(S, T))));
  const hasLabels = cell >= 11;
  const longest = Math.max(...keys.map((key) => visible(key).length));
  const tall = hasLabels ? Math.min(110, 12 + 7.5 * longest) : 14;

  // The parts of the page.
  const choose = (label, count, trait) => {
    const select = el("select", { "data-lm-suppress-shortcuts": true },
      ...Array.from({ length: count }, (_, i) => el("option", { value: i }, String(i))));
    on(select, "change", () => tell(model, { [trait]: Number(select.value) }));
    return [select, el("label", { hidden: count === 1 }, label, select)];
  };
  const [layerBox, layerLabel] = choose("layer", L, "layer");
  const [headBox, headLabel] = choose("head", H, "head");
  layerBox.disabled = Boolean(model.get("alone")) && model.get("loaded") >= 0;
  const toTable = el("button", { type: "button", "aria-pressed": "false" }, "Show the numbers");
  const tableBox = el("div", { class: "view-table", hidden: true, tabindex: 0,
    role: "region", "aria-label": "The numbers as a table" });
  const canvas = el("canvas", { "aria-hidden": "true" });
  const name = `view${Math.random().toString(36).slice(2)}`;
  const active = el("span", { class: "view-cell", role: "gridcell", id: name });
  const activeRow = el("span", { role: "row" }, active);
  const grid = el("div", { class: "view-grid", role: "grid", tabindex: 0,
    "aria-rowcount": T, "aria-colcount": S, "aria-activedescendant": name,
    "data-lm-suppress-shortcuts": true }, canvas, activeRow);
  const label = (token, i) => el("span", { "data-at": i }, hasLabels ? word(token) : null);
  const keyBar = el("div", { class: "view-keys" }, ...keys.map(label));
  const queryBar = el("div", { class: "view-queries" }, ...tokens.map(label));
  const said = el("p", { class: "view-said", role: "status", "aria-live": "polite" });
  const top = el("ol", { class: "view-top" });
  const low = isScore ? fixed(-reach) : "0", high = isScore ? fixed(reach) : "1";
  const bar = el("i", { style: `background:linear-gradient(90deg,${palette.filter((_, i) => i % 15 === 0).map(rgb)})` });
  const scale = el("div", { class: "abh-bar view-scale" }, low, bar, high,
    el("i", { class: "abh-hatched", hidden: !model.get("hidden").byteLength }),
    el("span", { hidden: !model.get("hidden").byteLength }, "masked"));
  const map = el("div", { class: "view-map",
    style: `--cell:${cell}px; --tall:${tall}px; --type:${Math.min(13, cell - 1)}px` },
    el("div", { class: "view-corner" }, hasLabels ? "query ↓ key →" : null),
    keyBar, queryBar, grid);
  const thumbs = el("div", { class: "view-thumbs", role: "group",
    "aria-label": "All heads, one picture each" });
  const note = el("p", { class: "abh-note", hidden: !model.get("note") }, model.get("note"));
  const hint = el("p", { class: "abh-note" },
    "Hover, or click and use the arrow keys. Click a word to see the whole row or column.");

  const root = widgetRoot(parent, "view", VIEW_STYLE, signal);
  const title = model.get("title");
  root.setAttribute("aria-label", title || "Attention");
  if (title) root.append(el("p", { class: "abh-title" }, title));
  root.append(
    el("div", { class: "abh-bar" }, layerLabel, headLabel, toTable),
    el("div", { class: "view-body" }, el("div", {}, map, scale),
      el("div", { class: "view-side" }, said, top)),
    L * H > 1 ? thumbs : "", tableBox, note, hint,
  );

  // Thumbnails: one small image a head; rows are layers where there are several.
  const layers = model.get("loaded") < 0 ? Array.from({ length: L }, (_, i) => i) : null;
  let pictures = [];
  function buildThumbs() {
    const rows = layers ?? [state().layer];
    const size = H > 8 || rows.length > 6 ? 26 : 40;
    thumbs.style.cssText = `--thumb:${size}px; grid-template-columns:auto repeat(${H},auto)`;
    thumbs.replaceChildren(el("span"));
    for (let h = 0; h < H; h++) thumbs.append(el("span", { class: "view-col" }, String(h)));
    pictures = [];
    for (const layer of rows) {
      thumbs.append(el("span", {}, L > 1 ? `layer ${layer}` : "head"));
      for (let head = 0; head < H; head++) {
        const image = el("canvas", { width: S, height: T, "aria-hidden": "true" });
        const button = el("button", { type: "button",
          "aria-label": (L > 1 ? `layer ${layer}, ` : "") + `head ${head}` }, image);
        on(button, "click", () => tell(model, { layer, head }));
        pictures.push({ layer, head, image, button });
        thumbs.append(button);
      }
    }
    for (const one of pictures) paintThumb(one);
  }
  function paintThumb({ layer, head, image }) {
    if (!has(layer)) return;
    const base = baseOf(layer, head);
    const context = image.getContext("2d"), pixels = context.createImageData(S, T);
    for (let at = 0; at < T * S; at++) {
      if (isHidden(base, at) && !values[base + at]) continue; // transparent
      pixels.data.set(shadeOf(values[base + at]), 4 * at);
      pixels.data[4 * at + 3] = 255;
    }
    context.putImageData(pixels, 0, 0);
  }
  on(thumbs, "keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -H, ArrowDown: H }[event.key];
    const place = pictures.findIndex(({ button }) => button === document.activeElement);
    if (!step || place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pictures[place + step]?.button.focus();
    pictures[place + step]?.button.click();
  });

  // The large picture.
  function paint() {
    const { layer, head } = state();
    const sharp = window.devicePixelRatio || 1;
    const base = baseOf(layer, head), context = canvas.getContext("2d");
    [canvas.width, canvas.height] = [S * cell * sharp, T * cell * sharp];
    [canvas.style.width, canvas.style.height] = [`${S * cell}px`, `${T * cell}px`];
    context.scale(sharp, sharp);
    context.font = `${Math.min(12, cell * 0.36)}px system-ui,sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let at = 0; at < T * S; at++) {
      const x = (at % S) * cell, y = Math.floor(at / S) * cell, value = values[base + at];
      const masked = isHidden(base, at);
      if (!masked || value) {
        const shade = shadeOf(value);
        context.fillStyle = rgb(shade);
        context.fillRect(x, y, cell, cell);
        if (cell >= 30) {
          context.fillStyle = inkOn(shade);
          context.fillText(fixed(value), x + cell / 2, y + cell / 2);
        }
      }
      if (masked) hatch(context, x, y);
    }
  }
  function hatch(context, x, y) {
    context.save();
    context.beginPath();
    context.rect(x, y, cell, cell);
    context.clip();
    context.strokeStyle = "rgba(128,128,140,.9)"; // reads on a light and on a dark ground
    context.beginPath();
    for (let shift = -cell; shift < cell; shift += 4) {
      context.moveTo(x + shift, y + cell);
      context.lineTo(x + shift + cell, y);
    }
    context.stroke();
    context.restore();
  }

  // What is chosen: a cell, a whole row or a whole column.
  let pointed = null; // under the pointer, which counts before what was clicked
  function sayCell(query, key) {
    const { layer, head } = state();
    const base = baseOf(layer, head), at = query * S + key;
    const masked = isHidden(base, at);
    return { value: values[base + at], masked, text: `${fixed(values[base + at])}${masked ? ", masked" : ""}` };
  }
  function show() {
    const chosen = state();
    const { query, key } = pointed ?? chosen;
    keyBar.childNodes.forEach((node, s) => node.classList.toggle("on", s === key));
    queryBar.childNodes.forEach((node, t) => node.classList.toggle("on", t === query));
    top.replaceChildren();
    active.hidden = query == null && key == null;
    if (active.hidden || !has(chosen.layer)) {
      said.textContent = has(chosen.layer) ? "Choose a cell or a word." : "Loading this layer.";
      return;
    }
    const [t, s] = [query ?? 0, key ?? 0];
    Object.assign(active.style, {
      left: `${key == null ? 0 : s * cell}px`, top: `${query == null ? 0 : t * cell}px`,
      width: `${key == null ? S * cell : cell}px`, height: `${query == null ? T * cell : cell}px`,
    });
    activeRow.setAttribute("aria-rowindex", t + 1);
    active.setAttribute("aria-colindex", s + 1);
    if (query != null && key != null) {
      const { text } = sayCell(query, key);
      const verb = isScore ? "scores" : "looks at";
      said.replaceChildren("query ", strongWord(tokens[query]), ` ${verb} `,
        strongWord(keys[key]), ` ${text}`);
    } else if (query != null) {
      said.replaceChildren("query ", strongWord(tokens[query]), isScore ? " scores" : " looks at");
    } else {
      said.replaceChildren("key ", strongWord(keys[key]), isScore ? " is scored by" : " is seen by");
    }
    active.textContent = said.textContent;
    rank(query, key);
  }
  const strongWord = (token) => el("b", {}, word(token));
  function rank(query, key) {
    const byRow = query != null;
    const names = byRow ? keys : tokens;
    const { layer, head } = state();
    const base = baseOf(layer, head);
    const lines = names.map((token, i) => {
      const at = byRow ? query * S + i : i * S + key;
      return { token, value: values[base + at], masked: isHidden(base, at) };
    }).filter((line) => !line.masked || line.value);
    lines.sort((a, b) => b.value - a.value);
    for (const { token, value } of lines.slice(0, 5)) {
      const share = Math.min(Math.max(isScore ? value / reach : value, 0), 1);
      top.append(el("li", {}, word(token), el("i", { style: `width:${100 * share}%` }),
        el("span", {}, fixed(value))));
    }
  }

  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return { query: clamp(Math.floor((event.clientY - box.top) / cell), T),
      key: clamp(Math.floor((event.clientX - box.left) / cell), S) };
  };
  on(grid, "pointermove", (event) => {
    const place = placeOf(event);
    if (pointed?.query === place.query && pointed?.key === place.key) return;
    pointed = place;
    show();
  });
  const leave = () => { pointed = null; show(); };
  on(grid, "pointerleave", leave);
  on(grid, "click", (event) => tell(model, placeOf(event)));
  for (const [side, trait, other] of [[keyBar, "key", "query"], [queryBar, "query", "key"]]) {
    const at = (event) => event.target.closest("[data-at]")?.dataset.at;
    on(side, "pointerover", (event) => {
      if (at(event) === undefined) return;
      pointed = { [trait]: Number(at(event)), [other]: null };
      show();
    });
    on(side, "pointerleave", leave);
    on(side, "click", (event) => at(event) && tell(model, { [trait]: Number(at(event)), [other]: null }));
  }
  on(grid, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const { query, key } = state();
    const [t, s] = [query ?? 0, key ?? 0];
    const fresh = query == null || key == null;
    const moves = {
      ArrowUp: [t - 1, s], ArrowDown: [t + 1, s], ArrowLeft: [t, s - 1], ArrowRight: [t, s + 1],
      Home: [t, 0], End: [t, S - 1], PageUp: [0, s], PageDown: [T - 1, s],
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    const [row, column] = fresh ? [t, s] : moves[event.key];
    pointed = null;
    tell(model, { query: clamp(row, T), key: clamp(column, S) });
  });
  on(grid, "focus", () => {
    const { query, key } = state();
    if (query == null && key == null) tell(model, { query: 0, key: 0 });
  });

  // The same numbers as a table.
  function fillTable() {
    if (tableBox.hidden || !has(state().layer)) return;
    const head = el("tr", {}, el("th", { scope: "col" }, "query"),
      ...keys.map((key) => el("th", { scope: "col" }, word(key))));
    const rows = tokens.map((token, t) => el("tr", {}, el("th", { scope: "row" }, word(token)),
      ...keys.map((_, s) => el("td", {}, sayCell(t, s).text))));
    tableBox.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
  }
  on(toTable, "click", () => {
    tableBox.hidden = !tableBox.hidden;
    toTable.setAttribute("aria-pressed", String(!tableBox.hidden));
    fillTable();
  });

  function update() {
    const { layer, head } = state();
    layerBox.value = layer;
    headBox.value = head;
    grid.setAttribute("aria-label",
      `${isScore ? "Scores" : "Attention weights"}, ${L > 1 ? `layer ${layer}, ` : ""}${H > 1 ? `head ${head}, ` : ""}${T} queries by ${S} keys`);
    if (has(layer)) paint();
    for (const { layer: l, head: h, button } of pictures)
      button.setAttribute("aria-pressed", String(l === layer && h === head));
    fillTable();
    show();
  }
  function arrive() {
    load();
    if (L * H > 1) buildThumbs();
    update();
  }
  follow(model, ["values"], arrive, signal);
  follow(model, ["layer", "head"], update, signal);
  follow(model, ["query", "key"], show, signal);
  arrive();
  return () => life.abort();
}

export default { render };
