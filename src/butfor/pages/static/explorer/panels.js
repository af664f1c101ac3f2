// The parts of the explorer beside the picture. Each has an element, and is told what to show.
import { h, count, predicted, put } from "../elements.js";
import { keyOf } from "./state.js";

// The most probable classes are listed up to this many.
const CLASSES = 8;
// Edges and features are listed up to this many; a filter finds the others.
export const LISTED = 200;

export const panel = (title, ...content) => h("section", { class: "panel" }, h("h2", {}, title), content);

export function foldable(title, ...content) {
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
    const caption = h("caption", { class: "hidden" }, "Probabilities of the classes");
    this.table = h("table", { class: "classes" }, caption, h("thead", {}, head), this.rows);
    this.element = panel("Prediction", this.words, opened.number ? null : this.table);
  }

  show(view, now, edits) {
    const before = view.unedited;
    const same = edits === 0;
    const name = view.name[0].toUpperCase() + view.name.slice(1);
    const strong = (prediction) => h("strong", {}, predicted(prediction));
    const words = same
      ? [name, " is predicted ", strong(before), "."]
      : [name, " was predicted ", predicted(before), ". After ", count(edits, "edit"), " it is ", strong(now), "."];
    const reached = now.reached
      ? h("span", { class: "reached" }, " ✓ That is the goal.")
      : h("span", { class: "missed" }, " ✗ Not the goal.");
    const verdict = same ? null : reached;
    const refused = now.allowed ? null : h("span", { class: "missed" }, " The rules do not allow these edits together.");
    put(this.words, words, verdict, refused);
    if (this.opened.number || !before.shares) return;
    const shares = now.shares || before.shares.map(() => 0);
    const order = before.shares.map((share, label) => [Math.max(share, shares[label]), label]);
    order.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    const kept = order.slice(0, CLASSES).map(([, label]) => label).sort((a, b) => a - b);
    const cell = (share, name, when) => {
      const meter = h("meter", { min: 0, max: 1, value: share, "aria-label": `${name}, ${when}` });
      return h("td", {}, meter, h("span", {}, share.toFixed(2)));
    };
    put(this.rows, kept.map((label) => {
      const name = this.opened.classes[label] ?? `class ${label}`;
      const is = label === now.label ? "predicted" : null;
      const cells = [cell(before.shares[label], name, "before"), cell(shares[label], name, "now")];
      return h("tr", { class: is }, h("th", { scope: "row" }, name), cells);
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
      const click = () => this.act.toggle(number);
      const back = h("button", { type: "button", class: "small", "aria-label": `Take back: ${told}`, click }, "✕");
      return h("li", { class: kind }, told, " ", back);
    });
    const none = h("li", { class: "none" }, "None yet: click an edge in the picture, or untick it in the list of edges.");
    put(this.list, items.length ? items : none);
    this.undo.disabled = !history.past.length;
    this.redo.disabled = !history.future.length;
    this.reset.disabled = !numbers.size;
  }
}

/** All edges of the neighbourhood: the way by keyboard. */
export class EdgesPanel {
  constructor(act) {
    this.act = act;
    this.filter = h("input", { type: "search", placeholder: "a node …", input: () => this.build() });
    this.body = h("tbody", {});
    const head = h("tr", {}, ["edge", "there", "protected", "cost"].map((title) => h("th", { scope: "col" }, title)));
    const caption = h("caption", { class: "hidden" }, "Edges of the neighbourhood");
    const table = h("table", { class: "list" }, caption, h("thead", {}, head), this.body);
    this.more = h("p", { class: "hint", role: "status" });
    const fold = foldable(
      "Edges",
      h("label", {}, h("span", {}, "filter"), this.filter),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Edges" }, table),
      this.more,
    );
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
    const near = (line) => view.ends(line).reduce((sum, node) => sum + view.distance[node], 0);
    lines.sort((a, b) => near(a) - near(b) || a - b);
    const guarded = new Set(state.rules.protected.map(keyOf));
    put(this.body, lines.slice(0, LISTED).map((line) => {
      const key = keyOf(view.lines.edge[line]);
      return this.row(line, key, numbers.has(view.lines.edit[line]), guarded.has(key));
    }));
    const hidden = view.scene.all[1] - view.intact().length;
    put(
      this.more,
      lines.length > LISTED ? `The nearest ${LISTED} of ${lines.length}; filter for others. ` : "",
      hidden > 0 ? `${count(hidden, "edge")} further away ${hidden === 1 ? "is" : "are"} not listed.` : "",
    );
  }

  row(line, key, deleted, guarded) {
    const { view, act } = this;
    const [number, name] = [view.lines.edit[line], view.lineName(line)];
    const fixed = number < 0;
    const check = (what, checked, disabled, change) => h("input", {
      type: "checkbox", "data-key": `${what} ${key}`, "aria-label": `${name} is ${what}`, checked, disabled, change,
    });
    const there = check("there", fixed || !deleted, fixed, () => act.toggle(number));
    const guard = check("protected", fixed || guarded, fixed && !guarded, () => act.protect(line));
    // Edges that go together cost what the rules say of all of them.
    const together = !fixed && view.edits[number].length > 1;
    const cost = h("input", {
      type: "number", min: 0.01, step: "any", class: "cost", "data-key": `cost ${key}`,
      "aria-label": `Cost of deleting ${name}`, value: fixed ? "" : view.costs[number], disabled: fixed || together,
      change: () => act.price(line, cost.value),
    });
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, there), h("td", {}, guard), h("td", {}, cost));
  }
}
