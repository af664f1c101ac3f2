// A picture as a file of its own, with the words below it.
import { h, s } from "./elements.js";

// What an element's class says about its look.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "paint-order", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];

/** What an SVG element shows within `box`, as the text of a file: styles become attributes. */
export function standalone(svg, box, words) {
  const { x, y, width, height } = box;
  const lines = words.flatMap((text) => wrap(text, Math.floor(width / 6.8)));
  const full = height + 20 * lines.length + 16;
  const copy = svg.cloneNode(true);
  const mine = [...svg.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((element, i) => {
    const computed = getComputedStyle(mine[i]);
    for (const name of STYLES) if (computed.getPropertyValue(name)) element.setAttribute(name, computed.getPropertyValue(name));
    element.removeAttribute("class");
  });
  copy.querySelectorAll("[stroke='rgba(0, 0, 0, 0)']").forEach((hit) => hit.remove());
  const ink = getComputedStyle(svg).color;
  const text = lines.map((line, i) => s("text", { x: x + 10, y: y + height + 20 * (i + 1), "font-size": 13, "font-family": "sans-serif", fill: ink }, line));
  copy.prepend(s("rect", { x, y, width, height: full, fill: behind(svg) }));
  copy.append(...text);
  copy.removeAttribute("class");
  for (const [name, value] of Object.entries({ viewBox: `${x} ${y} ${width} ${full}`, width, height: full })) copy.setAttribute(name, value);
  return { text: new XMLSerializer().serializeToString(copy), width, height: full };
}

/** The same as a bitmap, twice as large. */
export async function bitmap(svg, box, words) {
  const { text, width, height } = standalone(svg, box, words);
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

function wrap(text, columns) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length + 1 > columns) lines.push(word);
    else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

/** The colour behind an element. */
function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && colour !== "rgba(0, 0, 0, 0)") return colour;
  }
  return "white";
}
