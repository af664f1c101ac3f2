// Molecules as chemists draw them: carbon is a corner, most hydrogens are written into their neighbours, the second line
// of a double bond lies inside its ring.
import { adjacency } from "./layout.js";

// Half the distance between the lines of a double bond, and by how much a line inside a ring is shorter at each end.
const GAP = 2.6;
const SHORTER = 6;

const ELEMENTS = { N: "nitrogen", O: "oxygen", S: "sulphur", Se: "sulphur", P: "sulphur", F: "halogen", Cl: "halogen", Br: "halogen", I: "halogen", H: "hydrogen" };

/** The class of an element's colour. */
export function elementClass(symbol) {
  return ELEMENTS[symbol] || "element";
}

/**
 * How the atoms of a scene are written: nothing for a carbon atom that is a corner of the drawing, the whole label (with its number)
 * for an atom of `touched`. With `fold`, hydrogens are hidden and counted in what is written for their neighbour.
 */
export function atoms(scene, touched, fold) {
  const near = adjacency(scene.symbols.length, scene.ends);
  const folds = (atom) => fold && scene.symbols[atom] === "H" && !touched.has(atom) && near[atom].length === 1 && scene.symbols[near[atom][0]] !== "H";
  const hidden = new Set(near.map((_, atom) => atom).filter(folds));
  const written = scene.symbols.map((symbol, atom) => {
    if (touched.has(atom)) return scene.labels[atom].startsWith(symbol) ? scene.labels[atom] : symbol + scene.labels[atom];
    const visible = near[atom].filter((other) => !hidden.has(other));
    const corner = symbol === "C" && visible.length > (fold ? 0 : 1) && !straight(scene.xy, atom, visible);
    const hydrogens = near[atom].length - visible.length;
    return corner ? "" : symbol + (hydrogens ? "H" : "") + (hydrogens > 1 ? subscript(hydrogens) : "");
  });
  return { near, hidden, written };
}

/** Whether an atom would be no corner: its two neighbours lie on opposite sides of it. */
function straight(xy, atom, near) {
  if (near.length !== 2) return false;
  const turns = near.map((other) => Math.atan2(xy[2 * other + 1] - xy[2 * atom + 1], xy[2 * other] - xy[2 * atom]));
  return Math.cos(turns[0] - turns[1]) < -0.95;
}

function subscript(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
}

/**
 * The lines of a bond, as how far each is moved aside, and by how much it is shorter at both ends.
 * `side` is 1 or -1 where the bond's other neighbours lie on one side of it, else 0.
 */
export function bondLines(kind, side) {
  if (kind === "triple") return [[-4, 0], [0, 0], [4, 0]];
  if (kind !== "double" && kind !== "aromatic") return [[0, 0]];
  return side ? [[0, 0], [2 * GAP * side, SHORTER]] : [[-GAP, 0], [GAP, 0]];
}
