// A neighbourhood drawn as SVG: nodes coloured by their kind, lines between them, edits set apart by colour and dashes.
import { s, h } from "./elements.js";
import { layout } from "./layout.js";

// Pixels for the length of an edge at scale 1, and for a bond of a molecule.
const UNIT = 66;
const BOND = 46;
// Up to this many nodes show their labels; among more, only the target's, those of edits, and those that are pointed at.
const LABELLED = 60;
// Among more lines than this, those that touch neither the target nor an edit are faint.
const CROWDED = 80;
// A label with more letters is written below its node instead of inside it.
const INSIDE = 5;
// The picture is not blown up further than to this many units across.
const LEAST = { width: 6.4, height: 4.4 };
// Kinds that are so dark that what is written into them is white.
const DARK = ["#009e73", "#0072b2"];
const PLAIN = ["", "#e8e8e8", "o"];

const SHAPES = {
  o: (r) => ["circle", { r }],
  s: (r) => ["rect", { x: -0.88 * r, y: -0.88 * r, width: 1.76 * r, height: 1.76 * r, rx: 2 }],
  D: (r) => ["polygon", { points: polygon(4, 1.2 * r, 0) }],
  h: (r) => ["polygon", { points: polygon(6, 1.1 * r, Math.PI / 6) }],
  "^": (r) => ["polygon", { points: polygon(3, 1.3 * r, -Math.PI / 2) }],
};

function polygon(corners, radius, turn) {
  const angles = Array.from({ length: corners }, (_, i) => turn + (2 * Math.PI * i) / corners);
  return angles.map((a) => `${(radius * Math.cos(a)).toFixed(1)},${(radius * Math.sin(a)).toFixed(1)}`).join(" ");
}

/** A node's mark for a legend: a small picture of its colour and shape. */
export function swatch(colour, shape, extra = {}) {
  const [tag, attributes] = (SHAPES[shape] || SHAPES.o)(6);
  const mark = s(tag, { ...attributes, fill: colour, class: "node-shape", ...extra });
  return s("svg", { viewBox: "-9 -9 18 18", class: "swatch", "aria-hidden": "true" }, mark);
}

/** A line's mark for a legend. */
export function lineSwatch(role) {
  return s(
    "svg",
    { viewBox: "-12 -9 24 18", class: "swatch wide", "aria-hidden": "true" },
    s("line", { x1: -12, x2: 12, y1: 0, y2: 0, class: `line ${role}` }),
  );
}

/** What colours, shapes and lines mean, as a list. */
export function legendList(legend, scene, roles, target) {
  const shown = new Set(scene.kinds.map(String));
  const item = (mark, text) => h("li", {}, mark, h("span", {}, text));
  const kinds = Object.entries(legend.kinds).filter(([kind, look]) => shown.has(kind) && look[0]);
  const named = { deleted: "removed edge", added: "added edge", protected: "protected edge", link: "predicted link" };
  return h(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    scene.targets.length ? item(swatch("none", "o", { class: "ring" }), target) : null,
    kinds.map(([, [name, colour, shape]]) => item(swatch(colour, shape), name)),
    legend.types.map(([name, shape]) => item(swatch("none", shape), name)),
    [...roles].filter((role) => named[role]).map((role) => item(lineSwatch(role), named[role])),
    roles.has("changed") ? item(s("svg", { viewBox: "-9 -9 18 18", class: "swatch" }, star(7)), "changed feature") : null,
  );
}

function star(radius) {
  const points = Array.from({ length: 10 }, (_, i) => {
    const a = (Math.PI * i) / 5 - Math.PI / 2;
    const r = i % 2 ? radius / 2.4 : radius;
    return `${(r * Math.cos(a)).toFixed(1)},${(r * Math.sin(a)).toFixed(1)}`;
  });
  return s("polygon", { points: points.join(" "), class: "star" });
}

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
   */
  show(scene, legend, look = {}) {
    const roles = look.roles || new Map();
    const count = scene.labels.length;
    this.scene = scene;
    const visible = [];
    for (let line = 0; 2 * line < scene.ends.length; line++) if (roles.get(line) !== "hidden") visible.push(line);
    this.place(scene, visible, look.keys);
    const ends = new Set(visible.filter((line) => ["deleted", "added"].includes(roles.get(line))).flatMap((line) => this.ends(line)));
    const important = new Set([...scene.targets, ...ends, ...(look.changed || [])]);
    this.labelled = (node) => count <= LABELLED || important.has(node);
    this.radius = scene.labels.map((label, node) => this.size(label, node, count));
    this.svg.setAttribute("aria-label", look.label || "");
    this.svg.classList.toggle("crowded", visible.length > CROWDED);
    this.quiet = (line) => !this.ends(line).some((node) => important.has(node));
    this.svg.classList.toggle("clickable", Boolean(this.on.line));
    const shift = parallel(visible, scene.ends);
    const drawnLines = visible.map((line) => this.line(line, roles.get(line) || "", shift.get(line) || 0));
    const plain = drawnLines.filter((_, i) => !["deleted", "added"].includes(roles.get(visible[i])));
    const edited = drawnLines.filter((_, i) => ["deleted", "added"].includes(roles.get(visible[i])));
    const nodes = scene.labels.map((_, node) => this.node(node, legend, look));
    this.svg.replaceChildren(s("g", {}, plain), s("g", {}, edited), s("g", {}, nodes));
    const shape = [scene.labels.length, scene.labels[0], scene.targets[0], look.keys?.length].join();
    if (shape !== this.shape) this.fit();
    this.shape = shape;
  }

  /** Positions in pixels, kept from the scene before for nodes that were there. */
  place(scene, visible, keys) {
    if (scene.xy) {
      this.points = scene.xy.map((value) => BOND * value);
      return;
    }
    const known = new Map();
    (keys || []).forEach((key, node) => this.known.has(key) && known.set(node, this.known.get(key)));
    const ends = visible.flatMap((line) => this.ends(line));
    const same = known.size === scene.labels.length;
    const points = same ? Float64Array.from([...known.values()].flat()) : layout(scene.labels.length, ends, scene.targets, known);
    this.known = new Map((keys || []).map((key, node) => [key, [points[2 * node], points[2 * node + 1]]]));
    this.points = Array.from(points, (value) => UNIT * value);
  }

  ends(line) {
    return [this.scene.ends[2 * line], this.scene.ends[2 * line + 1]];
  }

  size(label, node, count) {
    if (this.scene.symbols) return 11;
    if (!this.labelled(node)) return count > 150 ? 5 : 7;
    return label.length <= INSIDE ? Math.max(12, 5 + 3.6 * label.length) : 9;
  }

  line(line, role, aside) {
    const [a, b] = this.ends(line);
    const [x1, y1, x2, y2] = [...this.at(a), ...this.at(b)];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [ra, rb] = [Math.min(this.radius[a] + 1, 0.45 * length), Math.min(this.radius[b] + 1, 0.45 * length)];
    const arrow = this.scene.arrows?.[line];
    const [px, py] = [-uy * aside, ux * aside];
    const from = { x: x1 + ux * ra + px, y: y1 + uy * ra + py };
    const tip = { x: x2 - ux * rb + px, y: y2 - uy * rb + py };
    const to = arrow ? { x: tip.x - 8 * ux, y: tip.y - 8 * uy } : tip;
    const at = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
    const parts = [];
    if (role === "deleted" || role === "added") parts.push(s("line", { ...at, class: "rim" }));
    const bond = this.scene.bonds?.[line];
    const offsets = bond === "double" || bond === "aromatic" ? [-2.5, 2.5] : bond === "triple" ? [-4, 0, 4] : [0];
    for (const [i, offset] of offsets.entries()) {
      const [ox, oy] = [-uy * offset, ux * offset];
      const moved = { x1: at.x1 + ox, y1: at.y1 + oy, x2: at.x2 + ox, y2: at.y2 + oy };
      parts.push(s("line", { ...moved, class: `line ${role} ${bond === "aromatic" && i ? "aromatic" : ""}` }));
    }
    if (arrow) {
      const [wx, wy] = [-uy * 4.2, ux * 4.2];
      const points = [tip.x, tip.y, to.x - 2 * ux + wx, to.y - 2 * uy + wy, to.x - 2 * ux - wx, to.y - 2 * uy - wy];
      parts.push(s("polygon", { points: points.map((p) => p.toFixed(1)).join(" "), class: `head ${role}` }));
    }
    const name = this.lineName(line);
    const group = s("g", { class: this.quiet(line) ? "edge quiet" : "edge" }, s("title", {}, role && role !== "link" ? `${name}, ${role}` : name), parts);
    if (this.on.line && role !== "link") {
      group.append(s("line", { ...at, class: "hit" }));
      group.addEventListener("click", () => this.on.line(line));
    }
    return group;
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
    const [tag, attributes] = SHAPES[this.scene.symbols ? "o" : shape](radius);
    const name = (this.scene.names || this.scene.labels)[node];
    const parts = [s("title", {}, kind ? `${name}: ${kind}` : name)];
    if (this.scene.targets.includes(node)) parts.push(s("circle", { r: radius + 4.5, class: "ring" }));
    const selected = look.selected?.has(node) ? " selected" : "";
    parts.push(s(tag, { ...attributes, fill: this.scene.symbols ? null : colour, class: `node-shape${selected}` }));
    const label = this.scene.symbols ? this.scene.symbols[node] : this.scene.labels[node];
    if (this.labelled(node) && label) {
      const inside = label.length <= INSIDE;
      const dark = DARK.includes(colour) && inside && !this.scene.symbols ? " on-dark" : "";
      const words = label.length > 24 ? `${label.slice(0, 23)}…` : label;
      parts.push(s("text", { y: inside ? 4 : radius + 13, class: inside ? `inside${dark}` : "below" }, words));
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

  /** Show all of it. */
  fit() {
    const xs = this.points.filter((_, i) => i % 2 === 0);
    const ys = this.points.filter((_, i) => i % 2 === 1);
    const span = (values) => (values.length ? [Math.min(...values), Math.max(...values)] : [0, 0]);
    const [[left, right], [top, bottom]] = [span(xs), span(ys)];
    const width = Math.max(right - left + 70, LEAST.width * UNIT);
    const height = Math.max(bottom - top + 70, LEAST.height * UNIT);
    this.look((left + right) / 2 - width / 2, (top + bottom) / 2 - height / 2, width, height);
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

  /** The picture as a file of its own: styles become attributes, and the words below it are written into it. */
  standalone(words = []) {
    const { x, y, width, height } = this.box;
    const lines = words.flatMap((text) => wrap(text, Math.floor(width / 6.4)));
    const full = height + 20 * lines.length + 16;
    const copy = this.svg.cloneNode(true);
    const styled = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];
    const mine = [...this.svg.querySelectorAll("*")];
    [...copy.querySelectorAll("*")].forEach((element, i) => {
      const computed = getComputedStyle(mine[i]);
      for (const name of styled) if (computed.getPropertyValue(name)) element.setAttribute(name, computed.getPropertyValue(name));
      element.removeAttribute("class");
    });
    copy.querySelectorAll("[stroke='rgba(0, 0, 0, 0)']").forEach((hit) => hit.remove());
    const colours = getComputedStyle(this.element);
    const text = lines.map((line, i) =>
      s("text", { x: x + 10, y: y + height + 20 * (i + 1), "font-size": 13, "font-family": "sans-serif", fill: colours.color }, line),
    );
    copy.prepend(s("rect", { x, y, width, height: full, fill: opaque(this.element) }));
    copy.append(...text);
    for (const [name, value] of Object.entries({ viewBox: `${x} ${y} ${width} ${full}`, width, height: full })) copy.setAttribute(name, value);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.removeAttribute("class");
    return { text: new XMLSerializer().serializeToString(copy), width, height: full };
  }

  /** The same as a bitmap, twice as large. */
  async bitmap(words) {
    const { text, width, height } = this.standalone(words);
    const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    try {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = h("canvas", { width: Math.round(2 * width), height: Math.round(2 * height) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return await new Promise((done) => canvas.toBlob(done, "image/png"));
    } finally {
      URL.revokeObjectURL(url);
    }
  }
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

function wrap(text, columns) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length + 1 > columns) lines.push(word);
    else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

/** The colour behind an element. */
function opaque(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && colour !== "rgba(0, 0, 0, 0)") return colour;
  }
  return "white";
}
