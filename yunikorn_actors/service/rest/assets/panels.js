"use strict";
// The panels that are written from each picture. Rows stay the same elements as long as what they show
// is there, so whoever stands on one stays on it, and only what has changed is written.

const KINDS_MAX = 4;
const FLOWS_SHOWN = 25;
const INDENT = 14;
const SAMPLES_MAX = 120;

function write(node, text) { if (node.textContent !== text) node.textContent = text; }

class Rows {
  // `make` gives a row for an item: its node, and `show`, which writes an item into it.
  constructor(parent, make) {
    this._parent = parent;
    this._make = make;
    this._rows = new Map();
  }

  show(items, keyOf) {
    const rows = new Map(items.map((item) => {
      const key = keyOf(item);
      return [key, this._rows.get(key) ?? this._make(item)];
    }));
    for (const [key, row] of this._rows) if (!rows.has(key)) row.node.remove();
    let place = this._parent.firstChild;
    for (const {node} of rows.values()) {
      if (node === place) place = place.nextSibling;
      else this._parent.insertBefore(node, place);
    }
    for (const item of items) rows.get(keyOf(item)).show(item);
    this._rows = rows;
  }

  clear() {
    this._rows.clear();
    this._parent.replaceChildren();
  }
}

// What has nothing to say needs no line of its own where there is little room.
function mark(cell, text) { cell.classList.toggle("is-none", ["", "–", "0"].includes(text)); }

function labelsOf(head) { return [...head.children].map((it) => it.textContent); }

// A row of a table from the texts of its cells: names and sentences from outside, and our own.
function tableRow(textsOf, {numbers = [], names = [], sentences = [], labels = [], open = null}) {
  return (first) => {
    let item = first;
    const cells = textsOf(first).map((_, place) => {
      if (open && place === 0) return link("", () => open(item));
      if (names.includes(place)) return id("");
      return sentences.includes(place) ? el("bdi", {className: "said"}) : el("span");
    });
    const node = el("tr", {}, ...cells.map((cell, place) =>
      el("td", {className: numbers.includes(place) ? "number" : "", attributes: {"data-label": labels[place] ?? ""}}, cell)));
    const show = (now) => {
      item = now;
      textsOf(now).forEach((text, place) => {
        write(cells[place], shown(text));
        mark(cells[place].parentNode, text);
      });
    };
    return {node, show};
  };
}

// -- bars

function bar() {
  const [used, pending, mark] = ["used", "pending", "mark"].map((className) => el("span", {className}));
  const node = el("div", {className: "bar", attributes: {"aria-hidden": "true"}}, used, pending, mark);
  const show = (scale, taken, waits = 0, guaranteed = 0) => {
    const part = (quantity) => (scale > 0 ? Math.max(0, Math.min(1, quantity / scale)) : 0);
    used.style.width = `${part(taken) * 100}%`;
    pending.style.left = used.style.width;
    pending.style.width = `${Math.min(1 - part(taken), part(waits)) * 100}%`;
    mark.hidden = !(guaranteed > 0 && scale > 0);
    mark.style.left = `calc(${part(guaranteed) * 100}% - 3px)`;
    node.classList.toggle("is-full", scale > 0 && taken >= scale);
  };
  return {node, show};
}

// A line of the last samples, as high as the highest of them.
function sparkline(canvas, samples, colour) {
  const [width, height] = [canvas.clientWidth || 120, 24];
  const pen = canvasOf(canvas, width, height);
  const most = Math.max(1, ...samples);
  const step = width / (SAMPLES_MAX - 1);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  samples.forEach((sample, number) =>
    pen.lineTo(width - (samples.length - 1 - number) * step, height - 2 - (sample / most) * (height - 4)));
  pen.stroke();
}

// -- the partition in a few numbers

class Tiles {
  constructor() {
    this._rows = new Rows($("tiles"), () => this._tile());
    this._samples = {waiting: [], placed: []};
    this._placed = null;
  }

  _tile() {
    const [name, value, more] = ["name", "value", "more"].map((className) => el("div", {className}));
    const picture = bar();
    const canvas = el("canvas", {attributes: {"aria-hidden": "true"}});
    const node = el("li", {}, name, value, picture.node, canvas, more);
    const show = (tile) => {
      write(name, tile.name);
      write(value, tile.value);
      write(more, tile.more ?? "");
      picture.node.hidden = !tile.bar;
      canvas.hidden = !tile.samples;
      if (tile.bar) picture.show(...tile.bar);
      if (tile.samples) sparkline(canvas, tile.samples, getComputedStyle(name).color);
    };
    return {node, show};
  }

  // Once for each picture, also where nothing has changed: a moment has passed.
  sample(cluster, waiting, elapsed) {
    const rate = this._placed === null || elapsed <= 0 ? 0 : (cluster.placed - this._placed) / elapsed;
    this._placed = cluster.placed;
    for (const [name, sample] of [["waiting", waiting], ["placed", Math.max(0, rate)]]) {
      this._samples[name].push(sample);
      if (this._samples[name].length > SAMPLES_MAX) this._samples[name].shift();
    }
    this._show(cluster, waiting, Math.max(0, rate));
  }

  _show(cluster, waiting, rate) {
    const states = Object.entries(cluster.applications);
    const active = states.reduce((sum, [, it]) => sum + it, 0);
    const tiles = cluster.kinds.slice(0, 2).map((kind) => {
      const [has, max, waits] = ["allocated", "capacity", "pending"].map((it) => cluster[it][kind] ?? 0);
      return {
        name: kind, value: `${amount(kind, has)} of ${amount(kind, max)}`, bar: [max, has, waits],
        more: waits ? `${amount(kind, waits)} more are waited for` : "",
      };
    });
    tiles.push(
      {name: "waiting asks", value: count(waiting), samples: this._samples.waiting,
        more: cluster.waiting_gangs ? `${counted(cluster.waiting_gangs, "gang")} not complete` : ""},
      {name: "allocations", value: count(cluster.allocations), samples: this._samples.placed,
        more: `${perSecond(rate)} placed each second`},
      {name: "applications", value: count(active),
        more: [...states.map(([state, it]) => `${count(it)} ${state}`), `${count(cluster.finished)} ended`].join(", ")},
      {name: "nodes", value: count(cluster.nodes),
        more: cluster.closed_nodes ? `${count(cluster.closed_nodes)} drained or not ready` : "all take work"},
    );
    this._rows.show(tiles, (tile) => tile.name);
  }
}

// -- queues

class QueueTable {
  constructor(chosen) {
    this._chosen = chosen;
    this._folded = new Set();
    this._kinds = [];
    this._rows = new Rows($("queue-rows"), (queue) => this._row(queue));
  }

  show(queues, cluster) {
    [this._queues, this._cluster] = [queues, cluster];
    this._byPath = new Map(queues.listed.map((queue) => [queue.path, queue]));
    this._parents = new Set(queues.listed.map((queue) => parentOf(queue.path)));
    const kinds = cluster.kinds.filter((kind) => queues.listed.some((queue) =>
      ["allocated", "pending", "max", "guaranteed"].some((it) => queue[it]?.[kind]))).slice(0, KINDS_MAX);
    if (kinds.join() !== this._kinds.join() || !$("queue-head").childElementCount) this._rewrite(kinds);
    this._showRows();
    write($("queue-rest"), queues.left_out ? `${count(queues.left_out)} more queues are not listed.` : "");
  }

  _rewrite(kinds) {
    this._kinds = kinds;
    const heads = ["queue", ...kinds.map((kind) => shown(kind)), "applications", "asks wait"];
    $("queue-head").replaceChildren(...heads.map((name, place) =>
      el("th", {className: place > kinds.length ? "number" : "", attributes: {scope: "col"}}, name)));
    this._sorting = new Sorting($("queue-head"), [
      (it) => it.path, ...kinds.map((kind) => (it) => it.allocated?.[kind] ?? 0),
      (it) => it.applications ?? 0, (it) => it.waiting ?? 0], () => this._showRows());
    this._rows.clear();
  }

  _showRows() {
    const isSeen = ({path}) => {
      for (let up = parentOf(path); up; up = parentOf(up)) if (this._folded.has(up)) return false;
      return true;
    };
    // Sorted by an amount they are no tree, so each has its whole path, and none is folded.
    const {isSorted} = this._sorting;
    $("queue-rows").classList.toggle("is-flat", isSorted);
    const listed = isSorted ? this._sorting.sorted(this._queues.listed) : this._queues.listed.filter(isSeen);
    this._rows.show(listed, (queue) => queue.path);
  }

  _row(queue) {
    const depth = queue.path.split(".").length - 1;
    const fold = el("button", {type: "button", className: "fold"});
    fold.addEventListener("click", () => this._fold(queue.path));
    const note = el("span", {className: "small"});
    const opening = link(queue.path.split(".").at(-1), () => this._chosen(queue.path));
    const name = el("th", {className: "name", attributes: {scope: "row"}, title: shown(queue.path)},
      el("div", {className: "path"}, fold, opening, note));
    name.style.paddingLeft = `${Math.min(depth, 12) * INDENT}px`;
    const kinds = this._kinds.map((kind) => ({kind, ...quotaCell(kind)}));
    const [running, all] = [el("div"), el("div", {className: "small"})];
    const waits = el("td", {className: "number", attributes: {"data-label": "asks wait"}}, el("span"));
    const applications = el("td", {className: "number", attributes: {"data-label": "applications"}},
      el("div", {}, running, all));
    const node = el("tr", {}, name, ...kinds.map((it) => it.node), applications, waits);
    const show = (now) => {
      const isFlat = this._sorting.isSorted;
      write(opening, shown(isFlat ? now.path : now.path.split(".").at(-1)));
      name.style.paddingLeft = isFlat ? "0" : `${Math.min(depth, 12) * INDENT}px`;
      fold.hidden = isFlat || !this._parents.has(now.path);
      const isFolded = this._folded.has(now.path);
      write(fold, isFolded ? "▸" : "▾");
      fold.setAttribute("aria-expanded", String(!isFolded));
      fold.setAttribute("aria-label", shown(`${isFolded ? "unfold" : "fold"} ${now.path}`));
      write(note, [now.state === "Active" ? "" : now.state, now.managed ? "" : "dynamic"].filter(Boolean).join(", "));
      for (const it of kinds) it.show(it.kind, now, this._max(now, it.kind));
      const most = now.max_running ? ` of ${count(now.max_running)}` : "";
      write(running, now.applications ? `${count(now.running ?? 0)}${most} run` : "–");
      write(all, now.applications ? `${count(now.applications)} in all` : "");
      write(waits.firstChild, now.waiting ? count(now.waiting) : "–");
      mark(waits, waits.textContent);
      mark(applications, running.textContent);
    };
    return {node, show};
  }

  _fold(path) {
    if (!this._folded.delete(path)) this._folded.add(path);
    this._showRows();
  }

  // The maximum that bounds a queue: its own, or that of the nearest queue above.
  _max(queue, kind) {
    for (let path = queue.path; path; path = parentOf(path)) {
      const own = parentOf(path) ? this._byPath.get(path)?.max?.[kind] : this._cluster.capacity[kind];
      if (own !== undefined) return {max: own, isOwn: path === queue.path};
    }
    return {max: 0, isOwn: true};
  }
}

function parentOf(path) { return path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : ""; }

function quotaCell(label) {
  const picture = bar();
  const [said, more] = [el("div", {className: "bar-text"}), el("div", {className: "small"})];
  const node = el("td", {attributes: {"data-label": shown(label)}}, el("div", {}, said, picture.node, more));
  const show = (kind, queue, {max, isOwn}) => {
    const [has, waits, sure, leaves] = ["allocated", "pending", "guaranteed", "preempting"]
      .map((it) => queue[it]?.[kind] ?? 0);
    picture.show(max, has, waits, sure);
    const of = isOwn ? amount(kind, max) : `(${amount(kind, max)})`;
    write(said, `${amount(kind, has)} of ${of}${max > 0 && has >= max ? ", full" : ""}`);
    write(more, [
      sure ? `${amount(kind, sure)} guaranteed` : "", waits ? `${amount(kind, waits)} waited for` : "",
      leaves ? `${amount(kind, leaves)} preempted` : "",
    ].filter(Boolean).join(", "));
  };
  return {node, show};
}

// -- waiting asks

class Reasons {
  constructor(chosen) {
    this.reason = "";
    this._chosen = chosen;
    this._rows = new Rows($("reasons"), ([reason]) => this._row(reason));
  }

  show(waiting, words) {
    this._words = words;
    const listed = Object.entries(waiting).sort((one, other) => other[1] - one[1]);
    this.total = listed.reduce((sum, [, asks]) => sum + asks, 0);
    if (this.reason && !(this.reason in waiting)) listed.push([this.reason, 0]);
    write($("waiting-total"), count(this.total));
    this._rows.show(listed, ([reason]) => reason);
  }

  _row(reason) {
    const [number, said, picture] = [el("span", {className: "number"}), el("span"), bar()];
    const button = el("button", {type: "button"}, number, said, picture.node);
    button.addEventListener("click", () => {
      this.reason = this.reason === reason ? "" : reason;
      this._chosen();
    });
    const show = ([, asks]) => {
      write(number, count(asks));
      write(said, shown(this._words[reason] ?? reason));
      picture.show(this.total, asks);
      button.setAttribute("aria-pressed", String(this.reason === reason));
    };
    return {node: el("li", {}, button), show};
  }
}

// -- troubles

function troubleRow() {
  const [sign, whom, what, times, when] = [el("span"), el("bdi", {className: "id"}), el("bdi"), el("span"), el("span")];
  [times.className, when.className] = ["small", "when"];
  const node = el("li", {}, when, sign, " ", whom, " ", what, " ", times);
  const show = ({trouble, now}) => {
    sign.className = `badge ${trouble.kind}`;
    write(sign, `${SIGNS[trouble.kind]} ${trouble.kind}`);
    write(whom, shown(trouble.whom));
    write(what, shown(inUnits(trouble.what)));
    const last = trouble.such_as ? `${trouble.count > 1 ? "the last was " : ""}${shown(trouble.such_as)}` : "";
    write(times, [trouble.count > 1 ? `${count(trouble.count)} times` : "", last].filter(Boolean).join(", "));
    write(when, `${age(now - trouble.last_ns)} ago`);
  };
  return {node, show};
}

// -- actors

function flowKey(it) { return `${it.from} ${it.to} ${it.message}`; }

class Actors {
  constructor() {
    this._former = null;
    const texts = (it) => [
      it.boxes > 1 ? `${it.role} (${count(it.boxes)})` : it.role, count(it.length), perSecond(it.rate),
      it.rate ? duration(it.wait) : "–", percent(it.busy), duration(it.worst_ns)];
    this._rows = new Rows($("actor-rows"), tableRow(texts, {numbers: [1, 2, 3, 4, 5], names: [0]}));
    this._sorting = new Sorting($("actor-head"), [
      (it) => it.role, (it) => it.length, (it) => it.rate, (it) => it.wait, (it) => it.busy,
      (it) => it.worst_ns], () => this._rewrite());
    this._flowSorting = new Sorting($("flow-head"), [
      (it) => `${it.from} ${it.to}`, (it) => it.message, (it) => it.rate, (it) => it.count], () => this._rewrite());
    const flow = (it) => [`${it.from} → ${it.to}`, it.message, perSecond(it.rate), count(it.count)];
    this._flows = new Rows($("flow-rows"), tableRow(flow, {numbers: [2, 3], names: [0, 1]}));
  }

  // What has happened since the picture before is told by the second.
  show(core, elapsed) {
    const former = this._former ?? core;
    this._former = core;
    const before = new Map(former.actors.map((it) => [it.role, it]));
    const rate = (now, then) => (elapsed > 0 ? Math.max(0, now - then) / elapsed : 0);
    this._listed = core.actors.map((it) => {
      const then = before.get(it.role) ?? it;
      const messages = it.messages - then.messages;
      return {
        ...it, rate: rate(it.messages, then.messages),
        wait: messages > 0 ? (it.waiting_ns - then.waiting_ns) / messages : 0,
        busy: rate(it.busy_ns, then.busy_ns) / SECOND,
      };
    });
    this._listFlows(core, former, rate);
    this._rewrite();
    write($("actor-rest"), [
      core.dead_letters ? `${counted(core.dead_letters, "message")} to an actor that has gone` : "",
      core.callback_errors ? `${counted(core.callback_errors, "error")} in callbacks` : "",
    ].filter(Boolean).join(", "));
  }

  _listFlows(core, former, rate) {
    const before = new Map(former.flows.map((it) => [flowKey(it), it.count]));
    this._listedFlows = core.flows
      .map((it) => ({...it, rate: rate(it.count, before.get(flowKey(it)) ?? it.count)}))
      .sort((one, other) => other.count - one.count || flowKey(one).localeCompare(flowKey(other)));
  }

  _rewrite() {
    if (!this._listed) return;
    this._rows.show(this._sorting.sorted(this._listed), (it) => it.role);
    const flows = this._flowSorting.sorted(this._listedFlows);
    this._flows.show(flows.slice(0, FLOWS_SHOWN), flowKey);
  }
}
