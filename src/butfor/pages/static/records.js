// Results as the page has them, and what can be asked about one.
import { h } from "./elements.js";

/** Statuses in the order in which they are told; each has a colour in the style sheet, and a mark. */
export const STATUSES = ["optimal", "found", "impossible", "unknown", "reached", "failed"];
const MARKS = { optimal: "✓", found: "≈", impossible: "∅", unknown: "?", reached: "=", failed: "!" };
const BONDS = { double: "=", triple: "≡" };

export function badge(status) {
  return h("span", { class: `badge ${status}` }, h("span", { "aria-hidden": "true" }, `${MARKS[status]} `), status);
}

/** The edits of a result's answer; none where nothing was found. */
export function answer(result) {
  return (result.sets[0] || []).map((number) => result.edits[number]);
}

export function inWords(edit) {
  return edit.kind === "change" ? edit.told : `${edit.kind === "delete" ? "without" : "with"} ${edit.told}`;
}

/** The share of its cost by which an answer might be too large. */
export function gap(result) {
  return result.cost ? (result.cost - (result.bound ?? 0)) / result.cost : 0;
}

/** What the edits of an answer are counted as across the run: themselves, or in molecules, which differ, bonds. */
export function editsOf(result) {
  if (result.task !== "graph") return [...new Set(answer(result).map((edit) => edit.told))];
  const { symbols, ends, bonds } = result.scene;
  const edges = symbols ? answer(result).filter((edit) => edit.line !== undefined) : [];
  const named = edges.map(({ line }) => [symbols[ends[2 * line]], symbols[ends[2 * line + 1]]].sort().join(BONDS[bonds[line]] || "–"));
  return [...new Set(named)];
}

/** The nodes at the edits of an answer, but for the target; none where each result has a graph of its own. */
export function nodesOf(result) {
  if (result.task === "graph") return [];
  const { names, labels, ends, targets } = result.scene;
  const found = answer(result).flatMap(({ line, node }) => (line !== undefined ? [ends[2 * line], ends[2 * line + 1]] : node !== undefined ? [node] : []));
  return [...new Set(found)].filter((node) => !targets.includes(node)).map((node) => (names || labels)[node]);
}
