// What the results of a run have in common: bars, a matrix of classes, and lists of what recurs.
import { h, s, count } from "./elements.js";

const TALL = 120;

function card(kind, title, ...content) {
  return h("section", { class: `card ${kind}` }, h("h3", {}, title), content);
}

/** Stacked bars: `columns` is a list of {label, name, parts: [[status, number]]}, each a button that calls `choose`. */
export function bars(title, columns, choose, pitch) {
  const totals = columns.map((column) => column.parts.reduce((sum, [, number]) => sum + number, 0));
  const most = Math.max(1, ...totals);
  const groups = columns.map((column, i) => {
    let y = TALL;
    const parts = column.parts.map(([status, number]) => {
      const tall = (number / most) * (TALL - 16);
      y -= tall;
      return s("rect", { x: (i + 0.5) * pitch - 9, y, width: 18, height: tall, class: `bar ${status}` });
    });
    const total = s("text", { x: (i + 0.5) * pitch, y: y - 4, class: "number" }, totals[i] || "");
    const label = s("text", { x: (i + 0.5) * pitch, y: TALL + 15, class: "tick" }, column.label);
    if (!totals[i]) return s("g", { class: "column" }, label);
    const told = `${column.name}: ${column.parts.map(([status, number]) => `${number} ${status}`).join(", ")}`;
    const hit = s("rect", { x: i * pitch, y: 0, width: pitch, height: TALL + 18, class: "hit" });
    const press = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(column);
    };
    const button = { role: "button", tabindex: 0, "aria-label": `${told}; show them`, click: () => choose(column), keydown: press };
    return s("g", { class: "column full", ...button }, s("title", {}, told), parts, total, label, hit);
  });
  const width = columns.length * pitch + 8;
  const picture = s("svg", { viewBox: `-4 0 ${width} ${TALL + 20}`, width, height: TALL + 20, role: "group", "aria-label": title }, groups);
  return card("bars", title, h("div", { class: "scroll" }, picture));
}

/** Which class becomes which: a table of counts, each a button that filters. */
export function matrix(title, names, counts, choose) {
  const cell = (from, to) => {
    const number = counts.get(`${from}\n${to}`) || 0;
    const label = `${count(number, "target")} from ${from} to ${to}; show them`;
    return h("td", {}, number ? h("button", { type: "button", "aria-label": label, title: label, click: () => choose(from, to) }, number) : "·");
  };
  const head = h("tr", {}, h("td", {}, ""), names.map((name) => h("th", { scope: "col" }, name)));
  const rows = names.map((from) => h("tr", {}, h("th", { scope: "row" }, from), names.map((to) => cell(from, to))));
  const table = h("table", { class: "matrix" }, h("caption", { class: "hidden" }, title), h("thead", {}, head), h("tbody", {}, rows));
  return card("classes", title, h("div", { class: "scroll" }, table));
}

/** What recurs in many answers, each a button that filters. */
export function recurring(title, found, choose) {
  const most = found[0]?.[1] || 1;
  const items = found.map(([name, number]) => {
    const label = `${name}: in ${count(number, "answer")}; show them`;
    const share = h("span", { class: "share" });
    share.style.width = `${(100 * number) / most}%`;
    const button = { type: "button", "aria-label": label, title: label, click: () => choose(name) };
    return h("li", {}, h("button", button, share, h("span", { class: "name" }, name), h("span", { class: "number" }, number)));
  });
  return card("recurs", title, items.length ? h("ol", { class: "recurring" }, items) : h("p", { class: "hint" }, "Nothing recurs."));
}
