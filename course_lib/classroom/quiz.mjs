// The quiz: one fieldset a question, real radio buttons, an explanation below them at once.
const QUIZ_STYLE = `
.abh-quiz fieldset{border:0; border-top:1px solid var(--line); margin:0; padding:12px 0; min-width:0}
.abh-quiz fieldset:first-of-type{border-top:0}
.abh-quiz legend{font-weight:600; padding:0; float:left; width:100%; margin-bottom:6px}
.abh-quiz pre{clear:both; margin:0 0 8px; padding:8px 10px; overflow-x:auto; border-radius:6px;
  background:var(--tint); color:var(--ink); font:13px/1.4 var(--jp-code-font-family,monospace)}
.abh-quiz label{display:flex; clear:both; align-items:baseline; gap:8px; padding:3px 0; color:var(--ink);
  cursor:pointer}
.abh-quiz input{accent-color:var(--accent); margin:0; flex:none}
.abh-quiz code{font:13px var(--jp-code-font-family,monospace); background:var(--tint); padding:0 3px;
  border-radius:3px; color:var(--ink)}
.abh-quiz .abh-why{margin:6px 0 0; padding:6px 10px; border-left:3px solid var(--accent);
  background:var(--tint)}
.abh-quiz .abh-why:empty{display:none}
.abh-quiz .abh-score{margin:4px 0 0; color:var(--soft)}
`;

// Text with what stands between backticks as code.
const marked = (text) =>
  text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));

function render({ model, el: parent }) {
  const life = new AbortController();
  const root = widgetRoot(parent, "abh-quiz", QUIZ_STYLE, life.signal);
  root.setAttribute("aria-label", `Quiz of lesson ${model.get("lesson")}`);
  const group = `q${Math.random().toString(36).slice(2)}`;
  const questions = model.get("questions");
  const score = el("p", { class: "abh-score", role: "status" });
  const note = el("p", { class: "abh-note", role: "alert" });
  questions.forEach((question, number) => root.append(ask(question, number)));
  root.append(score, note);

  function ask(question, number) {
    const why = el("p", { class: "abh-why", role: "status", "aria-live": "polite" });
    const choices = question.choices.map((choice, place) => {
      const input = el("input", { type: "radio", name: group + number, value: place,
        "data-lm-suppress-shortcuts": true });
      input.checked = model.get("answers")[question.id] === place;
      input.addEventListener("change", () => {
        tell(model, { answers: { ...model.get("answers"), [question.id]: place } });
        explain();
      }, { signal: life.signal });
      return el("label", {}, input, el("span", {}, ...marked(choice.text)));
    });
    function explain() {
      const choice = question.choices[model.get("answers")[question.id]];
      why.replaceChildren();
      if (choice) why.append(el("strong", {}, choice.said), " ", ...marked(choice.why));
      tally();
    }
    follow(model, ["answers"], explain, life.signal);
    const code = question.code ? el("pre", {}, question.code) : null;
    const field = el("fieldset", {},
      el("legend", {}, `${number + 1}. `, ...marked(question.question)), code, ...choices, why);
    queueMicrotask(explain);
    return field;
  }

  function tally() {
    const answers = model.get("answers");
    const given = questions.filter((q) => q.id in answers);
    const right = given.filter((q) => q.choices[answers[q.id]].right);
    score.textContent = `${right.length} right, ${given.length} of ${questions.length} answered.`;
  }
  const warn = () => { note.textContent = model.get("note") ?? ""; };
  follow(model, ["note"], warn, life.signal);
  return () => life.abort();
}

export default { render };
