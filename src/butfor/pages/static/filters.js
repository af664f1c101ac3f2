// Which results the table shows: by words, status, classes, size, and by what is chosen in the overview.
import { h, inOrder } from "./elements.js";
import { STATUSES, answer, badge, editsOf, gap, nodesOf } from "./records.js";

const NOTHING = () => ({ text: "", statuses: new Set(), from: "", to: "", size: null, edit: "", node: "", gap: null });

/** `element` holds the controls, and `clearing` is the button that clears them; `changed()` is called whenever `matches(result)` may answer differently. */
export class Filters {
  constructor(results, changed) {
    this.results = results;
    this.changed = changed;
    this.wanted = NOTHING();
    const number = (label) => h("input", { type: "number", min: 0, inputmode: "numeric", "aria-label": label, input: () => this.set({ size: this.range() }) });
    this.text = h("input", { type: "search", placeholder: "a name, an edge, a class …", input: () => this.set({ text: this.text.value }) });
    this.from = this.choice("from", results.map((result) => result.before.name));
    this.to = this.choice("to", results.flatMap((result) => (result.after ? [result.after.name] : [])));
    this.least = number("Least size");
    this.most = number("Greatest size");
    this.boxes = STATUSES.map((status) => this.box(status)).filter(Boolean);
    const labelled = (name, control) => h("label", {}, h("span", {}, name), control);
    this.element = h(
      "form",
      { class: "filters", submit: (event) => event.preventDefault(), "aria-label": "Filter the results" },
      h("label", { class: "search" }, h("span", {}, "Search"), this.text),
      labelled("Before", this.from),
      labelled("After", this.to),
      h("fieldset", { class: "size" }, h("legend", {}, "Size"), this.least, "–", this.most),
      h("fieldset", { class: "statuses" }, h("legend", {}, "Status"), this.boxes.map(({ element }) => element)),
    );
    this.clearing = h("button", { type: "button", click: () => this.clear() }, "Clear filters");
  }

  choice(name, classes) {
    const options = [...new Set(classes)].sort(inOrder).map((one) => h("option", { value: one }, one));
    const select = h("select", { change: () => this.set({ [name]: select.value }) }, h("option", { value: "" }, "any"), options);
    return select;
  }

  box(status) {
    const number = this.results.filter((result) => result.status === status).length;
    if (!number) return null;
    const change = () => this.set({ statuses: new Set(this.boxes.filter(({ box }) => box.checked).map((one) => one.status)) });
    const box = h("input", { type: "checkbox", change });
    return { status, box, element: h("label", { class: "check" }, box, badge(status), ` ${number.toLocaleString("en")}`) };
  }

  range() {
    const [least, most] = [this.least.value, this.most.value];
    return least || most ? [Number(least || 0), most ? Number(most) : Infinity] : null;
  }

  /** Change some of the filters, and show in the controls what they are. */
  set(changes) {
    const wanted = Object.assign(this.wanted, changes);
    const [least, most] = wanted.size || [0, Infinity];
    const values = [[this.text, wanted.text], [this.from, wanted.from], [this.to, wanted.to], [this.least, least || ""], [this.most, Number.isFinite(most) ? most : ""]];
    // What is being written is left alone: the cursor would jump.
    for (const [control, value] of values) if (control !== document.activeElement) control.value = value;
    for (const { status, box } of this.boxes) box.checked = wanted.statuses.has(status);
    this.changed();
  }

  clear() {
    this.element.reset();
    this.set(NOTHING());
  }

  matches(result) {
    const { text, statuses, from, to, size, edit, node, gap: room } = this.wanted;
    return (
      (!statuses.size || statuses.has(result.status)) &&
      (!from || result.before.name === from) &&
      (!to || result.after?.name === to) &&
      (!size || (result.size !== null && result.size >= size[0] && result.size <= size[1])) &&
      (!room || (result.size !== null && gap(result) >= room[0] && gap(result) < room[1])) &&
      (!edit || editsOf(result).includes(edit)) &&
      (!node || nodesOf(result).includes(node)) &&
      (!text || searched(result).includes(text.toLowerCase()))
    );
  }

  /** What was chosen in the overview, which no control shows. */
  get told() {
    const { edit, node, gap: room } = this.wanted;
    return [edit && `with ${edit}`, node && `at node ${node}`, room && `with a gap of ${room[2]}`].filter(Boolean).join(", ");
  }
}

/** The words of a result; its sentence leaves out edits if there are many. */
function searched(result) {
  result.words ??= [result.target, result.sentence, result.note, ...answer(result).map((edit) => edit.told)].join("\n").toLowerCase();
  return result.words;
}
