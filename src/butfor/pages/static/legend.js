// The marks of nodes and lines, and the list that says what they mean.
import { h, s } from "./elements.js";

/** The shapes of nodes by matplotlib's letters for them: a tag of SVG and its attributes, for a radius. */
export const SHAPES = {
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

/** The mark of a changed feature. */
export function star(radius) {
  const points = Array.from({ length: 10 }, (_, i) => {
    const a = (Math.PI * i) / 5 - Math.PI / 2;
    const r = i % 2 ? radius / 2.4 : radius;
    return `${(r * Math.cos(a)).toFixed(1)},${(r * Math.sin(a)).toFixed(1)}`;
  });
  return s("polygon", { points: points.join(" "), class: "star" });
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
    roles.has("changed") ? item(s("svg", { viewBox: "-9 -9 18 18", class: "swatch", "aria-hidden": "true" }, star(7)), "changed feature") : null,
  );
}
