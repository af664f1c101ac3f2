// The report of a run: what its results have in common, a table of them, and one at a time with its picture.
import { h, count, predicted, put, short } from "./elements.js";
import { Detail } from "./detail.js";
import { Filters } from "./filters.js";
import { overview } from "./overview.js";
import { STATUSES, badge } from "./records.js";
import { Table } from "./table.js";

const NARROW = "(max-width: 900px)";

const COLUMNS = [
  { title: "target", className: "target", text: (r) => r.target, value: (r) => r.target },
  { title: "status", className: "status", text: (r) => badge(r.status), value: (r) => STATUSES.indexOf(r.status) },
  { title: "before", className: "class", text: (r) => predicted(r.before), value: (r) => r.before.name },
  { title: "after", className: "class", text: (r) => (r.after ? predicted(r.after) : "–"), value: (r) => r.after?.name ?? null },
  { title: "size", className: "number", text: (r) => r.size ?? "–", value: (r) => r.size },
  { title: "bound", hint: "lower bound", className: "bound", text: (r) => (r.bound === null ? "∞" : short(r.bound)), value: (r) => r.bound ?? Infinity },
];

export function report(place, data) {
  const results = data.results;
  results.forEach((result, number) => (result.number = number));
  const told = h("p", { class: "told", role: "status" });
  const refresh = () => {
    const rows = results.filter((result) => filters.matches(result));
    table.show(rows);
    const which = rows.length === results.length ? "All" : `${rows.length.toLocaleString("en")} of`;
    told.textContent = [`${which} ${count(results.length, "result")}`, filters.told].filter(Boolean).join(" ");
  };
  const filters = new Filters(results, refresh);
  const table = new Table(COLUMNS, (...chosen) => choose(...chosen), "Results; choose a target to see its picture", "No result matches.");
  const list = h("section", { class: "list", "aria-label": "Results" }, h("h2", { class: "hidden" }, "Results"), filters.element, h("div", { class: "line-above" }, told, filters.clearing), table.element);
  const detail = new Detail(data.legend, () => list.scrollIntoView());
  const choose = (result, clicked) => {
    detail.show(result);
    if (location.hash !== `#${result.number}`) history.replaceState(null, "", `#${result.number}`);
    if (clicked && matchMedia(NARROW).matches) detail.element.scrollIntoView({ block: "start" });
  };
  const cards = overview(results, (wanted) => {
    filters.set(wanted);
    list.scrollIntoView({ block: "start" });
  });
  put(
    place,
    h("header", { class: "top" }, h("h1", {}, data.title), summary(results, data.noun), data.note ? h("p", { class: "note" }, data.note) : null),
    h("main", {}, h("details", { class: "overview", open: !matchMedia(NARROW).matches }, h("summary", {}, h("h2", {}, "Across the run")), h("div", { class: "cards" }, cards)), h("div", { class: "columns" }, list, detail.element)),
    h("footer", {}, data.footer),
  );
  table.widen(results);
  refresh();
  const addressed = () => results[location.hash.slice(1) || -1];
  table.pick(addressed() || results.find((result) => result.size) || results[0]);
  addEventListener("hashchange", () => addressed() && table.pick(addressed()));
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => table.print(printing));
  matchMedia("print").addEventListener("change", (event) => table.print(event.matches));
}

function summary(results, noun) {
  const counts = STATUSES.map((status) => [status, results.filter((result) => result.status === status).length]);
  const parts = counts.filter(([, number]) => number).map(([status, number]) => [badge(status), ` ${number.toLocaleString("en")} `]);
  return h("p", { class: "summary" }, `${count(results.length, noun)}: `, parts);
}
