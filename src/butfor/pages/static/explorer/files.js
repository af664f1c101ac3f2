// What is kept: the state of the page as a file, and results and pictures for others.
import { h, save } from "../elements.js";
import { keyOf, readState } from "./state.js";

const LONGEST = 80;

/**
 * Buttons that save and load. `page` says what there is now: state(), view(), prediction(), found(), words(); and takes
 * change(state) and fail(problem).
 */
export function filesPanel(opened, drawing, page) {
  const file = h("input", {
    type: "file", accept: ".json,application/json", class: "hidden", tabindex: -1, "aria-hidden": "true", change: load,
  });
  const button = (text, click) => h("button", { type: "button", click }, text);
  const name = () => `butfor-${page.view().name.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, LONGEST)}`;
  const saveJson = (ending, plain) => save(`${name()}${ending}`, new Blob([JSON.stringify(plain, null, 1)], { type: "application/json" }));

  function keep() {
    saveJson(".json", { butfor: "explorer", version: 1, ids: opened.ids, state: page.state() });
  }

  async function load() {
    try {
      const kept = await read(file.files[0]);
      if (kept?.butfor !== "explorer" || kept.version !== 1) throw new Error("This file was not saved by the explorer.");
      if (keyOf(kept.ids) !== keyOf(opened.ids)) throw new Error("This file was saved with another model or graph.");
      await page.change(readState(kept.state));
    } catch (problem) {
      page.fail(problem);
    } finally {
      file.value = "";
    }
  }

  function exportResult() {
    const view = page.view();
    // Of the view, because the prediction is: what was edited since may be on its way.
    const edits = [...view.numbers(view.state.edits)].flatMap((number) => view.edits[number]);
    const byHand = { target: view.target, edits, before: view.unedited, after: page.prediction() };
    saveJson("-result.json", { by_hand: byHand, found: page.found()?.json ?? null });
  }

  function exportSvg() {
    save(`${name()}.svg`, new Blob([drawing.standalone(page.words()).text], { type: "image/svg+xml" }));
  }

  async function exportPng() {
    save(`${name()}.png`, await drawing.bitmap(page.words()));
  }

  // Before there is a first view, there is nothing to keep.
  const saving = [
    button("Save", keep),
    button("Result as JSON", exportResult),
    button("Picture as SVG", exportSvg),
    button("Picture as PNG", exportPng),
  ];
  const show = (ready) => saving.forEach((one) => (one.disabled = !ready));
  show(false);
  const [first, ...others] = saving;
  const row = h("div", { class: "row" }, first, button("Load", () => file.click()), file, others);
  return { element: h("section", { class: "panel" }, h("h2", {}, "Keep"), row), show };
}

async function read(file) {
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new Error("This file was not saved by the explorer.");
  }
}
