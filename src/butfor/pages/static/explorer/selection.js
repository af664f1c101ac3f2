// What can be done with the nodes that are selected in the picture.
import { count } from "../elements.js";
import { edgeOf, keyOf } from "./state.js";

/** [what a button says, what it does] for one or two nodes, the last one selected last. */
export function offers(opened, view, shown, nodes, act) {
  const found = nodes.length === 2 ? [...edges(view, nodes, act), ...missing(opened, view, nodes, act)] : [];
  const last = nodes.at(-1);
  if (last === undefined) return found;
  const folded = shown.folded.get(shown.nodes.indexOf(last));
  const name = view.nodeName(last);
  if (folded) found.push([`Unfold ${count(folded, "neighbour")} of ${name}`, () => act.unfold(view.nodeKeys[last])]);
  const [number, type] = view.nodes[last];
  const predictable = opened.task === "node" && (type ?? null) === opened.predicted_type;
  if (predictable && !view.scene.targets.includes(last)) found.push([`Explain ${name}`, () => act.go(number)]);
  return found;
}

/** The edges between two nodes that may go or come. */
function edges(view, nodes, act) {
  const free = view.between(...nodes).filter((line) => view.lines.edit[line] >= 0);
  return free.map((line) => {
    const verb = view.lines.added[line] ? "Add or take back" : "Delete or restore";
    return [`${verb} ${view.lineName(line)}`, () => act.toggle(view.lines.edit[line])];
  });
}

/** The edges that could be between two nodes, of every relation that fits them, and in both directions where that matters. */
function missing(opened, view, [first, second], act) {
  const relations = opened.relations.length ? opened.relations : [undefined];
  const found = [];
  relations.forEach((relation, i) => {
    const orders = opened.arrows[i] ? [[first, second], [second, first]] : [[first, second]];
    for (const [a, b] of orders) {
      const [[source, sourceType], [target, targetType]] = [view.nodes[a], view.nodes[b]];
      const fits = !relation || (relation[0] === sourceType && relation[2] === targetType);
      if (!fits || view.lineOf.has(keyOf(edgeOf(source, target, relation)))) continue;
      const named = `${view.nodeName(a)}${opened.arrows[i] ? " → " : "–"}${view.nodeName(b)}`;
      found.push([`Add the edge ${named}${relation ? ` (${relation[1]})` : ""}`, () => act.add(a, b, relation)]);
    }
  });
  return found;
}
