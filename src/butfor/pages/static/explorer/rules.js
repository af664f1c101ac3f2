// What may be edited besides deleting edges: edges that come, and features that change.
import { h, put } from "../elements.js";
import { LISTED, foldable } from "./panels.js";

// This many nodes are suggested where one is typed.
const SUGGESTED = 500;

let lists = 0;

/** An id for a list of suggestions: there may be several explorers in one notebook. */
export const listId = () => `butfor-list-${++lists}`;

const WITHIN = { none: null, one: { hops: 1 }, two: { hops: 2 } };

/** Edges that may be added. */
export class AddPanel {
  constructor(opened, act) {
    [this.opened, this.act] = [opened, act];
    const id = listId();
    this.from = h("input", { list: id, autocomplete: "off" });
    this.to = h("input", { list: id, autocomplete: "off" });
    this.names = h("datalist", { id });
    const relations = opened.relations.map((relation, i) => h("option", { value: i }, relation.join(" ")));
    this.relation = relations.length > 1 ? h("select", {}, relations) : null;
    const labelled = (text, input) => h("label", {}, h("span", {}, text), input);
    const submit = (event) => {
      event.preventDefault();
      this.submit();
    };
    const form = h(
      "form",
      { class: "row", submit },
      labelled("from", this.from),
      labelled("to", this.to),
      this.relation && labelled("relation", this.relation),
      h("button", { type: "submit" }, "Add the edge"),
      this.names,
    );
    this.rule = h(
      "select",
      { change: () => act.rule({ add: WITHIN[this.rule.value] }) },
      h("option", { value: "none" }, "only where I add one"),
      h("option", { value: "one" }, "between any nodes within 1 hop"),
      h("option", { value: "two" }, "between any nodes within 2 hops"),
    );
    const allowed = opened.free
      ? h("label", { class: "block" }, h("span", {}, "the search may add edges"), this.rule)
      : h("p", { class: "hint" }, `The rules that were given allow ${opened.space}.`);
    const hint = h("p", { class: "hint" }, "Click two nodes in the picture, or name them here.");
    this.element = foldable("Add an edge", hint, form, allowed).element;
  }

  show(view, rules) {
    put(this.names, view.nodes.slice(0, SUGGESTED).map((_, node) => h("option", { value: view.nodeName(node) })));
    const within = rules.add && !Array.isArray(rules.add);
    this.rule.value = within ? (rules.add.hops === 1 ? "one" : "two") : "none";
    this.view = view;
  }

  submit() {
    if (!this.view) return;
    const relation = this.opened.relations[this.relation ? this.relation.value : 0];
    const from = this.find(this.from.value.trim(), relation?.[0]);
    const to = from === null ? null : this.find(this.to.value.trim(), relation?.[2]);
    if (to !== null) this.act.add(from, to, relation);
  }

  /** The node that was typed, of the type that the relation wants: nodes of several types may have the same label. */
  find(text, type) {
    const { view } = this;
    const named = (node) => view.nodeName(node) === text || view.scene.labels[node] === text;
    const found = view.nodes.findIndex(([, mine], node) => named(node) && (type === undefined || mine === type));
    if (found >= 0) return found;
    const missing = type ? `is no ${type} of this neighbourhood.` : "is not in this neighbourhood.";
    this.act.say(text ? `${text} ${missing}` : "Name both nodes of the edge.");
    return null;
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
    const rule = h("label", { class: "block" }, h("span", {}, "features of the target may become"), this.values);
    const fold = foldable(
      "Change a feature",
      opened.free ? rule : null,
      h("label", {}, h("span", {}, "filter"), this.filter),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Features" }, this.list),
      this.more,
    );
    [this.element, this.note] = [fold.element, fold.note];
    this.element.addEventListener("toggle", () => this.build());
  }

  read() {
    const text = this.values.value.trim();
    const numbers = text.split(/[\s,;]+/).filter(Boolean).map(Number);
    if (text !== "flip" && !numbers.every(Number.isFinite)) {
      return this.act.say(`${text} are no numbers; give flip, or numbers with commas between them.`);
    }
    return this.act.rule({ features: !text ? null : { values: text === "flip" ? "flip" : numbers } });
  }

  show(view, state, numbers) {
    Object.assign(this, { view, numbers });
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
    put(this.list, found.slice(0, LISTED).map(({ edit }) => h("li", {}, this.item(edit, numbers.has(edit)))));
    const cut = found.length > LISTED ? `${LISTED} of ${found.length}; filter for others.` : "";
    put(this.more, view.changes.length ? cut : "The rules allow no feature to change.");
  }

  item(edit, checked) {
    const change = () => this.act.toggle(edit);
    const box = h("input", { type: "checkbox", "data-key": `feature ${this.view.key(edit)}`, checked, change });
    return h("label", { class: "check" }, box, this.view.told[edit]);
  }
}
