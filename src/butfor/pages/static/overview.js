// Cards about all results of a run; what is chosen in them filters the table.
import { count, inOrder } from "./elements.js";
import { bars, matrix, recurring } from "./charts.js";
import { STATUSES, editsOf, gap, nodesOf } from "./records.js";

// Beyond this many, sizes are put together.
const LARGEST = 12;
// How many of what recurs are listed.
const LISTED = 8;
const GAPS = [[0, 1e-9, "0"], [1e-9, 0.1, "<10 %"], [0.1, 0.25, "<25 %"], [0.25, 0.5, "<50 %"], [0.5, 2, "≥50 %"]];

/** `choose` is called with the filters that a card stands for. */
export function overview(results, choose) {
  const found = results.filter((result) => result.size !== null);
  const cards = [bars("Sizes of the answers", sizes(results, found), (column) => choose(column.filters), 26)];
  if (!found.length) return cards;
  const gaps = GAPS.map(([low, high, label]) => {
    const inside = found.filter((result) => gap(result) >= low && gap(result) < high);
    return { label, name: `gap ${label}`, parts: byStatus(inside), filters: { gap: [low, high, label] } };
  });
  const classes = [...new Set(found.flatMap((result) => [result.before.name, result.after.name]))].sort(inOrder);
  const pairs = tally(found, (result) => [`${result.before.name}\n${result.after.name}`]);
  const edits = most(tally(found, editsOf));
  const nodes = most(tally(found, nodesOf));
  const many = found.every((result) => result.task === "graph");
  cards.push(
    bars("Gap to the lower bound", gaps, (column) => choose(column.filters), 41),
    matrix("Class before (rows) and after (columns)", classes, pairs, (from, to) => choose({ from, to })),
  );
  // What recurs must be the same thing: edges and nodes of one graph, or kinds of bonds.
  if (!many || edits.length) cards.push(recurring(many ? "Bonds that recur" : "Edits that recur", edits, (edit) => choose({ edit })));
  if (!many) cards.push(recurring("Nodes that recur", nodes, (node) => choose({ node })));
  return cards;
}

function sizes(results, found) {
  const largest = found.reduce((most, result) => Math.max(most, result.size), 0);
  const columns = Array.from({ length: Math.min(largest, LARGEST) }, (_, i) => {
    const open = i + 1 === LARGEST;
    const inside = found.filter((result) => (open ? result.size >= LARGEST : result.size === i + 1));
    const name = `${open ? "at least " : ""}${count(i + 1, "edit")}`;
    return { label: open ? `${LARGEST}+` : String(i + 1), name, parts: byStatus(inside), filters: { size: [i + 1, open ? Infinity : i + 1] } };
  });
  const none = results.filter((result) => result.size === null);
  const statuses = none.map((result) => result.status);
  if (none.length) columns.push({ label: "none", name: "no answer", parts: byStatus(none), filters: { statuses: new Set(statuses) } });
  return columns;
}

function byStatus(results) {
  return STATUSES.map((status) => [status, results.filter((result) => result.status === status).length]).filter(([, number]) => number);
}

function tally(results, names) {
  const counts = new Map();
  for (const result of results) for (const name of names(result)) counts.set(name, (counts.get(name) || 0) + 1);
  return counts;
}

function most(counts) {
  const recurring = [...counts].filter(([, number]) => number > 1);
  return recurring.sort((a, b) => b[1] - a[1] || inOrder(a[0], b[0])).slice(0, LISTED);
}
