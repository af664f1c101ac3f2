// The search for the fewest edits: begun, followed and stopped; and the panel that shows how it gets on.
import { h, put, short } from "../elements.js";
import { keyOf } from "./state.js";
import { panel } from "./panels.js";

// Milliseconds between two questions about a search.
const PAUSE = 200;

/**
 * At most one search at a time, about one question (target, rules and goal): whoever asks something else gives it up.
 *
 * on.moved(): it got on; on.found(sets): it has an answer; on.failed(problem).
 */
export class Search {
  constructor(ask, on) {
    [this.ask, this.on] = [ask, on];
    this.clear();
  }

  clear() {
    this.now = { question: null, number: null, stopping: false, state: null, result: null, at: 0 };
  }

  get state() {
    return this.now.state;
  }

  get result() {
    return this.now.result;
  }

  /** The keys of the edits of the best answer so far, while it is being improved. */
  get preview() {
    const { state } = this.now;
    return state?.running && state.edits?.length ? state.edits.map(keyOf) : null;
  }

  async begin(question, all) {
    this.giveUp();
    const mine = this.now;
    Object.assign(mine, { question: keyOf(question), state: { running: true, bound: 0 } });
    this.on.moved();
    try {
      mine.number = (await this.ask("search", { ...question, all })).search;
      // It may have been given up or stopped before it had a number.
      if (mine !== this.now || mine.stopping) await this.ask("stop", { search: mine.number });
      await this.follow(mine);
    } catch (problem) {
      if (mine !== this.now) return;
      this.clear();
      this.on.moved();
      this.on.failed(problem);
    }
  }

  async follow(mine) {
    while (mine === this.now) {
      const state = await this.ask("progress", { search: mine.number });
      if (mine !== this.now) return;
      mine.state = state;
      if (!state.running) {
        mine.result = state.result ?? null;
        this.on.moved();
        if (mine.result?.sets.length) await this.on.found(mine.result.sets[0].map(keyOf), mine.question);
        return;
      }
      this.on.moved();
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }

  /** End it; its answer is what it has found so far. */
  stop() {
    this.now.stopping = true;
    if (this.now.number !== null) this.ask("stop", { search: this.now.number }).catch(this.on.failed);
  }

  /** Forget it, unless it is about this question. */
  keepFor(question) {
    if (this.now.question !== null && this.now.question !== question) this.giveUp();
  }

  giveUp() {
    if (this.now.state?.running) this.stop();
    this.clear();
  }

  /** The next of the smallest sets, or the one before. */
  step(by) {
    const { sets } = this.now.result;
    this.now.at = (this.now.at + by + sets.length) % sets.length;
    return sets[this.now.at].map(keyOf);
  }
}

/** The goal, the search for the smallest set, and its answer. */
export class SearchPanel {
  constructor(opened, act) {
    this.act = act;
    const ask = () => act.goal(this.goal());
    const classes = opened.classes.map((name, label) => h("option", { value: label }, name));
    this.wanted = h("select", { change: ask }, h("option", { value: "" }, "any other class"), classes);
    this.probability = h("input", { type: "number", min: 0.01, max: 0.99, step: 0.01, placeholder: "any", change: ask });
    this.all = h("input", { type: "checkbox", checked: true });
    this.find = h("button", { type: "button", class: "main", click: () => act.search(this.all.checked) }, "Find the smallest");
    this.stop = h("button", { type: "button", disabled: true, click: act.stop }, "Stop");
    const scale = { "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": 0 };
    const label = "Lower bound beside the best answer so far";
    this.bar = h("div", { class: "bounds", role: "progressbar", "aria-label": label, ...scale }, h("div", {}));
    this.progress = h("p", { class: "progress", role: "status" });
    this.answer = h("div", { class: "answer" });
    const labelled = (text, input) => h("label", {}, h("span", {}, text), input);
    this.element = panel(
      "Smallest counterfactual",
      h(
        "div",
        { class: "row" },
        labelled("wanted", this.wanted),
        opened.number ? null : labelled("probability at least", this.probability),
      ),
      h("label", { class: "check" }, this.all, "list all smallest sets"),
      h("div", { class: "row" }, this.find, this.stop),
      this.bar,
      this.progress,
      this.answer,
    );
  }

  goal() {
    const probability = this.probability.value === "" ? null : Number(this.probability.value);
    return { wanted: this.wanted.value === "" ? null : Number(this.wanted.value), probability };
  }

  show(goal, { state, result, at }) {
    this.wanted.value = goal.wanted ?? "";
    this.probability.value = goal.probability ?? "";
    this.running(state);
    this.result(result, at);
  }

  running(state) {
    this.find.disabled = Boolean(state?.running);
    this.stop.disabled = !state?.running;
    const share = state?.cost ? Math.min(state.bound / state.cost, 1) : 0;
    this.bar.classList.toggle("shown", Boolean(state));
    this.bar.setAttribute("aria-valuenow", share.toFixed(2));
    this.bar.firstChild.style.width = `${100 * share}%`;
    put(this.progress, state ? state.error || progressOf(state) : "");
  }

  result(result, at) {
    if (!result) return void put(this.answer);
    const many = result.sets.length;
    const arrow = (label, text, by) => h("button", { type: "button", "aria-label": label, click: () => this.act.step(by) }, text);
    const step = many > 1 && h(
      "div",
      { class: "stepper", role: "group", "aria-label": "Smallest sets" },
      arrow("Previous set", "◀", -1),
      h("span", { role: "status" }, `set ${at + 1} of ${many}`),
      arrow("Next set", "▶", 1),
    );
    const note = result.note ? h("p", { class: "note" }, result.note) : null;
    put(this.answer, h("p", { class: "sentence" }, result.sentence), h("p", { class: "verdict" }, result.verdict), note, step);
  }
}

function progressOf(state) {
  const best = state.cost === undefined || state.cost === null ? "no answer yet" : `best answer so far: ${short(state.cost)}`;
  const spent = state.evaluations === undefined
    ? ""
    : `; ${state.evaluations.toLocaleString("en")} evaluations, ${state.seconds.toFixed(1)} s`;
  return `${state.running ? "Searching: " : ""}${best}, proved: at least ${short(state.bound ?? 0)}${spent}`;
}
