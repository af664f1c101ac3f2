// The explorer: look at a target, edit its graph by hand, watch the prediction follow, and find the fewest edits.
import { h, count, put } from "../elements.js";
import { Drawing } from "../drawing.js";
import { legendList } from "../legend.js";
import { History, SHOWN, TargetView, addedKey, edgeOf, keyOf, noRules, questionOf } from "./state.js";
import { keepingFocus } from "./focus.js";
import { EdgesPanel, EditsPanel, PredictionPanel } from "./panels.js";
import { AddPanel, FeaturesPanel, listId } from "./rules.js";
import { Search, SearchPanel } from "./search.js";
import { offers } from "./selection.js";
import { filesPanel } from "./files.js";

const HINT = "Click an edge to delete or restore it; click a node to go there, two nodes to join them. "
  + "Drag to move, Ctrl and the wheel to zoom.";

/** Ask the server of this page. */
async function post(verb, body) {
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch("/api", { method: "POST", headers, body: JSON.stringify({ verb, ...body }) }).catch(() => null);
  const answer = await reply?.json().catch(() => null);
  if (!answer) throw new Error("The explorer does not answer; was it ended?");
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

/**
 * Fill a place of the page. `opened` is what the server says at first; `ask(verb, body)` asks it further.
 */
export function explorer(place, opened, ask = post) {
  const first = { target: opened.first, edits: [], rules: noRules(), goal: opened.goal, unfolded: [], limit: SHOWN };
  const history = new History(first);
  let view = null, prediction = null, shown = null, selected = [], latest = 0, typedLast = 0;
  // The history when the page last showed what it says.
  let settled = null;

  // What can be done.
  const change = (part) => {
    history.change({ ...history.now, ...part });
    return load();
  };
  const say = (text) => put(message, text);
  const fail = (problem) => say(problem.message);
  const act = {
    undo: () => { history.undo(); return load(); },
    redo: () => { history.redo(); return load(); },
    reset: () => change({ edits: [], rules: withoutPairs(() => false) }),
    say,
    toggle,
    protect(line) {
      const { rules } = history.now;
      const edge = view.lines.edge[line];
      const others = rules.protected.filter((one) => keyOf(one) !== keyOf(edge));
      const kept = others.length < rules.protected.length ? others : [...rules.protected, edge];
      return change({ rules: { ...rules, protected: kept } });
    },
    price(line, text) {
      const { rules } = history.now;
      const edge = view.lines.edge[line];
      const others = rules.costs.filter(([one]) => keyOf(one) !== keyOf(edge));
      return change({ rules: { ...rules, costs: text === "" ? others : [...others, [edge, Number(text)]] } });
    },
    rule: (part) => change({ rules: { ...history.now.rules, ...part } }),
    goal: (goal) => change({ goal }),
    unfold: (key) => change({ unfolded: [...history.now.unfolded, key] }),
    add,
    go,
    search: (all) => view && search.begin(questionOf(view.state), all),
    stop: () => search.stop(),
    step: (by) => change({ edits: search.step(by) }),
  };
  const search = new Search(ask, { moved: render, found, failed: fail });

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
    files: filesPanel(opened, drawing, {
      state: () => history.now,
      view: () => view,
      prediction: () => prediction,
      found: () => search.result,
      words,
      change,
      fail,
    }),
  };
  const suggestions = h("datalist", { id: listId() });
  const typed = h("input", { list: suggestions.id, autocomplete: "off", size: 18, input: suggest });
  const many = opened.task !== "graph" || opened.first !== null;
  const root = h("div", { class: "explorer" },
    h("header", { class: "top" }, h("h1", {}, opened.title), many ? chooser() : null),
    message,
    h("main", {},
      h("section", { class: "picture", "aria-label": "Picture" }, drawing.element, legend, caption, selection),
      h("div", { class: "side" }, Object.values(panels).map(({ element }) => element))));
  put(place, root);
  // In a notebook, keys that are pressed elsewhere belong to the notebook.
  (ask === post ? document : root).addEventListener("keydown", keys);
  put(caption, "Preparing the model and the graph …");
  load();

  function button(text, click) {
    return h("button", { type: "button", click }, text);
  }

  function chooser() {
    const submit = (event) => {
      event.preventDefault();
      go(typed.value);
    };
    const label = h("label", {}, h("span", {}, `target: ${opened.range}`), typed);
    return h("form", { class: "chooser row", submit }, label, suggestions, h("button", { type: "submit" }, "Show"));
  }

  // What the page shows follows from the state; what the server has to say is asked for first.
  async function load() {
    const ticket = ++latest;
    const { edits } = history.now;
    const question = questionOf(history.now);
    say("");
    root.setAttribute("aria-busy", "true");
    try {
      const same = view && keyOf(questionOf(view.state)) === keyOf(question);
      const next = same ? view : new TargetView(await ask("target", question));
      const numbers = next.numbers(edits);
      const records = [...numbers].map((number) => next.edits[number][0]);
      const said = numbers.size ? await ask("predict", { ...question, edits: records }) : next.unedited;
      if (ticket !== latest) return;
      if (numbers.size < new Set(edits).size) say("What the rules do not allow here was taken back.");
      // As the server names the target and the edits.
      history.now = { ...history.now, target: next.target, edits: [...numbers].map((number) => next.key(number)) };
      settled = history.kept;
      [view, prediction] = [next, said];
      view.state = history.now;
      search.keepFor(keyOf(questionOf(history.now)));
    } catch (problem) {
      if (ticket !== latest) return;
      // What could not be done is undone, and does not count as done.
      if (settled) history.set(...settled);
      else put(caption);
      fail(problem);
    } finally {
      if (ticket === latest) root.removeAttribute("aria-busy");
    }
    render();
  }

  function render() {
    if (view) keepingFocus(root, show);
  }

  function show() {
    const { edits, goal, rules } = history.now;
    const numbers = view.numbers(edits);
    draw();
    panels.prediction.show(view, prediction, view.numbers(view.state.edits).size);
    panels.edits.show(view, numbers, history);
    panels.search.show(goal, search.now);
    panels.edges.show(view, history.now, numbers);
    panels.add.show(view, rules);
    panels.features.show(view, history.now, numbers);
    panels.files.show(true);
    if (root.getRootNode().activeElement !== typed) typed.value = view.typed;
  }

  function draw() {
    const { unfolded, limit } = history.now;
    const numbers = view.numbers(search.preview ?? history.now.edits);
    shown = view.excerpt(numbers, unfolded, limit);
    const roles = rolesOf(numbers);
    const edited = view.changes.filter(({ edit }) => numbers.has(edit));
    const changed = new Set(edited.map(({ node }) => shown.nodes.indexOf(node)).filter((node) => node >= 0));
    const marked = new Set(selected.map((key) => shown.keys.indexOf(key)));
    const label = `${view.name} and its neighbourhood; edits: ${toldOf(numbers) || "none"}`;
    drawing.show(shown.scene, view.legend, { roles, changed, folded: shown.folded, keys: shown.keys, selected: marked, label });
    const special = new Set([...roles.values(), ...(changed.size ? ["changed"] : [])]);
    put(legend, legendList(view.legend, shown.scene, special, `${view.name}, the target`));
    describe();
    showSelection();
  }

  /** What the lines of the picture are, but for plain edges. */
  function rolesOf(numbers) {
    const roles = new Map();
    // A link that is predicted is drawn too.
    if (opened.task === "link") roles.set(shown.scene.ends.push(...shown.scene.targets) / 2 - 1, "link");
    const guarded = new Set(history.now.rules.protected.map(keyOf));
    shown.lines.forEach((line, i) => {
      const number = view.lines.edit[line];
      if (view.lines.added[line]) roles.set(i, "added");
      else if (numbers.has(number)) roles.set(i, "deleted");
      else if (guarded.has(keyOf(view.lines.edge[line]))) roles.set(i, "protected");
      else if (number < 0) roles.set(i, "fixed");
    });
    return roles;
  }

  function toldOf(numbers) {
    return [...numbers].map((number) => view.told[number]).join(", ");
  }

  /** Below the picture: how much of the neighbourhood it shows. */
  function describe() {
    const [nodes, edges] = view.scene.all;
    const part = [`Showing ${shown.nodes.length} of ${count(nodes, "node")} (${count(edges, "edge")}); `,
      "what is further away is folded up: +n is the number of neighbours that are not shown. "];
    const more = shown.nodes.length < view.nodes.length
      ? button("Show more", () => change({ limit: history.now.limit + SHOWN }))
      : null;
    const whole = shown.nodes.length === nodes;
    put(
      caption,
      search.preview ? "The picture shows the best answer so far. " : "",
      whole ? `${count(nodes, "node")}, ${count(edges, "edge")}.` : [part, more],
      view.note ? ` ${view.note}` : "",
    );
  }

  // The picture.
  function clickLine(i) {
    const line = shown.lines[i];
    const number = view.lines.edit[line];
    if (number < 0) say(`${view.lineName(line)} may not be deleted: it is protected, or the rules forbid it.`);
    else toggle(number);
  }

  function clickNode(i) {
    const key = shown.keys[i];
    selected = selected.includes(key) ? selected.filter((one) => one !== key) : [...selected, key].slice(-2);
    draw();
  }

  function showSelection() {
    const nodes = selected.map((key) => view.nodeKeys.indexOf(key)).filter((node) => node >= 0);
    const buttons = offers(opened, view, shown, nodes, act).map(([text, click]) => button(text, click));
    put(selection, buttons.length ? buttons : h("p", { class: "hint" }, HINT));
  }

  // The target.
  function go(target) {
    selected = [];
    return change({ target, edits: [], unfolded: [], limit: SHOWN, rules: withoutPairs(() => false) });
  }

  async function suggest() {
    const ticket = ++typedLast;
    if (opened.task === "link" || !typed.value.trim()) return;
    const { found: names } = await ask("find", { text: typed.value }).catch(() => ({ found: [] }));
    if (ticket !== typedLast) return;
    put(suggestions, names.map((one) => h("option", { value: one.typed }, one.name)));
  }

  // Edits.
  function toggle(number) {
    const mine = view.key(number);
    const { edits } = history.now;
    if (edits.includes(mine)) {
      // Nor may the search join a pair that was joined by hand and is no more.
      const rules = withoutPairs((edge) => view.numberOf.get(addedKey(edge)) !== number);
      return change({ edits: edits.filter((key) => key !== mine), rules });
    }
    // A feature has one value: another one takes its place.
    const slot = slotOf(mine);
    return change({ edits: [...edits.filter((key) => slot === null || slotOf(key) !== slot), mine] });
  }

  /** The rules, with those pairs that were joined by hand and fulfil this. */
  function withoutPairs(stays) {
    const { rules } = history.now;
    if (!Array.isArray(rules.add)) return rules;
    const left = rules.add.filter(stays);
    return { ...rules, add: left.length ? left : null };
  }

  /** Join two nodes: where the rules leave that to the page, they are extended by this pair. */
  function add(a, b, relation) {
    const { rules, edits } = history.now;
    const edge = edgeOf(view.nodes[a][0], view.nodes[b][0], relation);
    const mine = addedKey(edge);
    const number = view.numberOf.get(mine);
    const names = `${view.nodeName(a)} and ${view.nodeName(b)}`;
    if (number !== undefined && edits.includes(view.key(number))) return say(`${names} are joined already.`);
    if (number !== undefined) return toggle(number);
    if (!opened.free || (rules.add && !Array.isArray(rules.add))) return say(`The rules do not allow that ${names} are joined.`);
    selected = [];
    return change({ rules: { ...rules, add: [...(rules.add ?? []), edge] }, edits: [...edits, mine] });
  }

  /** The search has an answer to a question, which may not be that of the page any more. */
  function found(edits, question) {
    return keyOf(questionOf(history.now)) === question ? change({ edits }) : undefined;
  }

  function words() {
    const told = toldOf(view.numbers(history.now.edits));
    return [panels.prediction.words.textContent, told && `Edits: ${told}.`, search.result?.verdict].filter(Boolean);
  }

  function keys(event) {
    // Where text is typed, the browser undoes the typing.
    if (!(event.ctrlKey || event.metaKey) || event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const key = event.key.toLowerCase();
    const undo = key === "z" && !event.shiftKey;
    const redo = key === "y" || (key === "z" && event.shiftKey);
    if (!undo && !redo) return;
    event.preventDefault();
    if (undo) act.undo();
    else act.redo();
  }
}

/** The feature of a node that an edit sets; null for other edits. */
function slotOf(key) {
  const [kind, node, feature, , , type] = JSON.parse(key);
  return kind === "change" ? keyOf([node, feature, type ?? null]) : null;
}
