// What somebody looks at and has done so far, as plain data: undone, redone, saved and loaded as a whole.
import { adjacency, hops } from "../layout.js";

// This many nodes are shown at first; the rest is folded up.
export const SHOWN = 40;

/** Nothing is protected, every edit costs what the rules given say, and no further kinds of edits are allowed. */
export function noRules() {
  return { protected: [], costs: [], add: null, features: null };
}

/** States, one after the other. Lists are never changed in place, so that what is kept stays as it was. */
export class History {
  constructor(first) {
    this.set([], first, []);
  }

  set(past, now, future) {
    Object.assign(this, { past, now, future });
  }

  change(next) {
    this.set([...this.past, this.now], next, []);
  }

  undo() {
    if (this.past.length) this.set(this.past.slice(0, -1), this.past.at(-1), [...this.future, this.now]);
  }

  redo() {
    if (this.future.length) this.set([...this.past, this.now], this.future.at(-1), this.future.slice(0, -1));
  }

  /** All of it as it is now; `set(...history.kept)` comes back to it. */
  get kept() {
    return [this.past, this.now, this.future];
  }
}

function isKey(key) {
  try {
    return Array.isArray(JSON.parse(key));
  } catch {
    return false;
  }
}

/** A state from a file, which may hold anything. What its parts mean, the server judges. */
export function readState(plain) {
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isNumber = (value) => value === null || typeof value === "number";
  const { target, edits, rules, goal, unfolded, limit } = isObject(plain) ? plain : {};
  const { protected: stay, costs, add = null, features = null } = isObject(rules) ? rules : {};
  const fine = [edits, unfolded, stay, costs].every(Array.isArray)
    && [...edits, ...unfolded].every(isKey)
    && costs.every((pair) => Array.isArray(pair) && pair.length === 2)
    && (add === null || Array.isArray(add) || isNumber(add.hops))
    && (features === null || features.values === "flip" || Array.isArray(features.values))
    && isObject(goal) && isNumber(goal.wanted ?? null) && isNumber(goal.probability ?? null)
    && target !== undefined && limit > 0;
  if (!fine) throw new Error("This file is damaged.");
  const asked = { wanted: goal.wanted ?? null, probability: goal.probability ?? null };
  return { target, edits, rules: { protected: stay, costs, add, features }, goal: asked, unfolded, limit: Number(limit) };
}

export const keyOf = (plain) => JSON.stringify(plain);

/** What the server is asked about: everything that its answers depend on, but for the edits. */
export const questionOf = ({ target, rules, goal }) => ({ target, rules, goal });

/** An edge as the rules name it. */
export const edgeOf = (source, target, relation) => (relation ? [relation, source, target] : [source, target]);

/** The key of the edit that adds an edge. */
export function addedKey(edge) {
  const [source, target] = edge.slice(-2);
  return keyOf(["add", source, target, ...edge.slice(0, -2)]);
}

const reversed = (edge) => [...edge.slice(0, -2), edge.at(-1), edge.at(-2)];

/** What the server says of a target, with what is looked up often. */
export class TargetView {
  constructor(plain) {
    Object.assign(this, plain);
    const numbered = (records, number) => records.map((record) => [keyOf(record), number]);
    this.numberOf = new Map(plain.edits.flatMap(numbered));
    this.nodeKeys = plain.nodes.map(keyOf);
    this.lineCount = plain.scene.ends.length / 2;
    this.lineOf = new Map();
    plain.lines.edge.forEach((edge, line) => {
      // Without a direction, an edge is the same in both orders.
      for (const named of plain.scene.arrows?.[line] ? [edge] : [edge, reversed(edge)]) {
        this.lineOf.set(keyOf(named), line);
        if (plain.lines.added[line]) this.numberOf.set(addedKey(named), plain.lines.edit[line]);
      }
    });
    this.lists = adjacency(plain.nodes.length, this.intact().flatMap((line) => this.ends(line)));
  }

  ends(line) {
    return [this.scene.ends[2 * line], this.scene.ends[2 * line + 1]];
  }

  /** The lines that are edges of the graph. */
  intact() {
    return Array.from({ length: this.lineCount }, (_, line) => line).filter((line) => !this.lines.added[line]);
  }

  /** The key by which an edit is remembered. */
  key(number) {
    return keyOf(this.edits[number][0]);
  }

  /** The numbers of edits that are allowed here. */
  numbers(keys) {
    return new Set(keys.map((key) => this.numberOf.get(key)).filter((number) => number !== undefined));
  }

  nodeName(node) {
    return (this.scene.names || this.scene.labels)[node];
  }

  lineName(line) {
    const [a, b] = this.ends(line);
    const relation = this.scene.relations ? ` (${this.scene.relations[line]})` : "";
    return `${this.nodeName(a)}${this.scene.arrows?.[line] ? " → " : "–"}${this.nodeName(b)}${relation}`;
  }

  /** The lines between two nodes, in either direction. */
  between(a, b) {
    const found = [];
    for (let line = 0; line < this.lineCount; line++) {
      const [u, v] = this.ends(line);
      if ((u === a && v === b) || (u === b && v === a)) found.push(line);
    }
    return found;
  }

  /**
   * The part that is drawn: the target, the edits and the ways from them to the target, what is nearest, and the
   * neighbours of unfolded nodes. `lines` and `nodes` say which these are.
   */
  excerpt(chosen, unfolded, limit) {
    const shown = new Set(this.scene.targets);
    const { before } = hops(this.lists, this.scene.targets.length ? this.scene.targets : [0]);
    const add = (node) => {
      for (let at = node; at >= 0 && !shown.has(at); at = before[at]) shown.add(at);
    };
    for (let line = 0; line < this.lineCount; line++) {
      if (chosen.has(this.lines.edit[line])) this.ends(line).forEach(add);
    }
    for (const { edit, node } of this.changes) if (chosen.has(edit) && node >= 0) add(node);
    const order = this.distance.map((distance, node) => [distance, node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const [, node] of order) {
      if (shown.size >= limit) break;
      shown.add(node);
    }
    this.nodeKeys.forEach((key, node) => {
      if (!unfolded.includes(key)) return;
      add(node);
      this.lists[node].forEach((other) => shown.add(other));
    });
    const nodes = [...shown].sort((a, b) => a - b);
    const place = new Map(nodes.map((node, i) => [node, i]));
    const lines = [];
    for (let line = 0; line < this.lineCount; line++) {
      const inside = this.ends(line).every((node) => place.has(node));
      if (inside && (!this.lines.added[line] || chosen.has(this.lines.edit[line]))) lines.push(line);
    }
    const pick = (values) => values && nodes.map((node) => values[node]);
    const { scene } = this;
    const part = {
      labels: pick(scene.labels),
      kinds: pick(scene.kinds),
      targets: scene.targets.map((node) => place.get(node)),
      ends: lines.flatMap((line) => this.ends(line).map((node) => place.get(node))),
      all: scene.all,
    };
    if (scene.names) part.names = pick(scene.names);
    for (const field of ["arrows", "relations", "bonds"]) {
      if (scene[field]) part[field] = lines.map((line) => scene[field][line]);
    }
    if (scene.symbols) {
      part.symbols = pick(scene.symbols);
      part.xy = nodes.flatMap((node) => [scene.xy[2 * node], scene.xy[2 * node + 1]]);
    }
    const folded = new Map();
    nodes.forEach((node, i) => {
      const hidden = this.lists[node].filter((other) => !place.has(other)).length;
      if (hidden) folded.set(i, hidden);
    });
    return { scene: part, nodes, lines, folded, keys: nodes.map((node) => this.nodeKeys[node]) };
  }
}
