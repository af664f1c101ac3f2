// What the results of a run have in common: bars, a matrix of classes, and lists of what recurs.
import { h, s, count } from "./elements.js";

/** Statuses in the order in which they are told; each has a class of colours in the style sheet, and a mark. */
export const STATUSES = ["optimal", "found", "impossible", "unknown", "reached", "failed"];

/** Stacked bars: `columns` is a list of {label, parts: [[status, number]], filter}. */
export function bars(title, columns, choose, pitch = 30) {
  const most = Math.max(1, ...columns.map((column) => column.parts.reduce((sum, [, number]) => sum + number, 0)));
  const [width, height] = [Math.max(columns.length * pitch, 120), 120];
  const groups = columns.map((column, i) => {
    let y = height;
    const parts = column.parts.map(([status, number]) => {
      const tall = (number / most) * (height - 16);
      y -= tall;
      return s("rect", { x: (i + 0.5) * pitch - 11, y, width: 22, height: tall, class: `bar ${status}` });
    });
    const all = column.parts.reduce((sum, [, number]) => sum + number, 0);
    const total = s("text", { x: (i + 0.5) * pitch, y: y - 4, class: "number" }, all || "");
    const label = s("text", { x: (i + 0.5) * pitch, y: height + 15, class: "tick" }, column.label);
    const told = `${column.name}: ${column.parts.map(([status, number]) => `${number} ${status}`).join(", ") || "none"}`;
    const hit = s("rect", { x: i * pitch, y: 0, width: pitch, height: height + 18, class: "hit" });
    return s("g", { class: "column", click: () => choose(column) }, s("title", {}, told), parts, total, label, hit);
  });
  const told = columns.map((column) => `${column.name}: ${column.parts.reduce((sum, [, number]) => sum + number, 0)}`).join("; ");
  const picture = s("svg", { viewBox: `0 0 ${width} ${height + 20}`, width, height: height + 20, role: "img", "aria-label": `${title}. ${told}` }, groups);
  return h("section", { class: "card" }, h("h3", {}, title), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, picture));
}

/** Which class becomes which: a table of counts, each a button that filters. */
export function matrix(title, names, counts, choose) {
  const cell = (from, to) => {
    const number = counts.get(`${from}\n${to}`) || 0;
    const label = `${count(number, "target")} from ${from} to ${to}`;
    return h("td", {}, number ? h("button", { type: "button", "aria-label": label, title: label, click: () => choose(from, to) }, number) : "·");
  };
  const head = h("tr", {}, h("td", {}, ""), names.map((name) => h("th", { scope: "col" }, name)));
  const rows = names.map((from) => h("tr", {}, h("th", { scope: "row" }, from), names.map((to) => cell(from, to))));
  const table = h("table", { class: "matrix" }, h("caption", { class: "hidden" }, "Predicted before (rows) and after (columns)"), h("thead", {}, head), h("tbody", {}, rows));
  return h("section", { class: "card" }, h("h3", {}, title), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, table));
}

/** What recurs in many answers, each a button that filters. */
export function recurring(title, found, choose) {
  const most = found[0]?.[1] || 1;
  const items = found.map(([name, number]) => {
    const label = `${name}: in ${count(number, "answer")}; show them`;
    const meter = s("svg", { viewBox: "0 0 60 8", class: "meter", "aria-hidden": "true" }, s("rect", { width: (60 * number) / most, height: 8, class: "bar found" }));
    return h("li", {}, h("button", { type: "button", "aria-label": label, click: () => choose(name) }, h("span", { class: "name" }, name), meter, h("span", {}, number)));
  });
  return h("section", { class: "card" }, h("h3", {}, title), items.length ? h("ol", { class: "recurring" }, items) : h("p", {}, "Nothing recurs."));
}
