// The parts of the explorer beside the picture. Each has an element, and is told what to show.
import { h, count, predicted, put, short } from "../elements.js";

// Classes, edges and features are listed up to this many; a filter finds the others.
const CLASSES = 8;
const LISTED = 200;

const panel = (title, ...content) => h("section", { class: "panel" }, h("h2", {}, title), content);

function foldable(title, ...content) {
  const note = h("span", { class: "count" });
  const element = h("details", { class: "panel" }, h("summary", {}, h("h2", {}, title, " ", note)), content);
  return { element, note };
}

/** What the model says before and after the edits. */
export class PredictionPanel {
  constructor(opened) {
    this.opened = opened;
    this.words = h("p", { class: "said", "aria-live": "polite" });
    this.rows = h("tbody", {});
    const head = h("tr", {}, ["class", "before", "now"].map((title) => h("th", { scope: "col" }, title)));
    this.table = h("table", { class: "classes" }, h("caption", { class: "hidden" }, "Probabilities of the classes"), h("thead", {}, head), this.rows);
    this.element = panel("Prediction", this.words, opened.number ? null : this.table);
  }

  show(view, now, edits) {
    const before = view.unedited;
    const same = edits === 0;
    const name = view.name[0].toUpperCase() + view.name.slice(1);
    const words = same ? [name, " is predicted ", h("strong", {}, predicted(before)), "."]
      : [name, " was predicted ", predicted(before), ". After ", count(edits, "edit"), " it is ", h("strong", {}, predicted(now)), "."];
    const verdict = same ? null : now.reached ? h("span", { class: "reached" }, " ✓ That is the goal.") : h("span", { class: "missed" }, " ✗ Not the goal.");
    const refused = now.allowed ? null : h("span", { class: "missed" }, " The rules do not allow these edits together.");
    put(this.words, words, verdict, refused);
    if (this.opened.number || !before.shares) return;
    const shares = now.shares || before.shares.map(() => 0);
    const order = before.shares.map((share, label) => [Math.max(share, shares[label]), label]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    const kept = order.slice(0, CLASSES).map(([, label]) => label).sort((a, b) => a - b);
    const cell = (share, name, when) => h("td", {}, h("meter", { min: 0, max: 1, value: share, "aria-label": `${name}, ${when}` }), h("span", {}, share.toFixed(2)));
    put(this.rows, kept.map((label) => {
      const name = this.opened.classes[label] ?? `class ${label}`;
      const is = label === now.label ? "predicted" : null;
      return h("tr", { class: is }, h("th", { scope: "row" }, name), cell(before.shares[label], name, "before"), cell(shares[label], name, "now"));
    }));
  }
}

/** The edits made so far. */
export class EditsPanel {
  constructor(act) {
    this.act = act;
    this.list = h("ul", { class: "edits" });
    const button = (text, title, click) => h("button", { type: "button", title, click }, text);
    this.undo = button("↶ Undo", "Undo (Ctrl+Z)", act.undo);
    this.redo = button("↷ Redo", "Redo (Ctrl+Y)", act.redo);
    this.reset = button("Restore all", "Take back all edits", act.reset);
    this.element = panel("Edits", this.list, h("div", { class: "row" }, this.undo, this.redo, this.reset));
  }

  show(view, numbers, history) {
    const items = [...numbers].map((number) => {
      const kind = view.edits[number][0][0];
      const told = `${{ delete: "without ", add: "with " }[kind] || ""}${view.told[number]}`;
      return h("li", { class: kind }, told, " ", h("button", { type: "button", class: "small", "aria-label": `Take back: ${told}`, click: () => this.act.toggle(number) }, "✕"));
    });
    put(this.list, items.length ? items : h("li", { class: "none" }, "None yet: click an edge in the picture, or tick it in the list of edges."));
    this.undo.disabled = !history.past.length;
    this.redo.disabled = !history.future.length;
    this.reset.disabled = !numbers.size;
  }
}

/** The goal, the search for the smallest set, and its answer. */
export class SearchPanel {
  constructor(opened, act) {
    this.act = act;
    const classes = opened.classes.map((name, label) => h("option", { value: label }, name));
    this.wanted = h("select", { change: () => act.goal(this.goal()) }, h("option", { value: "" }, "any other class"), classes);
    this.probability = h("input", { type: "number", min: 0.01, max: 0.99, step: 0.01, placeholder: "any", change: () => act.goal(this.goal()) });
    this.all = h("input", { type: "checkbox", checked: true });
    this.find = h("button", { type: "button", class: "main", click: () => act.search(this.all.checked) }, "Find the smallest");
    this.stop = h("button", { type: "button", disabled: true, click: act.stop }, "Stop");
    this.bar = h("div", { class: "bounds", role: "progressbar", "aria-label": "Lower bound beside the best answer so far", "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": 0 }, h("div", {}));
    this.progress = h("p", { class: "progress", role: "status" });
    this.answer = h("div", { class: "answer" });
    this.element = panel(
      "Smallest counterfactual",
      h("div", { class: "row" }, h("label", {}, h("span", {}, "wanted"), this.wanted), opened.number ? null : h("label", {}, h("span", {}, "probability at least"), this.probability)),
      h("label", { class: "check" }, this.all, "list all smallest sets"),
      h("div", { class: "row" }, this.find, this.stop),
      this.bar,
      this.progress,
      this.answer,
    );
  }

  goal() {
    const probability = this.probability.value === "" ? null : Number(this.probability.value);
    return { wanted: this.wanted.value === "" ? null : Number(this.wanted.value), probability };
  }

  sync(goal) {
    this.wanted.value = goal.wanted ?? "";
    this.probability.value = goal.probability ?? "";
  }

  running(state) {
    this.find.disabled = Boolean(state?.running);
    this.stop.disabled = !state?.running;
    const share = state?.cost ? Math.min(state.bound / state.cost, 1) : 0;
    this.bar.classList.toggle("shown", Boolean(state));
    this.bar.setAttribute("aria-valuenow", share.toFixed(2));
    this.bar.firstChild.style.width = `${100 * share}%`;
    if (!state) return void put(this.progress);
    const best = state.cost === undefined || state.cost === null ? "no answer yet" : `best answer so far: ${short(state.cost)}`;
    const spent = state.evaluations === undefined ? "" : `; ${state.evaluations.toLocaleString("en")} evaluations, ${state.seconds.toFixed(1)} s`;
    put(this.progress, state.error ? state.error : `${state.running ? "Searching: " : ""}${best}, proved: at least ${short(state.bound ?? 0)}${spent}`);
  }

  result(result, at) {
    if (!result) return void put(this.answer);
    const many = result.sets.length;
    const step = many > 1 && h(
      "div",
      { class: "stepper", role: "group", "aria-label": "Smallest sets" },
      h("button", { type: "button", "aria-label": "Previous set", click: () => this.act.step(-1) }, "◀"),
      h("span", { role: "status" }, `set ${at + 1} of ${many}`),
      h("button", { type: "button", "aria-label": "Next set", click: () => this.act.step(1) }, "▶"),
    );
    const focus = document.activeElement?.getAttribute("aria-label");
    put(this.answer, h("p", { class: "sentence" }, result.sentence), h("p", { class: "verdict" }, result.verdict), result.note ? h("p", { class: "note" }, result.note) : null, step);
    if (focus === "Next set" || focus === "Previous set") this.answer.querySelector(`[aria-label="${focus}"]`)?.focus();
  }
}

/** All edges of the neighbourhood: the way by keyboard. */
export class EdgesPanel {
  constructor(act) {
    this.act = act;
    this.filter = h("input", { type: "search", placeholder: "a node …", input: () => this.build() });
    this.body = h("tbody", {});
    const head = h("tr", {}, ["edge", "there", "protected", "cost"].map((title) => h("th", { scope: "col" }, title)));
    const table = h("table", { class: "list" }, h("caption", { class: "hidden" }, "Edges of the neighbourhood"), h("thead", {}, head), this.body);
    this.more = h("p", { class: "hint", role: "status" });
    const fold = foldable("Edges", h("label", {}, h("span", {}, "filter"), this.filter), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Edges" }, table), this.more);
    [this.element, this.note] = [fold.element, fold.note];
    this.element.addEventListener("toggle", () => this.build());
  }

  show(view, state, numbers) {
    Object.assign(this, { view, state, numbers });
    put(this.note, `(${view.scene.all[1].toLocaleString("en")})`);
    this.build();
  }

  build() {
    if (!this.element.open || !this.view) return;
    const { view, state, numbers } = this;
    const wanted = this.filter.value.trim().toLowerCase();
    const lines = view.intact().filter((line) => !wanted || view.lineName(line).toLowerCase().includes(wanted));
    const near = (line) => Math.min(...view.ends(line).map((node) => view.distance[node])) + Math.max(...view.ends(line).map((node) => view.distance[node]));
    lines.sort((a, b) => near(a) - near(b) || a - b);
    const focus = document.activeElement?.dataset?.key;
    const edgeKey = (line) => JSON.stringify(view.lines.edge[line]);
    const guarded = new Set(state.rules.protected.map((edge) => JSON.stringify(edge)));
    const priced = new Map(state.rules.costs.map(([edge, cost]) => [JSON.stringify(edge), cost]));
    put(this.body, lines.slice(0, LISTED).map((line) => {
      const [number, name, key] = [view.lines.edit[line], view.lineName(line), edgeKey(line)];
      const fixed = number < 0;
      const there = h("input", { type: "checkbox", "data-key": `there ${key}`, "aria-label": `${name} is there`, checked: !numbers.has(number) || fixed, disabled: fixed, change: () => this.act.toggle(number) });
      const guard = h("input", { type: "checkbox", "data-key": `guard ${key}`, "aria-label": `${name} is protected`, checked: guarded.has(key) || fixed, disabled: fixed && !guarded.has(key), change: () => this.act.protect(line) });
      const cost = h("input", { type: "number", min: 0.01, step: "any", class: "cost", "data-key": `cost ${key}`, "aria-label": `Cost of deleting ${name}`, value: priced.get(key) ?? (fixed ? "" : short(view.costs[number])), disabled: fixed, change: () => this.act.price(line, cost.value) });
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, there), h("td", {}, guard), h("td", {}, cost));
    }));
    const hidden = view.scene.all[1] - view.intact().length;
    put(this.more, lines.length > LISTED ? `The nearest ${LISTED} of ${lines.length}; filter for others. ` : "", hidden > 0 ? `${count(hidden, "edge")} further away ${hidden === 1 ? "is" : "are"} not listed.` : "");
    if (focus) this.body.querySelector(`[data-key='${CSS.escape(focus)}']`)?.focus();
    if (focus) [...this.body.querySelectorAll("input")].find((input) => input.dataset.key === focus)?.focus();
  }
}

/** Edges that may be added. */
export class AddPanel {
  constructor(opened, act) {
    [this.opened, this.act] = [opened, act];
    this.from = h("input", { list: "nodes-here", autocomplete: "off" });
    this.to = h("input", { list: "nodes-here", autocomplete: "off" });
    this.names = h("datalist", { id: "nodes-here" });
    this.relation = opened.relations.length > 1 ? h("select", {}, opened.relations.map((relation, i) => h("option", { value: i }, relation.join(" ")))) : null;
    const add = h("button", { type: "submit" }, "Add the edge");
    const form = h("form", { class: "row", submit: (event) => { event.preventDefault(); this.submit(); } }, h("label", {}, h("span", {}, "from"), this.from), h("label", {}, h("span", {}, "to"), this.to),
      this.relation && h("label", {}, h("span", {}, "relation"), this.relation), add, this.names);
    this.rule = h("select", { change: () => act.rule({ add: { none: null, chosen: [], one: { hops: 1 }, two: { hops: 2 } }[this.rule.value] }) },
      h("option", { value: "none" }, "only where I add one"), h("option", { value: "one" }, "between any nodes within 1 hop"), h("option", { value: "two" }, "between any nodes within 2 hops"));
    const fold = foldable("Add an edge", h("p", { class: "hint" }, "Click two nodes in the picture, or name them here."), form,
      opened.free ? h("label", { class: "block" }, h("span", {}, "the search may add edges"), this.rule) : h("p", { class: "hint" }, `The rules that were given allow ${opened.space}.`));
    this.element = fold.element;
  }

  show(view, rules) {
    put(this.names, view.nodes.slice(0, 500).map((_, node) => h("option", { value: view.nodeName(node) })));
    this.rule.value = rules.add && !Array.isArray(rules.add) ? (rules.add.hops === 1 ? "one" : "two") : "none";
    this.view = view;
  }

  submit() {
    const find = (text) => this.view.nodes.findIndex((_, node) => this.view.nodeName(node) === text.trim() || this.view.scene.labels[node] === text.trim());
    const [a, b] = [find(this.from.value), find(this.to.value)];
    if (a < 0 || b < 0) return this.act.say(`${a < 0 ? this.from.value || "The first node" : this.to.value || "The second node"} is not in this neighbourhood.`);
    this.act.add(a, b, this.relation ? this.opened.relations[this.relation.value] : this.opened.relations[0]);
  }
}

/** Features that may change. */
export class FeaturesPanel {
  constructor(opened, act) {
    this.act = act;
    this.filter = h("input", { type: "search", placeholder: "feature 12, node 3 …", input: () => this.build() });
    this.list = h("ul", { class: "features" });
    this.more = h("p", { class: "hint", role: "status" });
    this.values = h("input", { placeholder: "flip, or numbers: 0, 0.5, 1", change: () => this.read() });
    const fold = foldable("Change a feature", opened.free ? h("label", { class: "block" }, h("span", {}, "features of the target may become"), this.values) : null,
      h("label", {}, h("span", {}, "filter"), this.filter), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Features" }, this.list), this.more);
    [this.element, this.note] = [fold.element, fold.note];
    this.element.addEventListener("toggle", () => this.build());
  }

  read() {
    const text = this.values.value.trim();
    const numbers = text.split(/[\s,;]+/).map(Number);
    if (text && text !== "flip" && numbers.some(Number.isNaN)) return this.act.say(`${text} are no numbers; give flip, or numbers with commas between them.`);
    this.act.rule({ features: !text ? null : { values: text === "flip" ? "flip" : numbers } });
  }

  show(view, state, numbers) {
    Object.assign(this, { view, state, numbers });
    const rule = state.rules.features;
    this.values.value = !rule ? "" : rule.values === "flip" ? "flip" : rule.values.join(", ");
    put(this.note, view.changes.length ? `(${view.changes.length.toLocaleString("en")})` : "");
    this.build();
  }

  build() {
    if (!this.element.open || !this.view) return;
    const { view, numbers } = this;
    const wanted = this.filter.value.trim().toLowerCase();
    const found = view.changes.filter(({ edit }) => !wanted || view.told[edit].toLowerCase().includes(wanted));
    found.sort((a, b) => numbers.has(b.edit) - numbers.has(a.edit) || a.edit - b.edit);
    const focus = document.activeElement?.dataset?.key;
    put(this.list, found.slice(0, LISTED).map(({ edit }) => h("li", {}, h("label", { class: "check" }, h("input", { type: "checkbox", "data-key": `feature ${edit}`, checked: numbers.has(edit), change: () => this.act.toggle(edit) }), view.told[edit]))));
    put(this.more, !view.changes.length ? "The rules allow no feature to change." : found.length > LISTED ? `${LISTED} of ${found.length}; filter for others.` : "");
    if (focus) [...this.list.querySelectorAll("input")].find((input) => input.dataset.key === focus)?.focus();
  }
}
