// The explorer: look at a target, edit its graph by hand, watch the prediction follow, and find the fewest edits.
import { h, count, put, save } from "../elements.js";
import { Drawing } from "../drawing.js";
import { legendList } from "../legend.js";
import { History, SHOWN, TargetView, keyOf, noRules } from "./state.js";
import { AddPanel, EdgesPanel, EditsPanel, FeaturesPanel, PredictionPanel, SearchPanel } from "./panels.js";

// Milliseconds between two questions about a search.
const PAUSE = 200;

/** Ask the server of this page. */
async function post(verb, body) {
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ verb, ...body }) };
  const reply = await fetch("/api", sent).catch(() => null);
  const answer = await reply?.json().catch(() => null);
  if (!answer) throw new Error("The explorer does not answer; was it ended?");
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

/**
 * Fill a place of the page. `opened` is what the server says at first; `ask(verb, body)` asks it further.
 */
export function explorer(place, opened, ask = post) {
  const history = new History({ target: opened.first, edits: [], rules: noRules(), goal: opened.goal, unfolded: [], limit: SHOWN });
  let view = null, prediction = null, shown = null, selected = [], latest = 0;
  let search = { number: null, state: null, result: null, at: 0, preview: null };

  // What can be done.
  const change = (part) => {
    history.change({ ...history.now, ...part });
    return load();
  };
  const act = {
    undo: () => { history.undo(); return load(); },
    redo: () => { history.redo(); return load(); },
    reset: () => change({ edits: [] }),
    say: (text) => put(message, text),
    toggle(number) {
      const mine = view.key(number);
      const now = history.now.edits;
      if (now.includes(mine)) return change({ edits: now.filter((key) => key !== mine) });
      const [kind, node, feature] = view.edits[number][0];
      // A feature has one value: another one takes its place.
      const rest = kind !== "change" ? now : now.filter((key) => { const other = JSON.parse(key); return other[0] !== "change" || other[1] !== node || other[2] !== feature || other[5] !== JSON.parse(mine)[5]; });
      return change({ edits: [...rest, mine] });
    },
    protect(line) {
      const { rules } = history.now;
      const mine = keyOf(view.lines.edge[line]);
      const others = rules.protected.filter((edge) => keyOf(edge) !== mine);
      const kept = others.length < rules.protected.length ? others : [...rules.protected, view.lines.edge[line]];
      return change({ rules: { ...rules, protected: kept } });
    },
    price(line, text) {
      const { rules } = history.now;
      const others = rules.costs.filter(([edge]) => keyOf(edge) !== keyOf(view.lines.edge[line]));
      return change({ rules: { ...rules, costs: text === "" || Number(text) === 1 ? others : [...others, [view.lines.edge[line], Number(text)]] } });
    },
    rule: (part) => change({ rules: { ...history.now.rules, ...part } }),
    goal: (goal) => change({ goal }),
    add,
    search: begin,
    stop: () => ask("stop", { search: search.number }).catch(fail),
    step(by) {
      const sets = search.result.sets;
      search.at = (search.at + by + sets.length) % sets.length;
      return change({ edits: sets[search.at].map(keyOf) });
    },
  };
  const fail = (problem) => put(message, problem.message);

  // Parts of the page.
  const message = h("p", { class: "message", role: "alert" });
  const drawing = new Drawing({ line: clickLine, node: clickNode });
  const legend = h("div", {});
  const caption = h("p", { class: "partial" });
  const selection = h("div", { class: "row selection", role: "group", "aria-label": "What is selected" });
  const panels = {
    prediction: new PredictionPanel(opened),
    edits: new EditsPanel(act),
    search: new SearchPanel(opened, act),
    edges: new EdgesPanel(act),
    add: new AddPanel(opened, act),
    features: new FeaturesPanel(opened, act),
  };
  const typed = h("input", { list: "targets-found", autocomplete: "off", size: 18, input: suggest });
  const found = h("datalist", { id: "targets-found" });
  const many = opened.task !== "graph" || opened.first !== null;
  const chooser = h("form", { class: "chooser row", submit: (event) => { event.preventDefault(); go(typed.value); } },
    h("label", {}, h("span", {}, `target: ${opened.range}`), typed), found, h("button", { type: "submit" }, "Show"));
  const file = h("input", { type: "file", accept: ".json,application/json", class: "hidden", tabindex: -1, "aria-hidden": "true", change: restore });
  const button = (text, click) => h("button", { type: "button", click }, text);
  const files = h("section", { class: "panel" }, h("h2", {}, "Keep"), h("div", { class: "row" },
    button("Save", keep), button("Load", () => file.click()), file,
    button("Result as JSON", exportJson), button("Picture as SVG", () => save(`${fileName()}.svg`, new Blob([drawing.standalone(inWords()).text], { type: "image/svg+xml" }))),
    button("Picture as PNG", async () => save(`${fileName()}.png`, await drawing.bitmap(inWords())))));
  const root = h("div", { class: "explorer" },
    h("header", { class: "top" }, h("h1", {}, opened.title), many ? chooser : null),
    message,
    h("main", {},
      h("section", { class: "picture", "aria-label": "Picture" }, drawing.element, legend, caption, selection),
      h("div", { class: "side" }, panels.prediction.element, panels.edits.element, panels.search.element, panels.edges.element, panels.add.element, panels.features.element, files)));
  put(place, root);
  // In a notebook, keys that are pressed elsewhere belong to the notebook.
  (ask === post ? document : root).addEventListener("keydown", keys);
  put(caption, "Preparing the model and the graph …");
  load();

  // What the page shows follows from the state; what the server has to say is asked for first.
  async function load() {
    const ticket = ++latest;
    const { target, rules, goal, edits } = history.now;
    const question = { target, rules, goal };
    const key = keyOf(question);
    put(message);
    root.setAttribute("aria-busy", "true");
    try {
      let next = view;
      if (!view || view.question !== key) {
        next = new TargetView(await ask("target", question));
        next.question = key;
      }
      const numbers = next.numbers(edits);
      const said = numbers.size ? await ask("predict", { ...question, edits: [...numbers].map((number) => next.edits[number][0]) }) : next.unedited;
      if (ticket !== latest) return;
      if (view && keyOf(view.target) !== keyOf(next.target)) forget();
      if (numbers.size < edits.length) put(message, "What the rules do not allow here was taken back.");
      view = next;
      prediction = said;
      history.now = { ...history.now, target: view.target, edits: [...numbers].map((number) => view.key(number)) };
    } catch (problem) {
      if (ticket !== latest) return;
      // What could not be done is undone, and does not count as done.
      if (view) {
        history.undo();
        history.future.pop();
      }
      fail(problem);
    } finally {
      if (ticket === latest) root.removeAttribute("aria-busy");
    }
    if (view) render();
  }

  function forget() {
    if (search.state?.running) act.stop();
    search = { number: null, state: null, result: null, at: 0, preview: null };
    selected = [];
  }

  function render() {
    const { edits, goal, rules } = history.now;
    const numbers = view.numbers(edits);
    draw(search.preview ? view.numbers(search.preview) : numbers);
    panels.prediction.show(view, prediction, numbers.size);
    panels.edits.show(view, numbers, history);
    panels.search.sync(goal);
    panels.search.running(search.state);
    panels.search.result(search.result, search.at);
    panels.edges.show(view, history.now, numbers);
    panels.add.show(view, rules);
    panels.features.show(view, history.now, numbers);
    if (document.activeElement !== typed) typed.value = Array.isArray(view.target) ? view.scene.targets.map((node) => view.scene.labels[node]).join(" ") : view.scene.targets.length ? view.scene.labels[view.scene.targets[0]] : (view.target ?? "");
  }

  function draw(numbers) {
    const { unfolded, limit, rules } = history.now;
    shown = view.excerpt(numbers, unfolded, limit);
    const linked = opened.task === "link" ? shown.scene.ends.push(...shown.scene.targets) / 2 - 1 : null;
    const guarded = new Set(rules.protected.map(keyOf));
    const roles = new Map(linked === null ? [] : [[linked, "link"]]);
    shown.lines.forEach((line, i) => {
      const number = view.lines.edit[line];
      if (view.lines.added[line]) roles.set(i, "added");
      else if (numbers.has(number)) roles.set(i, "deleted");
      else if (guarded.has(keyOf(view.lines.edge[line]))) roles.set(i, "protected");
      else if (number < 0) roles.set(i, "fixed");
    });
    const changed = new Set(view.changes.filter(({ edit }) => numbers.has(edit)).map(({ node }) => shown.nodes.indexOf(node)).filter((node) => node >= 0));
    const marked = new Set(selected.map((key) => shown.keys.indexOf(key)));
    const told = [...numbers].map((number) => view.told[number]).join(", ");
    drawing.show(shown.scene, view.legend, { roles, changed, folded: shown.folded, keys: shown.keys, selected: marked, label: `${view.name} and its neighbourhood; edits: ${told || "none"}` });
    put(legend, legendList(view.legend, shown.scene, new Set([...roles.values(), ...(changed.size ? ["changed"] : [])]), `${view.name}, the target`));
    const [nodes, edges] = view.scene.all;
    const hidden = nodes - shown.nodes.length;
    put(caption, hidden > 0 ? [`Showing ${shown.nodes.length} of ${count(nodes, "node")} (${count(edges, "edge")}); what is further away is folded up: +n is the number of neighbours that are not shown. `, shown.nodes.length < view.nodes.length ? button("Show more", () => change({ limit: history.now.limit + SHOWN })) : null] : `${count(nodes, "node")}, ${count(edges, "edge")}.`, view.note ? ` ${view.note}` : "");
    showSelection();
  }

  // The picture.
  function clickLine(i) {
    const line = shown.lines[i];
    const number = view.lines.edit[line];
    if (number < 0) put(message, `${view.lineName(line)} may not be deleted: it is protected, or the rules forbid it.`);
    else act.toggle(number);
  }

  function clickNode(i) {
    const key = shown.keys[i];
    selected = selected.includes(key) ? selected.filter((one) => one !== key) : [...selected, key].slice(-2);
    draw(view.numbers(history.now.edits));
  }

  function showSelection() {
    const nodes = selected.map((key) => view.nodeKeys.indexOf(key)).filter((node) => node >= 0);
    const last = nodes.at(-1);
    const parts = [];
    if (nodes.length === 2) {
      const lines = view.between(...nodes).filter((line) => view.lines.edit[line] >= 0);
      for (const line of lines) {
        const there = view.lines.added[line] ? "Add or take back" : "Delete or restore";
        parts.push(button(`${there} ${view.lineName(line)}`, () => act.toggle(view.lines.edit[line])));
      }
      const fits = opened.relations.filter(([from, , to]) => view.nodes[nodes[0]][1] === from && view.nodes[nodes[1]][1] === to);
      const missing = !view.between(...nodes).length;
      if (missing) for (const relation of opened.relations.length ? fits : [undefined]) parts.push(button(`Add the edge ${view.nodeName(nodes[0])}${opened.directed ? " → " : "–"}${view.nodeName(nodes[1])}${relation ? ` (${relation[1]})` : ""}`, () => add(nodes[0], nodes[1], relation)));
    }
    if (last !== undefined) {
      const folded = shown.folded.get(shown.nodes.indexOf(last));
      if (folded) parts.push(button(`Unfold ${count(folded, "neighbour")} of ${view.nodeName(last)}`, () => change({ unfolded: [...history.now.unfolded, view.nodeKeys[last]] })));
      const [number, type] = view.nodes[last];
      if (opened.task === "node" && (type ?? null) === opened.predicted_type && !view.scene.targets.includes(last)) parts.push(button(`Explain ${view.nodeName(last)}`, () => go(number)));
    }
    put(selection, parts.length ? parts : h("p", { class: "hint" }, "Click an edge to delete or restore it; click a node to go there, two nodes to join them. Drag to move, Ctrl and the wheel to zoom."));
  }

  function go(target) {
    selected = [];
    return change({ target, edits: [], unfolded: [], limit: SHOWN, rules: { ...history.now.rules, add: Array.isArray(history.now.rules.add) ? null : history.now.rules.add } });
  }

  async function suggest() {
    if (opened.task === "link" || !typed.value.trim()) return;
    const { found: names } = await ask("find", { text: typed.value }).catch(() => ({ found: [] }));
    put(found, names.map(({ name, target }) => h("option", { value: opened.task === "graph" ? target : name.split(" ").slice(1).join(" ") }, name)));
  }

  /** Join two nodes: where the rules leave that to the page, they are extended by this pair. */
  async function add(a, b, relation) {
    const old = view.between(a, b).find((line) => view.lines.added[line]);
    if (old !== undefined) return view.numbers(history.now.edits).has(view.lines.edit[old]) ? undefined : act.toggle(view.lines.edit[old]);
    const { target, goal, rules } = history.now;
    const ends = [view.nodes[a][0], view.nodes[b][0]];
    const edge = relation ? [relation, ...ends] : ends;
    if (!opened.free || (rules.add && !Array.isArray(rules.add))) return put(message, `The rules do not allow that ${view.nodeName(a)} and ${view.nodeName(b)} are joined.`);
    const wider = { ...rules, add: [...(rules.add || []), edge] };
    const [keyA, keyB] = [view.nodeKeys[a], view.nodeKeys[b]];
    try {
      const next = new TargetView(await ask("target", { target, goal, rules: wider }));
      const line = next.between(next.nodeKeys.indexOf(keyA), next.nodeKeys.indexOf(keyB)).find((one) => next.lines.added[one]);
      if (line === undefined) throw new Error("These two nodes cannot be joined.");
      selected = [];
      await change({ rules: wider, edits: [...history.now.edits, next.key(next.lines.edit[line])] });
    } catch (problem) {
      fail(problem);
    }
  }

  // The search.
  async function begin(all) {
    if (!view) return;
    const { target, rules, goal } = history.now;
    search = { number: null, state: { running: true, bound: 0 }, result: null, at: 0, preview: null };
    render();
    try {
      search.number = (await ask("search", { target, rules, goal, all })).search;
      await follow(search.number);
    } catch (problem) {
      search.state = null;
      render();
      fail(problem);
    }
  }

  async function follow(number) {
    while (search.number === number) {
      const state = await ask("progress", { search: number });
      if (search.number !== number) return;
      search.state = state;
      search.preview = state.running && state.edits?.length ? state.edits.map(keyOf) : null;
      if (!state.running) {
        search.result = state.result ?? null;
        if (search.result?.sets.length) return change({ edits: search.result.sets[0].map(keyOf) });
        return render();
      }
      panels.search.running(state);
      draw(search.preview ? view.numbers(search.preview) : view.numbers(history.now.edits));
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }

  // What is kept.
  function fileName() {
    return `butfor-${view.name.replace(/\W+/g, "-")}`;
  }

  function inWords() {
    const numbers = view.numbers(history.now.edits);
    const told = [...numbers].map((number) => view.told[number]).join(", ");
    return [panels.prediction.words.textContent, told && `Edits: ${told}.`, search.result?.verdict].filter(Boolean);
  }

  function keep() {
    save(`${fileName()}.json`, new Blob([JSON.stringify({ butfor: "explorer", version: 1, ids: opened.ids, state: history.now }, null, 1)], { type: "application/json" }));
  }

  async function restore() {
    try {
      const kept = JSON.parse(await file.files[0].text());
      if (kept?.butfor !== "explorer" || kept.version !== 1) throw new Error("This file was not saved by the explorer.");
      if (keyOf(kept.ids) !== keyOf(opened.ids)) throw new Error("This file was saved with another model or graph.");
      const { target, edits, rules, goal, unfolded, limit } = kept.state;
      if (![edits, unfolded, rules?.protected, rules?.costs].every(Array.isArray)) throw new Error("This file is damaged.");
      await change({ target, edits: edits.map(String), rules, goal, unfolded: unfolded.map(String), limit: Number(limit) || SHOWN });
    } catch (problem) {
      fail(problem instanceof SyntaxError ? new Error("This file was not saved by the explorer.") : problem);
    } finally {
      file.value = "";
    }
  }

  function exportJson() {
    const numbers = view.numbers(history.now.edits);
    const byHand = { target: view.target, edits: [...numbers].flatMap((number) => view.edits[number]), before: view.unedited, after: prediction };
    save(`${fileName()}-result.json`, new Blob([JSON.stringify({ by_hand: byHand, found: search.result?.json ?? null }, null, 1)], { type: "application/json" }));
  }

  function keys(event) {
    if (!(event.ctrlKey || event.metaKey) || event.target.closest("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) event.preventDefault(), act.undo();
    else if (key === "y" || (key === "z" && event.shiftKey)) event.preventDefault(), act.redo();
  }
}
