// A neighbourhood drawn as SVG: nodes coloured by their kind, lines between them, edits set apart by colour and dashes.
import { s, h } from "./elements.js";
import { CLEARANCE, layout } from "./layout.js";
import { SHAPES, star } from "./legend.js";
import { atoms, bondLines, elementClass } from "./molecule.js";
import { bitmap, standalone } from "./saving.js";

// An edge is as many pixels long as there is room for, within these limits; a bond of a molecule within those.
const UNIT = { least: 30, most: 66 };
const WORDY = { least: 30, most: 110 }; // where labels are written below nodes
const BOND = { least: 22, most: 46 };
// Pixels around the nodes.
const MARGIN = 56;
// Up to this many nodes show their labels, if there is room; among more, only the target's and those of edits.
const LABELLED = 60;
// A label with more letters is written below its node instead of inside it: of so many nodes, and cut off after so many
// letters.
const INSIDE = 5;
const BELOW = 25;
const CUT = 20;
// Among more lines than this, those that are not edits are faint.
const CROWDED = 80;
// The picture is not blown up further than to this many pixels across.
const LEAST = { width: 420, height: 290 };
// The corner with the buttons, in pixels.
const CORNER = { width: 124, height: 46 };
// Kinds that are so dark that what is written into them is white.
const DARK = ["#009e73", "#0072b2"];
const PLAIN = ["", "#e8e8e8", "o"];

/**
 * Draws scenes, one after the other. `element` is what belongs into the page.
 *
 * on.line(line), on.node(node): called when one is clicked; lines and nodes are then shown as clickable.
 */
export class Drawing {
  constructor(on = {}) {
    this.on = on;
    this.svg = s("svg", { class: "drawing", role: "img", "aria-label": "" });
    const button = (text, label, act) => h("button", { type: "button", "aria-label": label, title: label, click: act }, text);
    const zoom = h(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      button("+", "Zoom in", () => this.zoom(0.8)),
      button("−", "Zoom out", () => this.zoom(1.25)),
      button("⤢", "Show all", () => this.fit()),
    );
    this.element = h("div", { class: "canvas" }, this.svg, zoom);
    this.known = new Map();
    this.listen();
  }

  /**
   * Draw a scene.
   *
   * look.roles: the role of lines by number: deleted, added, protected, link, fixed or hidden.
   * look.changed: nodes with a changed feature; look.folded: how many neighbours of a node are not shown.
   * look.keys: what each node is called from one scene to the next, so that it stays where it is; look.label: in words.
   * look.fold: whether most hydrogens of a molecule are written into their neighbours.
   */
  show(scene, legend, look = {}) {
    const roles = look.roles || new Map();
    const edited = (line) => ["deleted", "added"].includes(roles.get(line));
    this.scene = scene;
    let visible = [];
    for (let line = 0; 2 * line < scene.ends.length; line++) if (roles.get(line) !== "hidden") visible.push(line);
    const ends = visible.filter(edited).flatMap((line) => this.ends(line));
    const important = new Set([...scene.targets, ...ends, ...(look.changed || [])]);
    this.atoms = scene.symbols ? atoms(scene, important, look.fold) : null;
    const shape = [scene.labels.length, scene.labels[0], scene.targets[0], look.keys?.[0]].join();
    const fresh = shape !== this.shape;
    this.shape = shape;
    this.place(scene, visible, look.keys, fresh);
    if (this.atoms) visible = visible.filter((line) => !this.ends(line).some((atom) => this.atoms.hidden.has(atom)));
    this.labels = this.write(important);
    this.radius = this.labels.map((label) => this.size(label));
    this.svg.setAttribute("aria-label", look.label || "");
    this.svg.classList.toggle("crowded", visible.length > CROWDED);
    this.svg.classList.toggle("clickable", Boolean(this.on.line));
    this.svg.classList.toggle("molecule", Boolean(this.atoms));
    const shift = parallel(visible, scene.ends);
    const lines = (some) => some.map((line) => this.line(line, roles.get(line) || "", shift.get(line) || 0));
    this.below = [];
    const nodes = scene.labels.map((_, node) => (this.atoms?.hidden.has(node) ? null : this.node(node, legend, look)));
    this.svg.replaceChildren(s("g", {}, lines(visible.filter((line) => !edited(line)))), s("g", {}, lines(visible.filter(edited))), s("g", {}, nodes), s("g", {}, this.below));
    if (fresh) this.fit();
  }

  /** Positions in pixels, kept from the scene before for nodes that were there. */
  place(scene, visible, keys, fresh) {
    const points = scene.xy || this.settled(scene, visible, keys);
    if (fresh) this.unit = this.room(points, scene.xy ? BOND : scene.labels.some((label) => label.length > INSIDE) ? WORDY : UNIT);
    this.points = Array.from(points, (value) => this.unit * value);
  }

  /** How many pixels an edge may be long if all of it is to be shown at its natural size. */
  room(points, { least, most }) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return most; // it is not in the page yet
    const { left, right, top, bottom } = extent(points);
    return Math.max(least, Math.min(most, (width - MARGIN) / (right - left || 1), (height - MARGIN) / (bottom - top || 1)));
  }

  /** Positions in lengths of an edge. */
  settled(scene, visible, keys) {
    const known = new Map();
    (keys || []).forEach((key, node) => this.known.has(key) && known.set(node, this.known.get(key)));
    const ends = visible.flatMap((line) => this.ends(line));
    const same = known.size === scene.labels.length;
    const points = same ? Float64Array.from([...known.values()].flat()) : layout(scene.labels.length, ends, scene.targets, known);
    this.known = new Map((keys || []).map((key, node) => [key, [points[2 * node], points[2 * node + 1]]]));
    return points;
  }

  ends(line) {
    return [this.scene.ends[2 * line], this.scene.ends[2 * line + 1]];
  }

  /** What is written into or below each node: its label, if it is important or there is room for all of them. */
  write(important) {
    if (this.atoms) return this.atoms.written;
    const labels = this.scene.labels.map((label) => (label.length > CUT ? `${label.slice(0, CUT - 1)}…` : label));
    const within = labels.filter((label) => label.length <= INSIDE);
    const widest = Math.max(0, ...within.map((label) => this.size(label)));
    const roomy = labels.length <= LABELLED && 1.7 * widest <= CLEARANCE * this.unit;
    return labels.map((label, node) => (important.has(node) || (label.length <= INSIDE ? roomy : labels.length <= BELOW) ? label : ""));
  }

  size(label) {
    if (this.atoms) return label ? 5 + 3.6 * label.length : 0;
    if (!label) return this.scene.labels.length > 150 ? 5 : 7;
    return label.length <= INSIDE ? Math.max(11, 4.5 + 2.8 * label.length) : 9;
  }

  line(line, role, aside) {
    const [a, b] = this.ends(line);
    const [x1, y1, x2, y2] = [...this.at(a), ...this.at(b)];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [ra, rb] = [a, b].map((node) => this.radius[node] && Math.min(this.radius[node] + 1, 0.45 * length));
    const arrow = this.scene.arrows?.[line];
    const [px, py] = [-uy * aside, ux * aside];
    const from = { x: x1 + ux * ra + px, y: y1 + uy * ra + py };
    const tip = { x: x2 - ux * rb + px, y: y2 - uy * rb + py };
    const to = arrow ? { x: tip.x - 8 * ux, y: tip.y - 8 * uy } : tip;
    const at = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
    const parts = [];
    if (role === "deleted" || role === "added") parts.push(s("line", { ...at, class: "rim" }));
    const bond = this.scene.bonds?.[line];
    for (const [i, [offset, less]] of bondLines(bond, bond ? this.side(a, b) : 0).entries()) {
      const [ox, oy] = [-uy * offset, ux * offset];
      const [la, lb] = [ra ? 0 : less, rb ? 0 : less];
      const moved = { x1: at.x1 + ox + la * ux, y1: at.y1 + oy + la * uy, x2: at.x2 + ox - lb * ux, y2: at.y2 + oy - lb * uy };
      parts.push(s("line", { ...moved, class: `line ${role} ${bond === "aromatic" && i ? "aromatic" : ""}` }));
    }
    if (arrow) {
      const [wx, wy] = [-uy * 4.2, ux * 4.2];
      const points = [tip.x, tip.y, to.x - 2 * ux + wx, to.y - 2 * uy + wy, to.x - 2 * ux - wx, to.y - 2 * uy - wy];
      parts.push(s("polygon", { points: points.map((p) => p.toFixed(1)).join(" "), class: `head ${role}` }));
    }
    const name = this.lineName(line);
    const group = s("g", { class: "edge" }, s("title", {}, role && role !== "link" ? `${name}, ${role}` : name), parts);
    if (this.on.line && role !== "link") {
      group.append(s("line", { ...at, class: "hit" }));
      group.addEventListener("click", () => this.on.line(line));
    }
    return group;
  }

  /** On which side of the bond from a to b its other neighbours lie; 0 where an end has none, or both sides have some. */
  side(a, b) {
    const [[x, y], [tx, ty]] = [this.at(a), this.at(b)];
    const cross = (atom) => (tx - x) * (this.at(atom)[1] - y) - (ty - y) * (this.at(atom)[0] - x);
    const others = [a, b].map((atom) => this.atoms.near[atom].filter((other) => other !== a && other !== b && !this.atoms.hidden.has(other)));
    return others.every((some) => some.length) ? Math.sign(Math.round(others.flat().reduce((sum, atom) => sum + cross(atom), 0))) : 0;
  }

  lineName(line) {
    const [a, b] = this.ends(line);
    const names = this.scene.names || this.scene.labels;
    const relation = this.scene.relations ? ` (${this.scene.relations[line]})` : "";
    return `${names[a]}${this.scene.arrows?.[line] ? " → " : "–"}${names[b]}${relation}`;
  }

  node(node, legend, look) {
    const [x, y] = this.at(node);
    const [kind, colour, shape] = legend.kinds[String(this.scene.kinds[node])] || PLAIN;
    const radius = this.radius[node];
    const [tag, attributes] = SHAPES[this.atoms ? "o" : shape](radius);
    const name = (this.scene.names || this.scene.labels)[node];
    const parts = [s("title", {}, kind ? `${name}: ${kind}` : name)];
    if (this.scene.targets.includes(node)) parts.push(s("circle", { r: radius + 4.5, class: "ring" }));
    const selected = look.selected?.has(node) ? " selected" : "";
    parts.push(s(tag, { ...attributes, fill: this.atoms ? null : colour, class: `node-shape${selected}` }));
    const label = this.labels[node];
    if (label) {
      const inside = this.atoms || label.length <= INSIDE;
      const tone = this.atoms ? elementClass(this.scene.symbols[node]) : DARK.includes(colour) ? "on-dark" : "";
      if (inside) parts.push(s("text", { y: 4, class: `inside ${tone}` }, label));
      else this.below.push(s("text", { x, y: y + radius + 12, class: "below" }, label));
    }
    if (look.changed?.has(node)) parts.push(s("g", { transform: `translate(${0.75 * radius} ${-0.9 * radius})` }, star(8)));
    const folded = look.folded?.get(node);
    if (folded) parts.push(s("text", { x: radius + 2, y: -radius + 2, class: "folded" }, `+${folded}`));
    const group = s("g", { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: "node" }, parts);
    if (this.on.node) group.addEventListener("click", () => this.on.node(node));
    return group;
  }

  at(node) {
    return [this.points[2 * node], this.points[2 * node + 1]];
  }

  /** Show all of it, and no node under the buttons of the corner. */
  fit() {
    const { left, right, top, bottom } = extent(this.points);
    const shown = this.svg.getBoundingClientRect();
    const width = Math.max(right - left + MARGIN, Math.min(LEAST.width, shown.width || LEAST.width));
    const height = Math.max(bottom - top + MARGIN, Math.min(LEAST.height, shown.height || LEAST.height));
    const [x, y] = [(left + right - width) / 2, (top + bottom - height) / 2];
    this.look(x, y, width, height);
    if (!shown.width) return; // it is not in the page yet
    const scale = this.scale();
    const edge = x + (width + shown.width * scale) / 2 - CORNER.width * scale;
    const end = y + (height - shown.height * scale) / 2 + CORNER.height * scale;
    const covered = this.radius.some((radius, node) => this.at(node)[0] + radius > edge && this.at(node)[1] - radius < end);
    if (covered) this.look(x, y - CORNER.height * scale, width, height + CORNER.height * scale);
  }

  look(x, y, width, height) {
    this.box = { x, y, width, height };
    this.svg.setAttribute("viewBox", [x, y, width, height].map((value) => value.toFixed(1)).join(" "));
  }

  zoom(factor, centre) {
    const { x, y, width, height } = this.box;
    const [cx, cy] = centre || [x + width / 2, y + height / 2];
    this.look(cx - (cx - x) * factor, cy - (cy - y) * factor, width * factor, height * factor);
  }

  /** Drag to move, Ctrl and the wheel to zoom. */
  listen() {
    let from = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.target.closest(".node, .edge") && (this.on.line || this.on.node)) return;
      from = { x: event.clientX, y: event.clientY, box: { ...this.box } };
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const scale = this.scale();
      const { x, y, width, height } = from.box;
      this.look(x - (event.clientX - from.x) * scale, y - (event.clientY - from.y) * scale, width, height);
    });
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => (from = null));
    this.svg.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        const { left, top, width, height } = this.svg.getBoundingClientRect();
        const scale = this.scale();
        const middle = [this.box.x + this.box.width / 2, this.box.y + this.box.height / 2];
        const point = [event.clientX - left - width / 2, event.clientY - top - height / 2];
        this.zoom(event.deltaY > 0 ? 1.15 : 0.87, [middle[0] + point[0] * scale, middle[1] + point[1] * scale]);
      },
      { passive: false },
    );
  }

  scale() {
    const { width, height } = this.svg.getBoundingClientRect();
    return Math.max(this.box.width / width, this.box.height / height);
  }
  /** The picture as the text of a file, and as a bitmap, with these words below it. */
  standalone(words = []) {
    return standalone(this.svg, this.box, words);
  }

  bitmap(words = []) {
    return bitmap(this.svg, this.box, words);
  }
}

/** The least and greatest coordinates of points. */
function extent(points) {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (let i = 0; i < points.length; i += 2) {
    box.left = Math.min(box.left, points[i]);
    box.right = Math.max(box.right, points[i]);
    box.top = Math.min(box.top, points[i + 1]);
    box.bottom = Math.max(box.bottom, points[i + 1]);
  }
  return points.length ? box : { left: 0, right: 0, top: 0, bottom: 0 };
}

/** How far lines that join the same two nodes are moved aside, by line. */
function parallel(lines, ends) {
  const groups = new Map();
  for (const line of lines) {
    const [a, b] = [ends[2 * line], ends[2 * line + 1]];
    const key = a < b ? `${a} ${b}` : `${b} ${a}`;
    groups.set(key, [...(groups.get(key) || []), line]);
  }
  const shift = new Map();
  for (const group of groups.values()) {
    group.forEach((line, i) => {
      const sign = ends[2 * line] < ends[2 * line + 1] ? 1 : -1;
      shift.set(line, 7 * sign * (i - (group.length - 1) / 2));
    });
  }
  return shift;
}
