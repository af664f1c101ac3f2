// A table of many rows: only those in view are in the page.
import { h, inOrder } from "./elements.js";

const ROW = 38;
const SPARE = 12;
// How many rows are printed on paper.
const PRINTED = 400;
// How many rows a key goes down.
const KEYS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

/**
 * columns: {title, hint, className, text(row), value(row) to sort by}. The first is a button that chooses the row.
 * choose(row, clicked): called when a row is chosen; empty: what is said where there are no rows.
 */
export class Table {
  constructor(columns, choose, caption, empty) {
    this.columns = columns;
    this.choose = choose;
    this.empty = empty;
    this.rows = [];
    this.sort = { column: null, down: false };
    this.selected = null;
    this.before = this.spare();
    this.after = this.spare();
    this.body = h("tbody", {});
    this.heads = columns.map((column) =>
      h("th", { scope: "col", class: column.className }, h("button", { type: "button", title: column.hint, click: () => this.order(column) }, column.title)),
    );
    this.table = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.element = h("div", { class: "rows", scroll: () => this.draw(), keydown: (event) => this.step(event) }, this.table);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  spare() {
    return h("tr", { "aria-hidden": "true" }, h("td", {}));
  }

  /** Make the first column as wide as its longest text, within limits. */
  widen(rows) {
    const longest = rows.reduce((most, row) => Math.max(most, this.columns[0].text(row).length), 0);
    this.heads[0].style.width = `${Math.min(Math.max(longest + 3, 9), 21)}ch`;
  }

  /** Show these rows, in the chosen order. */
  show(rows) {
    this.given = rows;
    const { column, down } = this.sort;
    this.rows = column ? sorted(rows, column.value, down) : rows;
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.element.scrollTop = 0;
    this.redraw();
  }

  order(column) {
    this.sort = { column, down: this.sort.column === column && !this.sort.down };
    this.columns.forEach((one, i) => {
      if (one === column) this.heads[i].setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    this.show(this.given);
  }

  redraw() {
    this.first = this.last = -1;
    this.draw();
  }

  draw() {
    if (this.printing) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - SPARE);
    const last = Math.min(this.rows.length, first + Math.ceil((this.element.clientHeight || 600) / ROW) + 2 * SPARE);
    if (first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    this.before.firstChild.style.height = `${first * ROW}px`;
    this.after.firstChild.style.height = `${(this.rows.length - last) * ROW}px`;
    this.fill(first, last, first ? this.before : null, last < this.rows.length ? this.after : null);
  }

  /** On paper there is nothing to scroll. */
  print(printing) {
    if (printing === Boolean(this.printing)) return;
    this.printing = printing;
    if (!printing) this.redraw();
    else this.fill(0, Math.min(this.rows.length, PRINTED), null, this.rows.length > PRINTED ? this.told(`and ${this.rows.length - PRINTED} more`) : null);
  }

  fill(first, last, before, after) {
    const focused = this.body.contains(document.activeElement);
    const rows = this.rows.slice(first, last).map((row, i) => this.row(row, first + i));
    this.body.replaceChildren(...[before, ...(this.rows.length ? rows : [this.told(this.empty)]), after].filter(Boolean));
    // One row is reached by the tabulator key, and the others from there by arrows.
    const stop = (this.body.querySelector(".chosen") || rows[0])?.querySelector("button");
    stop?.setAttribute("tabindex", 0);
    if (focused) stop?.focus({ preventScroll: true });
  }

  told(text) {
    // On a narrow screen only three columns are shown.
    return h("tr", { class: "told" }, h("td", { colspan: 3 }, text));
  }

  row(row, number) {
    const cells = this.columns.map((column, i) => {
      const content = column.text(row);
      const title = typeof content === "string" && content.length > 12 ? content : null;
      if (i) return h("td", { class: column.className, title }, content);
      return h("th", { scope: "row", class: column.className }, h("button", { type: "button", tabindex: -1, title }, content));
    });
    const chosen = row === this.selected;
    return h("tr", { "aria-rowindex": number + 2, class: chosen ? "chosen" : null, "aria-current": chosen ? "true" : null, click: () => this.pick(row, true) }, cells);
  }

  pick(row, clicked = false) {
    if (row === this.selected) return;
    this.selected = row;
    if (!clicked) this.reveal();
    this.redraw();
    this.choose(row, clicked);
  }

  /** Scroll the table, not the page, to the chosen row. */
  reveal() {
    const top = this.rows.indexOf(this.selected) * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = Math.max(top, 0);
    if (top + 3 * ROW > scrollTop + clientHeight) this.element.scrollTop = top + 3 * ROW - clientHeight;
  }

  /** Keys go from row to row. */
  step(event) {
    const by = KEYS[event.key];
    if (!by || !this.rows.length || !event.target.closest("tbody")) return;
    event.preventDefault();
    const at = this.rows.indexOf(this.selected);
    this.pick(this.rows[Math.min(Math.max(at + by, 0), this.rows.length - 1)]);
    this.body.querySelector(".chosen").scrollIntoView({ block: "nearest" });
  }
}

/** Rows by a value, numbers by size and words by the alphabet; what is missing comes last. */
function sorted(rows, value, down) {
  const sign = down ? -1 : 1;
  const keyed = rows.map((row) => [value(row), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" ? a - b || 0 : inOrder(a, b));
  });
  return keyed.map(([, row]) => row);
}
