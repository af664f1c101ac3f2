// A table of many rows: only those in view are in the page.
import { h } from "./elements.js";

const ROW = 38;
const SPARE = 12;

/**
 * columns: {key, title, className, text(row), value(row) to sort by}. The first is a button that chooses the row.
 * choose(row): called when a row is chosen.
 */
export class Table {
  constructor(columns, choose, caption) {
    this.columns = columns;
    this.choose = choose;
    this.rows = [];
    this.sort = { column: null, down: false };
    this.selected = null;
    this.before = h("tr", { "aria-hidden": "true" }, h("td", {}));
    this.after = h("tr", { "aria-hidden": "true" }, h("td", {}));
    this.body = h("tbody", {});
    this.heads = columns.map((column) =>
      h("th", { scope: "col", class: column.className }, h("button", { type: "button", click: () => this.order(column) }, column.title)),
    );
    this.table = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.element = h("div", { class: "rows", scroll: () => this.draw(), keydown: (event) => this.step(event) }, this.table);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Show these rows, in the chosen order. */
  show(rows) {
    this.given = rows;
    const { column, down } = this.sort;
    this.rows = column ? [...rows].sort((a, b) => compare(column.value(a), column.value(b)) * (down ? -1 : 1)) : rows;
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.first = this.last = -1;
    this.draw();
  }

  order(column) {
    this.sort = { column, down: this.sort.column === column && !this.sort.down };
    this.columns.forEach((one, i) => {
      if (one === column) this.heads[i].setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    this.show(this.given);
  }

  draw(all = false) {
    const first = all ? 0 : Math.max(0, Math.floor(this.element.scrollTop / ROW) - SPARE);
    const last = all ? this.rows.length : Math.min(this.rows.length, first + Math.ceil((this.element.clientHeight || 600) / ROW) + 2 * SPARE);
    if (first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    this.before.firstChild.style.height = `${first * ROW}px`;
    this.after.firstChild.style.height = `${(this.rows.length - last) * ROW}px`;
    const rows = this.rows.slice(first, last).map((row, i) => this.row(row, first + i));
    this.body.replaceChildren(...(first ? [this.before] : []), ...rows, ...(last < this.rows.length ? [this.after] : []));
  }

  row(row, number) {
    const cells = this.columns.map((column, i) => {
      const content = column.text(row);
      if (i) return h("td", { class: column.className }, content);
      return h("th", { scope: "row", class: column.className }, h("button", { type: "button", click: () => this.pick(row) }, content));
    });
    const chosen = row === this.selected;
    return h("tr", { "aria-rowindex": number + 2, class: chosen ? "chosen" : null, "aria-current": chosen ? "true" : null, click: () => this.pick(row) }, cells);
  }

  pick(row) {
    if (row === this.selected) return;
    this.selected = row;
    this.first = -1;
    const focused = this.element.contains(document.activeElement);
    this.draw();
    if (focused) this.body.querySelector(".chosen button")?.focus({ preventScroll: true });
    this.choose(row);
  }

  /** Arrow keys go from row to row. */
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || !this.rows.length || !event.target.closest("tbody")) return;
    event.preventDefault();
    const at = this.rows.indexOf(this.selected);
    const next = Math.min(Math.max(at + by, 0), this.rows.length - 1);
    const top = next * ROW;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + 3 * ROW > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + 3 * ROW - this.element.clientHeight;
    this.pick(this.rows[next]);
  }
}

/** Numbers by size, words by the alphabet with numbers in them by size; what is missing comes last. */
function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
