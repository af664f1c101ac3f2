// One result: its sentence, its picture, what is proved, and other answers.
import { h, count, put, save } from "./elements.js";
import { Drawing } from "./drawing.js";
import { legendList } from "./legend.js";
import { badge, inWords } from "./records.js";

// Longer lists are folded up after so many.
const LISTED = 8;

export class Detail {
  constructor(legend, back) {
    this.legend = legend;
    this.back = back;
    this.drawing = new Drawing();
    this.content = h("div", {});
    this.spoken = h("p", { class: "hidden", role: "status" });
    this.element = h("article", { class: "detail", tabindex: -1, "aria-label": "The chosen result" }, this.spoken, this.content);
  }

  show(result) {
    this.result = result;
    this.caption = h("figcaption", {});
    this.stepper = h("div", {});
    this.edits = h("section", {});
    this.spoken.textContent = `${result.sentence} ${result.verdict}`;
    put(
      this.content,
      h("header", {}, h("h2", {}, result.target), badge(result.status), h("button", { type: "button", class: "back", click: this.back }, "Back to the list")),
      h("p", { class: "sentence" }, result.sentence),
      h("p", { class: "verdict" }, result.verdict),
      result.note && !result.sentence.includes(result.note) ? h("p", { class: "note" }, result.note) : null,
      this.stepper,
      h("figure", {}, this.drawing.element, this.caption),
      this.edits,
      result.shares.length ? this.shares() : null,
      this.facts(),
      this.exports(),
    );
    this.step(0);
  }

  /** Show one of the sets of edits; the first is the answer. */
  step(set) {
    const { result } = this;
    const edits = (result.sets[set] || []).map((number) => result.edits[number]);
    const roles = new Map();
    // Edges that other sets add are not there.
    for (const edit of result.edits) if (edit.line !== undefined && edit.kind === "add") roles.set(edit.line, "hidden");
    for (const edit of edits) if (edit.line !== undefined) roles.set(edit.line, edit.kind === "delete" ? "deleted" : "added");
    for (const line of result.scene.link || []) roles.set(line, "link");
    const changed = new Set(edits.flatMap((edit) => (edit.node === undefined ? [] : [edit.node])));
    const label = `Picture of ${result.target}: ${edits.map(inWords).join(", ") || "nothing is edited"}`;
    const keys = result.scene.labels.map((_, node) => `${result.number} ${node}`);
    this.drawing.show(result.scene, this.legend, { roles, changed, label, keys, fold: true });
    const shown = new Set([...roles.values(), ...(changed.size ? ["changed"] : [])]);
    put(this.caption, legendList(this.legend, result.scene, shown, `${result.target}, the target`), this.partial());
    const items = edits.map((edit) => h("li", { class: edit.kind }, inWords(edit)));
    put(this.edits, items.length ? [h("h3", {}, "Edits"), h("ul", { class: items.length > LISTED ? "edits many" : "edits" }, items)] : []);
    this.steps(set);
  }

  steps(set) {
    const { sets, more } = this.result;
    if (sets.length < 2) return;
    const focused = this.stepper.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
    const button = (label, text, by) => h("button", { type: "button", "aria-label": label, click: () => this.step((set + by + sets.length) % sets.length) }, text);
    const known = more ? ` (the first ${sets.length} of ${sets.length + more})` : "";
    put(
      this.stepper,
      h("div", { class: "stepper", role: "group", "aria-label": "Sets of edits" }, button("Previous set", "◀", -1), h("span", { role: "status" }, `set ${set + 1} of ${sets.length}${known}`), button("Next set", "▶", 1)),
    );
    if (focused) this.stepper.querySelector(`[aria-label="${focused}"]`).focus();
  }

  partial() {
    const { labels, ends, all } = this.result.scene;
    if (labels.length >= all[0]) return null;
    return h("p", { class: "partial" }, `Showing ${labels.length} of ${count(all[0], "node")} and ${ends.length / 2} of ${count(all[1], "edge")}: those of edits, and those nearest the target.`);
  }

  shares() {
    const sorted = [...this.result.shares].sort((a, b) => b[1] - a[1]);
    const items = sorted.map(([number, share]) => {
      const name = inWords(this.result.edits[number]);
      return h("li", {}, h("span", { class: "name" }, name), h("meter", { min: 0, max: 1, value: share, "aria-label": name }), h("span", { class: "number" }, `${Math.round(100 * share)} %`));
    });
    const rest = items.splice(LISTED);
    return h(
      "section",
      {},
      h("h3", {}, "How necessary is each edit?"),
      h("p", { class: "hint" }, "The share of all smallest sets that contain it; 100 %: nothing as small does without it."),
      h("ul", { class: "shares" }, items),
      rest.length ? h("details", {}, h("summary", {}, `${rest.length} more`), h("ul", { class: "shares" }, rest)) : null,
    );
  }

  facts() {
    const rows = this.result.facts.map(([what, value]) => h("tr", {}, h("th", { scope: "row" }, what), h("td", {}, value)));
    return h("details", {}, h("summary", {}, "How it was found"), h("table", { class: "facts" }, h("tbody", {}, rows)));
  }

  exports() {
    const { result, drawing } = this;
    const name = result.target.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
    const words = [result.sentence, result.verdict];
    const svg = () => save(`${name}.svg`, new Blob([drawing.standalone(words).text], { type: "image/svg+xml" }));
    const png = async () => save(`${name}.png`, await drawing.bitmap(words));
    const button = (text, act) => h("button", { type: "button", click: act }, text);
    return h("p", { class: "exports" }, button("Save as SVG", svg), button("Save as PNG", png));
  }
}
