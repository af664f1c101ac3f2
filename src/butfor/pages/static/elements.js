// Elements of a page. Text from files only ever becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: its attributes by name (functions are listeners; null leaves one out), then its children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

function present(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Put these children in place of those that an element has. */
export function put(element, ...children) {
  element.replaceChildren(...present(children));
}

/** "1 edge", "2 edges". */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A number as short as it can be read. */
export function short(number) {
  return Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(4)));
}

const collator = new Intl.Collator("en", { numeric: true });

/** Words by the alphabet, numbers in them by size. */
export function inOrder(a, b) {
  return collator.compare(a, b);
}

/** A prediction in words: 'motif' (0.92). */
export function predicted(prediction) {
  return prediction.number === undefined ? prediction.name : `${prediction.name} (${prediction.number.toFixed(2)})`;
}

/** Let the browser save a file that was made here. */
export function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
