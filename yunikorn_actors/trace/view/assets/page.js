"use strict";
// The page: what is selected and asked for, and who draws it.

const ZOOM = 1.6;
const PAN_PART = 0.2;
const NAMES_OF_COLOURS = {
  panel: "panel", line: "line", soft: "soft", text: "text", faint: "faint",
  box: "box", boxEdge: "box-edge", boxText: "box-text", wait: "wait", chain: "chain",
  chainEdge: "chain-edge", selected: "selected", refused: "refused", timeout: "timeout",
  request: "request", requestEdge: "request-edge", decision: "decision",
  decisionEdge: "decision-edge", fact: "fact", factEdge: "fact-edge", callback: "callback",
  callbackEdge: "callback-edge", timer: "timer", timerEdge: "timer-edge",
  lost: "lost", different: "different", level: "level", full: "full", accent: "accent",
};
const NO_FILTER = {text: "", kind: "", lane: "", stimulus: "", refused: false, object: null};

class App {
  constructor(runs, comparison) {
    this.runs = runs;
    this.comparison = comparison;
    this.selected = null;
    // The object whose messages are marked; it stays while one of them is looked at.
    this.marked = null;
    this.chain = [];
    this.cursor = 0;
    this._inChain = runs.map(() => new Set());
    this._filter = {...NO_FILTER};
    this._axes = {
      order: new OrderAxis(runs, comparison ? comparison.width : runs[0].count),
      time: runs.some((run) => run.isSimulated) ? null : new TimeAxis(runs),
    };
    this._inOrder = runs
      .flatMap((run) => run.column.map((column, message) => ({run, message, column})))
      .sort((one, other) => one.column - other.column || one.run.side - other.run.side);
    this._differences = this._inOrder.filter(({run, message}) => run.difference[message]);
    this._readColours();
    this._fillForms();
    this._strip = new Strip(this);
    this._lanes = new Lanes(this);
    this._tableFirst = 0;
    this._listen();
    this.view(this._axes.time ? "time" : "order");
    this.filter({});
    this._showDetail(summaryPanel(this));
  }

  // A name that tells of which run it is, if there are two.
  named(run, name) { return this.runs.length > 1 ? `${"AB"[run.side]} ${name}` : name; }

  // -- what is looked at

  view(name) {
    if (name !== "table" && this._axes[name] === null) return;
    this._isTable = name === "table";
    document.querySelector(`input[name=view][value=${name}]`).checked = true;
    for (const part of ["lanes", "tools", "hover"]) $(part).hidden = this._isTable;
    $("table").hidden = !this._isTable;
    if (!this._isTable && this.axis !== this._axes[name]) {
      this.axis = this._axes[name];
      this._lanes.sort();
      this._strip.sort();
      const [first] = this._differences;
      this.divergence = first ? this.axis.begin(first.run, first.message) : null;
      this.look(0, this.axis.total);
    }
    this._changed();
  }

  look(from, to) {
    const span = Math.min(to - from, this.axis.total);
    this.from = Math.max(0, Math.min(from, this.axis.total - span));
    this.to = this.from + span;
    this._changed();
  }

  zoom(factor, around = this._centre()) {
    const least = Math.min(this.axis.total, this.axis.name === "time" ? 1e3 : 10);
    const span = Math.max(least, (this.to - this.from) * factor);
    const part = (around - this.from) / (this.to - this.from);
    this.look(around - part * span, around + (1 - part) * span);
  }

  pan(by) { this.look(this.from + by, this.to + by); }

  // Where to zoom: at what is selected, if it is seen.
  _centre() {
    const {run, message} = this.selected ?? {};
    const at = message === undefined ? this.cursor : this.axis.begin(run, message);
    return at >= this.from && at <= this.to ? at : (this.from + this.to) / 2;
  }

  moveCursor(at) {
    this.cursor = Math.max(0, Math.min(this.axis.total, at));
    $("cursor").value = String(Math.round((this.cursor / this.axis.total) * $("cursor").max));
    this._reach(this.cursor, this.cursor);
    this._changed();
  }

  // Move the window as little as makes a part of the picture seen.
  _reach(from, to) {
    const span = this.to - this.from;
    if (from >= this.from && to <= this.to) return;
    this.look((from + to - span) / 2, (from + to + span) / 2);
  }

  lookAtChain() {
    if (!this.chain.length) return;
    const begins = this.chain.map(({run, message}) => this.axis.sent(run, message));
    const ends = this.chain.map(({run, message}) => this.axis.end(run, message));
    const [from, to] = [Math.min(...begins), Math.max(...ends)];
    const margin = 0.05 * (to - from) || this.axis.total / 1e4;
    this.look(from - margin, to + margin);
  }

  // -- what is selected

  selectMessage(run, message, stage = run.stages(message)[0]) {
    this.selected = {run, message, stage};
    const came = run.came(message, stage).map((it) => it.message);
    const chain = [...run.led(message, stage), message, ...came];
    this.chain = chain.map((it) => ({run, message: it}));
    const partner = run.partner[message];
    if (partner !== NONE) this.chain.push({run: this.runs[1 - run.side], message: partner});
    this._chainChanged();
    this.cursor = this.axis.begin(run, message);
    this.moveCursor(this.cursor);
    this._tableFirst = this._pageOf(run, message) ?? this._tableFirst;
    this._showDetail(messagePanel(this, run, message, stage));
    this._announce(messageLine(run, message));
  }

  selectObject(run, object) {
    this.selected = {run, object};
    const spoken = this.runs.map((it) => it.spoken(it === run ? object : twin(it, object)));
    this.marked = {run, object, spoken};
    this.chain = [];
    this._chainChanged();
    $("object-kind").value = object.kind;
    this._listObjects();
    this._showDetail(objectPanel(this, run, object));
    const count = `${run.spoken(object).size} messages are marked`;
    this._announce(`${shown(`${object.kind} ${object.name}`)}: ${count}`);
  }

  unselect() {
    this.selected = null;
    this.marked = null;
    this.chain = [];
    this._chainChanged();
    this._listObjects();
    this._showDetail(summaryPanel(this));
  }

  isSelected(run, message) {
    return this.selected?.run === run && this.selected.message === message;
  }

  isMarked(run, message) {
    return this.marked !== null && this._markedIn(run).has(message);
  }

  _markedIn(run) { return this.marked.spoken[run.side]; }

  isInChain(run, message) { return this._inChain[run.side].has(message); }

  _chainChanged() {
    for (const marked of this._inChain) marked.clear();
    for (const {run, message} of this.chain) this._inChain[run.side].add(message);
    this._flag();
  }

  // Steps along the chain: to what led to it, to the first that came of it, to those with the same cause.
  step(to) {
    const {run, message, stage} = this.selected ?? {};
    if (message === undefined) {
      const first = this._passing.find(Boolean);
      if (first) this.selectMessage(first.run, first.message);
      return;
    }
    if (to === "cause" && stage !== undefined) {
      const before = run.stageBefore(stage);
      if (before !== NONE) this.selectMessage(run, run.messageOf(before), before);
      return;
    }
    if (to === "effect") {
      const [next] = run.came(message, stage);
      if (next) this.selectMessage(run, next.message, next.stages[0]);
      return;
    }
    const beside = run.siblings(message);
    const place = beside.indexOf(message);
    const found = {cause: run.cause(message), before: beside[place - 1], after: beside[place + 1]}[to];
    if (found !== undefined && found !== NONE) this.selectMessage(run, found);
  }

  // Goes to the next or former one of a list, from what is selected or from the cursor.
  go(list, by) {
    if (!list.length) return;
    const here = list.findIndex(({run, message}) => this.isSelected(run, message));
    const order = this._order();
    const beyond = list.findIndex(({column}) => column > order);
    const next = beyond === -1 ? list.length : beyond;
    const wanted = here === -1 ? (by > 0 ? next : next - 1) : here + by;
    const {run, message} = list[(wanted + list.length) % list.length];
    this.selectMessage(run, message);
  }

  _order() {
    const {run, message} = this.selected ?? {};
    return message === undefined ? NONE : run.column[message];
  }

  // -- filters

  filter(changed) {
    Object.assign(this._filter, changed);
    const {text, kind, lane, stimulus, refused, object} = this._filter;
    Object.assign($("text"), {value: object ? object.name : text});
    $("kind").value = kind;
    $("lane").value = lane;
    // Who types a name may not have come to its end.
    if (stimulus || document.activeElement !== $("stimulus")) $("stimulus").value = stimulus;
    $("refused").checked = refused;
    this._passes = this.runs.map((run) =>
      object && !run.objects.includes(object)
        ? run.passing({...this._filter, object: twin(run, object)})
        : run.passing(this._filter));
    this._passing = this._inOrder.filter(({run, message}) => this._passes[run.side][message]);
    $("count").textContent = `${this._passing.length} of ${this._inOrder.length} messages`;
    this._tableFirst = 0;
    this._flag();
    this._listObjects();
  }

  _flag() {
    for (const run of this.runs) {
      const [flags, passes] = [this._lanes.flags[run.side], this._passes?.[run.side]];
      for (let message = 0; message < run.count; message++) flags[message] = passes?.[message] ?? PASSES;
    }
    for (const run of this.marked ? this.runs : [])
      for (const message of this._markedIn(run)) this._lanes.flags[run.side][message] |= SPEAKS;
    for (const {run, message} of this.chain) this._lanes.flags[run.side][message] |= IN_CHAIN;
    if (this.selected?.message !== undefined)
      this._lanes.flags[this.selected.run.side][this.selected.message] |= SELECTED;
    this._changed();
  }

  // -- panels

  _showDetail(nodes) {
    $("right").replaceChildren(...nodes);
    $("right").scrollTop = 0;
    this._changed();
  }

  _listObjects() {
    const words = this._filter.object ? "" : this._filter.text;
    $("objects").replaceChildren(...objectList(this, $("object-kind").value, words));
  }

  turnTable(first) {
    this._tableFirst = first;
    this._changed();
  }

  _pageOf(run, message) {
    const place = this._passing.findIndex((it) => it.run === run && it.message === message);
    return place === -1 ? null : Math.floor(place / ROWS) * ROWS;
  }

  _announce(text) { $("announced").textContent = text; }

  _fillForms() {
    const choices = (select, names, all) => {
      const options = names.map((name) => el("option", {value: name}, shown(name)));
      $(select).replaceChildren(...(all ? [el("option", {value: ""}, all)] : []), ...options);
    };
    const each = (of) => [...new Set(this.runs.flatMap(of))];
    choices("kind", each((run) => run.kinds()).sort(), "all types");
    choices("lane", each((run) => run.lanes), "all mailboxes");
    choices("object-kind", ["application", "ask", "node", "queue", "user"], "");
    const stimuli = each((run) => run.stimuli());
    $("stimuli").replaceChildren(...stimuli.map((value) => el("option", {value})));
    $("title").textContent = shown(this.runs.map((run) => run.name).join(" and "));
    const [{about, ending, isSimulated}] = this.runs;
    const simulated = isSimulated ? "; simulated: handling takes no time, so there is the order alone" : "";
    const what = this.runs.length > 1 ? "two runs, A above B" : `${about}; ${ending}`;
    $("about").textContent = shown(what + simulated);
    $("difference").hidden = this.runs.length === 1;
    $("difference").disabled = !this._differences.length;
    document.querySelector("input[value=time]").disabled = this._axes.time === null;
    const roles = ROLES.map((role) => el("span", {className: `role ${role}`}, role === "timer" ? "timer, cycle" : role));
    const signs = ["× refused", "▁ chain", "▣ selected", "▔ speaks of the object"];
    if (this.runs.length > 1) signs.push("◇ different", "◆ only in this run");
    $("legend").replaceChildren(...roles, ...signs.map((sign) => el("span", {}, sign)));
  }

  // -- drawing, once for all that has changed

  _changed() {
    if (this._isDue) return;
    this._isDue = true;
    requestAnimationFrame(() => {
      this._isDue = false;
      this._draw();
    });
  }

  _draw() {
    if (this._isTable) this._drawTable();
    else this._lanes.draw();
    this._strip.draw();
    const label = this.axis.label(this.cursor);
    $("cursor-label").textContent = label;
    $("cursor").setAttribute("aria-valuetext", label);
    document.documentElement.dataset.ready = "yes";
  }

  _drawTable() {
    // Whoever stands on a link of the table stays on it.
    const focused = $("table").contains(document.activeElement) ? document.activeElement.textContent : null;
    $("table").replaceChildren(messageTable(this, this._passing, this._tableFirst));
    const buttons = [...$("table").querySelectorAll("button")];
    buttons.find((button) => button.textContent === focused)?.focus({preventScroll: true});
    $("table").querySelector("[aria-selected] td")?.scrollIntoView({block: "nearest"});
  }

  _readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(Object.entries(NAMES_OF_COLOURS)
      .map(([name, property]) => [name, style.getPropertyValue(`--${property}`).trim()]));
  }

  // -- who acts

  _listen() {
    const on = (name, event, act) => $(name).addEventListener(event, act);
    for (const radio of document.querySelectorAll("input[name=view]"))
      radio.addEventListener("change", () => this.view(radio.value));
    on("cursor", "input", () => this.moveCursor(($("cursor").value / $("cursor").max) * this.axis.total));
    on("text", "input", () => this.filter({text: $("text").value, object: null}));
    on("kind", "change", () => this.filter({kind: $("kind").value}));
    on("lane", "change", () => this.filter({lane: $("lane").value}));
    on("stimulus", "input", () => this.filter({stimulus: this._knownStimulus()}));
    on("refused", "change", () => this.filter({refused: $("refused").checked}));
    on("filters", "submit", (event) => event.preventDefault());
    on("filters", "reset", (event) => { event.preventDefault(); this.filter(NO_FILTER); });
    on("object-kind", "change", () => this._listObjects());
    on("difference", "click", () => this.go(this._differences, 1));
    on("zoom-in", "click", () => this.zoom(1 / ZOOM));
    on("zoom-out", "click", () => this.zoom(ZOOM));
    on("zoom-all", "click", () => this.look(0, this.axis.total));
    on("zoom-chain", "click", () => this.lookAtChain());
    answerKeys(this._keys);
    new ResizeObserver(() => this._changed()).observe($("middle"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this._readColours();
      this._changed();
    });
  }

  // Half a name of a stimulus asks for nothing yet.
  _knownStimulus() {
    const typed = $("stimulus").value;
    return this.runs.some((run) => run.stimuli().includes(typed)) ? typed : "";
  }

  _keys = {
    "/": ["filter by a text or an id", () => { $("text").focus(); $("text").select(); }],
    "ArrowLeft": ["to what led to it", () => this.step("cause")],
    "ArrowRight": ["to what came of it", () => this.step("effect")],
    "ArrowUp": ["to the one before it with the same cause", () => this.step("before")],
    "ArrowDown": ["to the one behind it with the same cause", () => this.step("after")],
    "j": ["next message that passes the filters", () => this.go(this._passing, 1)],
    "k": ["former message that passes the filters", () => this.go(this._passing, -1)],
    "n": ["next difference", () => this.go(this._differences, 1)],
    "N": ["former difference", () => this.go(this._differences, -1)],
    "m": ["next refusal, timeout or loss", () => this.go(this._marked(), 1)],
    "g": ["next message that speaks of the object", () => this.go(this._speaking(), 1)],
    "G": ["former message that speaks of the object", () => this.go(this._speaking(), -1)],
    "+": ["zoom in", () => this.zoom(1 / ZOOM)],
    "-": ["zoom out", () => this.zoom(ZOOM)],
    "0": ["the whole run", () => this.look(0, this.axis.total)],
    "f": ["the chain of what is selected", () => this.lookAtChain()],
    "[": ["to the left", () => this.pan(-PAN_PART * (this.to - this.from))],
    "]": ["to the right", () => this.pan(PAN_PART * (this.to - this.from))],
    "t": ["view by time", () => this.view("time")],
    "o": ["view by order", () => this.view("order")],
    "b": ["view as a table", () => this.view("table")],
    "d": ["to the details of what is selected", () => $("right").focus()],
    "Escape": ["leave a field, or select nothing", () => this._leave()],
    "?": ["these keys", showKeys],
  };

  _leave() {
    const active = document.activeElement;
    if (active?.matches("input, select")) active.blur();
    else this.unselect();
  }

  _speaking() {
    return this._inOrder.filter(({run, message}) => this.isMarked(run, message));
  }

  _marked() {
    return this._inOrder.filter(({run, message}) => run.marksOf(message).length);
  }
}

// The same thing in the other run.
function twin(run, object) {
  const none = {messages: []};
  return run.objects.find((it) => it.kind === object.kind && it.name === object.name) ?? none;
}

async function start() {
  const {runs, comparison} = JSON.parse(await unpacked("data"));
  const payloads = await Promise.all(runs.map((_, side) => unpacked(`payloads-${side}`)));
  const made = runs.map((run, side) => new Run(run, payloads[side], side));
  comparison?.sides.forEach((side, number) => made[number].align(side));
  globalThis.app = new App(made, comparison);
}

start().catch((error) => {
  $("about").textContent = `This page cannot be shown here: ${error.message}. A browser of the last years can.`;
  throw error;
});
