// The report of a run: what its results have in common, a table of them, and one at a time with its picture.
import { h, count, predicted, put, save, short } from "./elements.js";
import { Drawing, legendList } from "./drawing.js";
import { Table } from "./table.js";
import { STATUSES, bars, matrix, recurring } from "./charts.js";

const MARKS = { optimal: "✓", found: "≈", impossible: "∅", unknown: "?", reached: "=", failed: "!" };
// Beyond this many, sizes are put together.
const LARGEST = 12;
// How many of what recurs are listed.
const LISTED = 12;
// How many rows are printed on paper.
const PRINTED = 400;

function badge(status) {
  return h("span", { class: `badge ${status}` }, h("span", { "aria-hidden": "true" }, `${MARKS[status]} `), status);
}

export function report(place, data) {
  const results = data.results;
  results.forEach((result, number) => (result.number = number));
  const filters = { text: "", statuses: new Set(), from: "", to: "", size: null, edit: "", node: "", gap: null };
  const changed = (result) => (result.after ? [result.before.name, result.after.name] : null);
  const table = new Table(
    [
      { title: "target", className: "target", text: (r) => r.target, value: (r) => r.target },
      { title: "status", className: "status", text: (r) => badge(r.status), value: (r) => STATUSES.indexOf(r.status) },
      { title: "before", className: "wide", text: (r) => predicted(r.before), value: (r) => r.before.name },
      { title: "after", className: "wide", text: (r) => (r.after ? predicted(r.after) : "–"), value: (r) => r.after?.name ?? null },
      { title: "size", className: "number", text: (r) => r.size ?? "–", value: (r) => r.size },
      { title: "at least", className: "number wide", text: (r) => (r.bound === null ? "none exists" : short(r.bound)), value: (r) => r.bound ?? Infinity },
    ],
    (result) => show(result),
    "Results; choose a target to see its picture",
  );
  const detail = h("article", { class: "detail", "aria-live": "polite", tabindex: -1, "aria-label": "The chosen result" });
  const drawing = new Drawing();
  const told = h("p", { class: "told", role: "status" });
  let chosen = null;

  const matches = (r) => {
    const pair = changed(r);
    return (
      (!filters.text || `${r.target} ${r.sentence}`.toLowerCase().includes(filters.text.toLowerCase())) &&
      (!filters.statuses.size || filters.statuses.has(r.status)) &&
      (!filters.from || r.before.name === filters.from) &&
      (!filters.to || pair?.[1] === filters.to) &&
      (!filters.size || (r.size !== null && r.size >= filters.size[0] && r.size <= filters.size[1])) &&
      (!filters.gap || (r.size !== null && gap(r) >= filters.gap[0] && gap(r) < filters.gap[1])) &&
      (!filters.edit || answer(r).some((edit) => edit.told === filters.edit)) &&
      (!filters.node || nodesOf(r).includes(filters.node))
    );
  };
  const refresh = () => {
    const rows = results.filter(matches);
    table.element.scrollTop = 0;
    table.show(rows);
    const extra = [filters.edit && `with ${filters.edit}`, filters.node && `at node ${filters.node}`, filters.gap && `with a gap of ${filters.gap[2]}`].filter(Boolean);
    told.textContent = `${rows.length === results.length ? "All" : rows.length.toLocaleString("en")} of ${count(results.length, "result")}${extra.length ? ` ${extra.join(", ")}` : ""}`;
  };
  const set = (changes, scroll = true) => {
    Object.assign(filters, changes);
    syncControls();
    refresh();
    if (scroll) list.scrollIntoView({ block: "start" });
  };

  // Filters.
  const options = (names, all) => [h("option", { value: "" }, all), ...names.map((name) => h("option", { value: name }, name))];
  const text = h("input", { type: "search", placeholder: "node 597, an edge, a class …", input: () => set({ text: text.value }, false) });
  const befores = [...new Set(results.map((r) => r.before.name))].sort();
  const afters = [...new Set(results.filter((r) => r.after).map((r) => r.after.name))].sort();
  const from = h("select", { change: () => set({ from: from.value }, false) }, options(befores, "any"));
  const to = h("select", { change: () => set({ to: to.value }, false) }, options(afters, "any"));
  const least = h("input", { type: "number", min: 0, inputmode: "numeric", input: () => sizes() });
  const most = h("input", { type: "number", min: 0, inputmode: "numeric", input: () => sizes() });
  const sizes = () => set({ size: least.value || most.value ? [Number(least.value || 0), Number(most.value || Infinity)] : null }, false);
  const occurring = STATUSES.filter((status) => results.some((r) => r.status === status));
  const boxes = occurring.map((status) => {
    const box = h("input", { type: "checkbox", change: () => {
      box.checked ? filters.statuses.add(status) : filters.statuses.delete(status);
      set({}, false);
    } });
    return { status, box, element: h("label", { class: "check" }, box, badge(status), ` ${results.filter((r) => r.status === status).length}`) };
  });
  const clear = h("button", { type: "button", click: () => {
    filters.statuses.clear();
    set({ text: "", from: "", to: "", size: null, edit: "", node: "", gap: null }, false);
  } }, "Clear filters");
  const syncControls = () => {
    text.value = filters.text;
    from.value = filters.from;
    to.value = filters.to;
    least.value = filters.size && filters.size[0] ? filters.size[0] : "";
    most.value = filters.size && Number.isFinite(filters.size[1]) ? filters.size[1] : "";
    for (const { status, box } of boxes) box.checked = filters.statuses.has(status);
  };
  const labelled = (name, ...controls) => h("label", {}, h("span", {}, name), controls);
  const controls = h(
    "form",
    { class: "filters", submit: (event) => event.preventDefault(), "aria-label": "Filter the results" },
    labelled("Search", text),
    h("fieldset", {}, h("legend", {}, "Status"), boxes.map(({ element }) => element)),
    labelled("From", from),
    labelled("To", to),
    labelled("Size from", least),
    labelled("to", most),
    clear,
  );

  // One result.
  function show(result, set = 0) {
    chosen = { result, set };
    const edits = result.sets.length ? result.sets[set].map((number) => result.edits[number]) : [];
    const roles = new Map(), nodes = new Set();
    result.edits.forEach((edit) => edit.line !== undefined && edit.kind === "add" && roles.set(edit.line, "hidden"));
    for (const edit of edits) {
      if (edit.line !== undefined) roles.set(edit.line, edit.kind === "delete" ? "deleted" : "added");
      if (edit.node !== undefined) nodes.add(edit.node);
    }
    for (const line of result.scene.link || []) roles.set(line, "link");
    drawing.show(result.scene, data.legend, { roles, changed: nodes, label: `Picture of ${result.target}: ${edits.map(inWords).join(", ") || "nothing is edited"}` });
    drawing.fit();
    const shown = new Set([...roles.values(), ...(nodes.size ? ["changed"] : [])]);
    const [nodesInAll, edgesInAll] = result.scene.all;
    const partial = result.scene.labels.length < nodesInAll;
    const alternatives = result.sets.length > 1 && h(
      "div",
      { class: "stepper", role: "group", "aria-label": "Smallest sets of edits" },
      h("button", { type: "button", "aria-label": "Previous set", click: () => show(result, (set + result.sets.length - 1) % result.sets.length) }, "◀"),
      h("span", { role: "status" }, `set ${set + 1} of ${result.sets.length + result.more}`),
      h("button", { type: "button", "aria-label": "Next set", click: () => show(result, (set + 1) % result.sets.length) }, "▶"),
    );
    const name = result.target.replace(/\W+/g, "-");
    const words = [result.sentence, result.verdict];
    put(
      detail,
      h("header", {}, h("h2", {}, result.target), badge(result.status), h("button", { type: "button", class: "back", click: () => list.scrollIntoView() }, "Back to the list")),
      h("p", { class: "sentence" }, result.sentence),
      h("p", { class: "verdict" }, result.verdict),
      result.note ? h("p", { class: "note" }, result.note) : null,
      alternatives || null,
      h("figure", {}, drawing.element, h("figcaption", {}, legendList(data.legend, result.scene, shown, `${result.target}, the target`),
        partial ? h("p", { class: "partial" }, `Showing ${result.scene.labels.length} of ${count(nodesInAll, "node")} and ${result.scene.ends.length / 2} of ${count(edgesInAll, "edge")}: those of edits, and those nearest the target.`) : null)),
      edits.length ? h("section", {}, h("h3", {}, "Edits"), h("ul", { class: "edits" }, edits.map((edit) => h("li", { class: edit.kind }, inWords(edit))))) : null,
      result.shares.length ? h("section", {}, h("h3", {}, "How necessary is each edit?"), h("p", { class: "hint" }, "The share of all smallest sets that contain it; 100 %: nothing as small does without it."),
        h("ul", { class: "shares" }, [...result.shares].sort((a, b) => b[1] - a[1]).map(([number, share]) => h("li", {}, h("span", {}, inWords(result.edits[number])), h("meter", { min: 0, max: 1, value: share, "aria-label": inWords(result.edits[number]) }), `${Math.round(100 * share)} %`)))) : null,
      h("details", {}, h("summary", {}, "How it was found"), h("table", { class: "facts" }, h("tbody", {}, result.facts.map(([what, value]) => h("tr", {}, h("th", { scope: "row" }, what), h("td", {}, value)))))),
      h("p", { class: "exports" }, h("button", { type: "button", click: () => save(`${name}.svg`, new Blob([drawing.standalone(words).text], { type: "image/svg+xml" })) }, "Save as SVG"),
        h("button", { type: "button", click: async () => save(`${name}.png`, await drawing.bitmap(words)) }, "Save as PNG")),
    );
    drawing.fit();
    if (location.hash !== `#${result.number}`) history.replaceState(null, "", `#${result.number}`);
    if (set === 0 && matchMedia("(max-width: 900px)").matches && started) detail.scrollIntoView({ block: "start" });
  }

  const list = h("section", { class: "list", "aria-label": "Results" }, h("h2", { class: "hidden" }, "Results"), controls, told, table.element);
  const summary = occurring.map((status) => [status, results.filter((r) => r.status === status).length]);
  const overview = h("details", { class: "overview", open: true }, h("summary", {}, h("h2", {}, "Across the run")), h("div", { class: "cards" }, overviewOf(results, set)));
  put(
    place,
    h("header", { class: "top" }, h("h1", {}, data.title), h("p", { class: "summary" }, `${count(results.length, data.noun)}: `, summary.flatMap(([status, number]) => [badge(status), ` ${number.toLocaleString("en")} `])), data.note ? h("p", { class: "note" }, data.note) : null),
    h("main", {}, overview, h("div", { class: "columns" }, list, detail)),
    h("footer", {}, data.footer),
  );
  let started = false;
  refresh();
  const wanted = Number(location.hash.slice(1));
  const first = (location.hash.length > 1 && results[wanted]) || results.find((r) => r.size) || results[0];
  if (first) table.pick(first);
  else detail.textContent = "There are no results.";
  started = true;
  addEventListener("beforeprint", () => table.rows.length <= PRINTED && table.draw(true));
  addEventListener("afterprint", () => table.draw());
}

function inWords(edit) {
  return edit.kind === "change" ? edit.told : `${edit.kind === "delete" ? "without" : "with"} ${edit.told}`;
}

function answer(result) {
  return (result.sets[0] || []).map((number) => result.edits[number]);
}

function gap(result) {
  return result.cost ? (result.cost - (result.bound ?? 0)) / result.cost : 0;
}

function nodesOf(result) {
  const names = result.scene.names || result.scene.labels;
  const found = answer(result).flatMap((edit) => (edit.line !== undefined ? [result.scene.ends[2 * edit.line], result.scene.ends[2 * edit.line + 1]] : edit.node !== undefined ? [edit.node] : []));
  return [...new Set(found)].filter((node) => !result.scene.targets.includes(node)).map((node) => names[node]);
}

/** Cards about all results. */
function overviewOf(results, set) {
  const found = results.filter((r) => r.size !== null);
  const tally = (some, key) => STATUSES.map((status) => [status, some.filter((r) => r.status === status && key(r)).length]).filter(([, number]) => number);
  const largest = Math.min(LARGEST, Math.max(0, ...found.map((r) => r.size)));
  const sizes = Array.from({ length: largest }, (_, i) => {
    const open = i + 1 === LARGEST;
    const inside = (r) => (open ? r.size >= LARGEST : r.size === i + 1);
    return { label: open ? `${LARGEST}+` : String(i + 1), name: `${open ? "at least " : ""}${count(i + 1, "edit")}`, parts: tally(found, inside), range: [i + 1, open ? Infinity : i + 1] };
  });
  const none = results.filter((r) => r.size === null);
  if (none.length) sizes.push({ label: "none", name: "no answer", parts: tally(none, () => true), statuses: [...new Set(none.map((r) => r.status))] });
  const steps = [[0, 1e-9, "0"], [1e-9, 0.1, "<10 %"], [0.1, 0.25, "<25 %"], [0.25, 0.5, "<50 %"], [0.5, 2, "≥50 %"]];
  const gaps = steps.map(([low, high, label]) => ({ label, name: `gap ${label}`, parts: tally(found, (r) => gap(r) >= low && gap(r) < high), gap: [low, high, label] }));
  const names = [...new Set(found.flatMap((r) => [r.before.name, r.after.name]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const pairs = new Map(), edges = new Map(), nodes = new Map();
  for (const r of found) {
    const key = `${r.before.name}\n${r.after.name}`;
    pairs.set(key, (pairs.get(key) || 0) + 1);
    for (const edit of answer(r)) edges.set(edit.told, (edges.get(edit.told) || 0) + 1);
    for (const node of nodesOf(r)) nodes.set(node, (nodes.get(node) || 0) + 1);
  }
  const top = (map) => [...map].filter(([, number]) => number > 1).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0], "en", { numeric: true })).slice(0, LISTED);
  return [
    bars("Sizes of the answers", sizes, (column) => (column.range ? set({ size: column.range }) : set({ size: null, statuses: new Set(column.statuses) }))),
    found.length ? bars("Gap between size and lower bound", gaps, (column) => set({ gap: column.gap }), 46) : null,
    names.length ? matrix("From class (rows) to class (columns)", names, pairs, (a, b) => set({ from: a, to: b })) : null,
    recurring("Edits that recur", top(edges), (name) => set({ edit: name })),
    recurring("Nodes that recur", top(nodes), (name) => set({ node: name })),
  ].filter(Boolean);
}
