// AttentionSteps: q, k and v walked through the steps of attention, all computed on the page.

const NAMES = ["scores", "scaled", "masked", "weights", "z"];
const TITLES = ["q · k", "÷ √d", "mask", "softmax", "weighted sum"];
const MASK = 2, SOFTMAX = 3, SUM = 4;
const MOST_FEATURES = 5;
const TRAITS = ["step", "row", "column", "temperature", "d", "allowed"];

const STEPS_STYLE = `
.steps-nav{gap:6px}
.steps-reset{margin-left:auto!important}
.abh [aria-current=step]{color:var(--ground); background:var(--accent); border-color:var(--accent)}
.steps-code{margin:12px 0; padding:7px 11px; background:var(--tint); color:var(--soft);
  font:13px/1.5 var(--jp-code-font-family,ui-monospace,monospace)}
.steps-code b{font-weight:400; color:var(--ink); margin-right:18px}
.steps-body{display:flex; flex-wrap:wrap; gap:18px 28px}
.steps-body>*{max-width:100%; overflow-x:auto; padding:2px}
.steps table{border-collapse:separate; border-spacing:0; margin:0; font-size:13px; border:0}
.steps tr,.steps th,.steps td{background:none; border:0; padding:2px 8px; text-align:right;
  white-space:nowrap; font-size:inherit; font-variant-numeric:tabular-nums; color:var(--ink)}
.steps th{font-weight:400; color:var(--soft)}
.steps-grid{user-select:none}
.steps tr{background:none!important}
.steps .steps-grid thead th{text-align:center; vertical-align:bottom}
.steps .many thead th{padding:2px 0}
.many thead bdi{writing-mode:vertical-rl}
.steps .on,.steps .total *{color:var(--ink); font-weight:600}
.steps .on :is(th,td){font-weight:600; background:var(--tint)}
.steps td[data-at]{min-width:var(--cell); height:calc(.78*var(--cell)); padding:0; text-align:center;
  border:1px solid var(--line); cursor:pointer; font-size:12px}
.steps td.abh-hatched{
  background:repeating-linear-gradient(135deg,var(--hatch) 0 1px,var(--masked) 1px 5px)}
.abh-hatched b{font-weight:400; background:var(--masked); padding:0 3px}
.steps td[aria-selected=true]{outline:3px solid var(--accent); outline-offset:-1px;
  position:relative; box-shadow:inset 0 0 0 3px var(--ground)}
.steps td:focus-visible{outline-width:5px}
.paints td{touch-action:none}
.steps-scale{gap:8px; margin-top:8px; color:var(--soft); font-size:12px}
.steps-scale i{width:90px; height:10px; border:1px solid var(--edge)}
.steps-scale .abh-hatched{width:18px; margin-left:8px}
.steps-right p{margin:6px 0; font-size:15px}
.steps-right th:first-child{text-align:left}
.steps .total>*{border-top:1px solid var(--edge)}
.steps .unused{opacity:.45; text-decoration:line-through}
.steps-controls{margin-top:12px; padding-top:12px; border-top:1px solid var(--line)}
.steps input{width:84px; accent-color:var(--accent); margin:0}
.steps-place{color:var(--ink); min-width:2.6em}
.steps-said{position:absolute; width:1px; height:1px; overflow:hidden; clip-path:inset(50%)}
`;

const short = (x) => {
  if (x === -Infinity) return "−∞";
  const digits = Math.abs(x - Math.round(x)) < 1e-9 ? 0 : 2;
  return fixed(Math.abs(x) < 0.005 ? Math.abs(x) : x, digits); // never a negative zero
};
const strong = (...parts) => el("b", {}, ...parts);
const p = (...parts) => el("p", {}, ...parts);
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const total = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Tables lie row by row, as in Python.
function compute({ q, k, v, T, S, K, V }, { d, temperature, allowed }) {
  const rowOf = (at) => Math.floor(at / S);
  const scores = range(T * S, (at) =>
    total(range(d, (i) => q[rowOf(at) * K + i] * k[(at % S) * K + i])));
  const scaled = scores.map((x) => x / Math.sqrt(d));
  const masked = scaled.map((x, at) => (allowed[at] === "1" ? x : -Infinity));
  const rows = range(T, (t) => {
    const logits = masked.slice(t * S, (t + 1) * S).map((x) => x / temperature);
    const most = Math.max(...logits);
    const dead = most === -Infinity;
    // On the page the powers are those of the plain scores, where these are readable numbers.
    const shift = Math.abs(most) > 12 && !dead ? most : 0;
    const powers = logits.map((x) => Math.exp(x - shift));
    return { dead, shift, powers, sum: total(powers) };
  });
  const weights = range(T * S, (at) => {
    const { dead, powers, sum } = rows[rowOf(at)];
    return dead ? 0 : powers[at % S] / sum;
  });
  const z = range(T, (t) =>
    range(V, (f) => total(range(S, (s) => weights[t * S + s] * v[s * V + f]))));
  return { scores, scaled, masked, weights, rows, z };
}

function presets(T, S) {
  const mask = (look) => range(T * S, (at) => +look(Math.floor(at / S), at % S)).join("");
  const padded = Math.max(1, Math.floor(S / 3));
  const ahead = Math.max(0, S - T); // the queries are the last of the keys
  return [
    ["none", "Hide nothing", mask(() => true)],
    ["causal", "Hide every key after the query", mask((t, s) => s <= t + ahead)],
    ["padding", `Hide the last ${padded} of ${S} keys`, mask((t, s) => s < S - padded)],
  ];
}

function render({ model, el: parent }) {
  const life = new AbortController();
  const { signal } = life;
  const [T, S, K, V] = model.get("sizes");
  const numbers = floats(model.get("numbers"));
  const q = numbers.subarray(0, T * K);
  const k = numbers.subarray(T * K, (T + S) * K);
  const v = numbers.subarray((T + S) * K);
  const data = { q, k, v, T, S, K, V };
  const tokens = model.get("tokens"), keys = model.get("key_tokens");
  const state = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const on = (node, event, callback) => node.addEventListener(event, callback, { signal });
  const clamp = (x, n) => Math.min(Math.max(x, 0), n - 1);
  const go = (step) => tell(model, { step: clamp(step, NAMES.length) });
  const button = (label, callback, attributes = {}) => {
    const node = el("button", { type: "button", ...attributes }, label);
    on(node, "click", callback);
    return node;
  };
  const slider = (label, attributes, callback) => {
    const input = el("input", { type: "range", ...attributes });
    const output = el("span", { class: "steps-place" });
    on(input, "input", () => callback(Number(input.value)));
    const show = (place, text) => {
      input.value = place;
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    return { show, label: el("label", {}, label, input, output) };
  };

  const back = button("‹ Back", () => go(state().step - 1));
  const next = button("Next ›", () => go(state().step + 1));
  const reset = button("Reset", () =>
    tell(model, { allowed: model.get("start"), temperature: 1, d: K }), { class: "steps-reset" });
  const steps = TITLES.map((title, i) => button(`${i + 1} ${title}`, () => go(i)));
  const code = strong(), shape = el("span");

  const cells = range(T * S, (at) => el("td", { role: "gridcell", "data-at": at }));
  const heads = keys.map((key) => el("th", { scope: "col" }, word(key)));
  const sides = tokens.map((token) => el("th", { scope: "row" }, word(token)));
  const size = S <= 8 ? 48 : S <= 12 ? 40 : 24;
  const wide = Math.max(...keys.map((key) => visible(key).length)) * 7 + 14 > size;
  const grid = el(
    "table", { class: "steps-grid" + (wide ? " many" : ""), role: "grid",
      style: `--cell:${size}px` },
    el("thead", {}, el("tr", {}, el("td"), ...heads)),
    el("tbody", {}, ...sides.map((side, t) =>
      el("tr", {}, side, ...cells.slice(t * S, (t + 1) * S)))),
  );
  const bar = el("i"), low = el("span"), high = el("span");
  const scale = el("div", { class: "abh-bar steps-scale", "aria-hidden": "true" },
    low, bar, high, el("i", { class: "abh-hatched" }), "masked");
  const right = el("div", { class: "steps-right" });
  const hint = el("p", { class: "abh-note" });

  const masks = presets(T, S).map(([name, title, allowed]) =>
    [button(name, () => tell(model, { allowed }), { title }), allowed]);
  // Twenty places of the slider are a factor of ten.
  const heat = slider("temperature", { min: -40, max: 40 }, (x) =>
    tell(model, { temperature: Number((10 ** (x / 20)).toPrecision(2)) }));
  const width = slider("features d", { min: 1, max: K }, (d) => tell(model, { d }));
  const about = el("p", { class: "abh-note" });
  const said = el("div", { class: "steps-said", role: "status" });

  const root = widgetRoot(parent, "steps", STEPS_STYLE, signal);
  root.setAttribute("aria-label", "Attention, step by step");
  root.append(
    el("nav", { class: "abh-bar steps-nav", "aria-label": "Steps" }, back, ...steps, next, reset),
    el("div", { class: "steps-code" }, code, shape),
    el("div", { class: "steps-body" }, el("div", {}, grid, scale), right),
    hint,
    el("div", { class: "abh-bar steps-controls" },
      el("span", { role: "group", "aria-label": "Mask", class: "abh-bar steps-nav" },
        "mask", ...masks.map(([node]) => node)),
      heat.label, width.label),
    about, said,
  );

  const choose = (t, s) => {
    const row = clamp(t, T), column = clamp(s, S);
    tell(model, { row, column });
    cells[row * S + column].focus({ preventScroll: true });
  };
  const flipped = (at) => (state().allowed[at] === "1" ? "0" : "1");
  const paint = (at, mark) => {
    const { allowed } = state();
    tell(model, { allowed: allowed.slice(0, at) + mark + allowed.slice(at + 1) });
  };
  const placeOf = (node) => node?.closest("td[data-at]")?.dataset.at;
  let brush = null;
  on(grid, "pointerdown", (event) => {
    const at = Number(placeOf(event.target));
    if (event.button || !(at >= 0)) return;
    event.preventDefault(); // the focus stays on the cell
    choose(Math.floor(at / S), at % S);
    if (state().step !== MASK) return;
    event.target.releasePointerCapture(event.pointerId); // a finger may leave its first cell
    paint(at, (brush = flipped(at)));
  });
  on(grid, "pointermove", ({ clientX, clientY }) => {
    const at = brush && placeOf(document.elementFromPoint(clientX, clientY));
    if (at && state().allowed[at] !== brush) paint(Number(at), brush);
  });
  for (const end of ["pointerup", "pointercancel"]) on(window, end, () => (brush = null));
  on(grid, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const { row, column, step } = state();
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], Home: [row, 0],
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], End: [row, S - 1],
    };
    if (moves[event.key]) choose(...moves[event.key]);
    else if (event.key === "n") go(step + 1);
    else if (event.key === "p") go(step - 1);
    else if (![" ", "Enter"].includes(event.key)) return;
    else if (step >= MASK) paint(row * S + column, flipped(row * S + column));
    else said.textContent = "The mask comes in step 3.";
    event.preventDefault();
  });

  const vector = (numbers) =>
    `[${[...numbers].slice(0, MOST_FEATURES).map(short).join(", ")}` +
    (numbers.length > MOST_FEATURES ? ", …]" : "]");
  const tr = (chosen, head, ...columns) =>
    el("tr", { class: chosen }, el("th", { scope: "row" }, head),
      ...columns.map((c) => (c instanceof Node ? c : el("td", {}, c))));
  const titles = (...names) =>
    el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)));
  const colour = (node, map, x) => {
    const c = colourAt(map, x);
    node.style.cssText = `background:${rgb(c)};color:${inkOn(c)}`;
  };
  const swatch = (weight, look) => {
    const node = el("td", { class: look === "1" ? "" : "abh-hatched" }, strong(fixed(weight)));
    if (look === "1") colour(node, VIRIDIS, weight);
    return node;
  };

  // The numbers of the chosen cell, written out: one function for each step.
  const written = [
    ({ row, column, d }, { scores }, at) => {
      const shown = Math.min(K, MOST_FEATURES);
      const a = (i) => q[row * K + i], b = (i) => k[column * K + i];
      const line = (name, token, f) =>
        tr("", el("span", {}, name, token && word(token)), ...range(shown, (i) =>
          el("td", { class: i < d ? "" : "unused" }, short(f(i)))), ...(K > shown ? ["…"] : []));
      const terms = range(Math.min(d, shown), (i) => short(a(i) * b(i))).join(" + ");
      return [
        el("table", {}, titles("feature", ...range(shown, String)), line("q of ", tokens[row], a),
          line("k of ", keys[column], b), line("product", "", (i) => a(i) * b(i))),
        p(terms, d > shown ? ` + … (${d - shown} more)` : "", " = ", strong(short(scores[at]))),
      ];
    },
    ({ d }, { scores, scaled }, at) => {
      const score = short(scores[at]), root = short(Math.sqrt(d));
      return [p(`${score} ÷ √${d} = ${score} ÷ ${root} = `, strong(short(scaled[at])))];
    },
    ({ row, allowed }, { scaled, rows }, at) => {
      const score = short(scaled[at]), look = allowed[at] === "1";
      return [
        p(look ? "May look: the score stays " : `May not look: ${score} becomes `,
          strong(look ? score : "−∞"), "."),
        rows[row].dead && p("With nothing to look at, it brings nothing back: zeros."),
      ];
    },
    ({ row, column, temperature, allowed }, { masked, weights, rows }, at) => {
      const { powers, shift, dead, sum } = rows[row];
      if (dead) return [p("It may look at nothing: zero weights. The bare softmax is 0 ÷ 0.")];
      const x = "score" + (temperature === 1 ? "" : ` ÷ ${temperature}`) +
        (shift ? ` − ${short(shift)}` : "");
      const lines = keys.map((key, s) =>
        tr(s === column && "on", word(key), short(masked[row * S + s]), fixed(powers[s]),
          swatch(weights[row * S + s], allowed[row * S + s])));
      return [
        el("table", {}, titles("key", "score", x === "score" ? "e^score" : `e^(${x})`, "weight"),
          ...lines, tr("total", "sum", "", fixed(sum), fixed(1))),
        p(`${fixed(powers[column])} ÷ ${fixed(sum)} = `, strong(fixed(weights[at]))),
      ];
    },
    ({ row, column, allowed }, { weights, z }) => {
      const lines = keys.map((key, s) => {
        const value = v.subarray(s * V, (s + 1) * V), weight = weights[row * S + s];
        return tr(s === column && "on", word(key), swatch(weight, allowed[row * S + s]),
          vector(value), vector([...value].map((x) => weight * x)));
      });
      const sum = tr("total", el("span", {}, "z of ", word(tokens[row])), "", "", vector(z[row]));
      sum.dataset.z = z[row];
      return [el("table", {}, titles("key", "weight", "value", "weight × value"), ...lines, sum)];
    },
  ];

  const torchLine = ({ step, d, temperature }, { rows }) => {
    const some = d < K ? `[:, :${d}]` : "";
    return [
      `scores = q${some} @ k${some}.T`,
      `scaled = scores / math.sqrt(${d})`,
      "masked = scaled.masked_fill(~mask, -torch.inf)",
      `weights = torch.softmax(masked${temperature === 1 ? "" : ` / ${temperature}`}, dim=-1)` +
        (rows.some((row) => row.dead) ? ".nan_to_num(0.0)" : ""),
      "z = weights @ v",
    ][step];
  };

  function update() {
    const now = state();
    const { step, row, column, temperature, d, allowed } = now;
    const results = compute(data, now);
    const isWeight = step >= SOFTMAX;
    const name = NAMES[Math.min(step, SOFTMAX)];
    const table = results[name];
    const map = isWeight ? VIRIDIS : PUOR;
    const reach = Math.max(...table.filter(Number.isFinite).map(Math.abs)) || 1;
    const number = (at) => (isWeight ? fixed : short)(table[at]);
    const hidden = (at) => step >= MASK && allowed[at] !== "1";
    const describe = (t, s) =>
      `query ${visible(tokens[t])}, key ${visible(keys[s])}: ${number(t * S + s)}` +
      (hidden(t * S + s) ? ", masked" : "");

    steps.forEach((node, i) => node.setAttribute("aria-current", i === step && "step"));
    back.disabled = step === 0;
    next.disabled = step === SUM;
    code.textContent = torchLine(now, results);
    shape.textContent = step === SUM ? `z (T, V) = (${T}, ${V})` : `${name} (T, S) = (${T}, ${S})`;
    grid.setAttribute("aria-label", `${name}: ${T} queries by ${S} keys`);
    grid.classList.toggle("paints", step === MASK);
    cells.forEach((cell, at) => {
      const chosen = at === row * S + column;
      cell.classList.toggle("abh-hatched", hidden(at));
      if (hidden(at)) cell.style.cssText = "";
      else colour(cell, map, isWeight ? table[at] : (table[at] / reach + 1) / 2);
      cell.dataset.value = table[at];
      const text = hidden(at) ? strong(isWeight ? "0" : "−∞") : number(at);
      cell.replaceChildren(S > 12 ? "" : text);
      cell.setAttribute("aria-selected", chosen);
      cell.setAttribute("aria-label", describe(Math.floor(at / S), at % S));
      cell.tabIndex = chosen ? 0 : -1;
    });
    heads.forEach((head, s) => head.classList.toggle("on", s === column));
    sides.forEach((side, t) => side.classList.toggle("on", t === row));
    bar.style.background = `linear-gradient(90deg,${map.map(rgb)})`;
    low.textContent = isWeight ? "0" : short(-reach);
    high.textContent = isWeight ? "1" : short(reach);
    right.replaceChildren(
      p("query ", strong(word(tokens[row])), " → key ", strong(word(keys[column]))),
      ...written[step](now, results, row * S + column).filter(Boolean));
    hint.textContent = (step === MASK ? "Click or drag to paint the mask. " : "Click a cell. ") +
      `Keys: arrows move, n and p step${step < MASK ? "" : ", Space hides or shows"}.`;
    masks.forEach(([node, preset]) => node.setAttribute("aria-pressed", preset === allowed));
    heat.show(20 * Math.log10(temperature), String(temperature));
    width.show(d, `${d} of ${K}`);
    about.textContent = `d takes the first ${d} of ${K} features of q and k.`;
    said.textContent = describe(row, column);
  }

  follow(model, TRAITS, update, signal);
  update();
  return () => life.abort();
}

export default { render };
