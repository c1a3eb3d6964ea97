"use strict";
// Where in the picture a message is: by its time, or by its order. Both count from 0 to `total`.

// Idle time longer than this part of the run is squeezed to so much of what is left.
const IDLE_PART = 0.03;
const SQUEEZED_PART = 0.012;
const BOX_OF_ORDER = 0.8;

class OrderAxis {
  constructor(runs, width) {
    this.name = "order";
    this.total = Math.max(1, width);
    this.gaps = [];
    this._runs = runs;
  }

  begin(run, message) { return run.column[message]; }
  end(run, message) { return run.column[message] + BOX_OF_ORDER; }

  // When it was put into the mailbox: behind what caused it.
  sent(run, message) {
    const cause = run.cause(message);
    return cause === NONE ? this.begin(run, message) : run.column[cause] + BOX_OF_ORDER;
  }

  moment(run, following) { return following < run.count ? run.column[following] : this.total; }

  label(at) { return `message ${Math.min(this.total, Math.floor(at) + 1)}`; }

  ticks(from, to, count) {
    return steps(from, to, Math.max(1, roundStep((to - from) / count)))
      .map((at) => ({at, label: `${at + 1}`}));
  }
}

class TimeAxis {
  constructor(runs) {
    this.name = "time";
    this._parts = squeezed(busyTimes(runs));
    this.total = this._parts.at(-1).place + this._parts.at(-1).width;
    this.gaps = this._parts
      .filter((part) => part.isIdle)
      .map((part) => ({from: part.place, to: part.place + part.width, label: idleLabel(part)}));
  }

  begin(run, message) { return this._place(run.begin(message)); }
  end(run, message) { return this._place(run.begin(message) + Math.max(0, run.took(message))); }
  sent(run, message) { return this._place(run.begin(message) - Math.max(0, run.waited(message))); }
  moment(run, following, atNs) { return this._place(atNs); }
  label(at) { return seconds(this._time(at)); }

  ticks(from, to, count) {
    const step = roundStep((to - from) / count);
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9))));
    const found = [];
    for (const part of this._parts) {
      if (part.isIdle || part.place > to || part.place + part.width < from) continue;
      const begin = Math.max(part.from, part.from + from - part.place);
      const end = Math.min(part.to, part.from + to - part.place);
      for (const ns of steps(begin, end, step))
        found.push({at: this._place(ns), label: `${(ns / 1e9).toFixed(digits)} s`});
    }
    return found;
  }

  _place(ns) {
    const part = this._parts[lastAtMost(this._parts, ns, (it) => it.from)];
    const isIn = Math.min(Math.max(0, ns - part.from), part.to - part.from);
    return part.place + (part.to > part.from ? (isIn / (part.to - part.from)) * part.width : 0);
  }

  _time(at) {
    const part = this._parts[lastAtMost(this._parts, at, (it) => it.place)];
    const isIn = Math.min(Math.max(0, at - part.place), part.width);
    return part.from + (part.width ? (isIn / part.width) * (part.to - part.from) : 0);
  }
}

function idleLabel(part) {
  const ns = part.to - part.from;
  return ns < 1e8 ? `// ${(ns / 1e6).toFixed(1)} ms //` : `// ${(ns / 1e9).toFixed(1)} s //`;
}

// From when to when anything waited or was handled in any run, in order and without overlaps.
function busyTimes(runs) {
  const spans = runs.flatMap((run) =>
    run.columns.begin_ns.map((begin, message) => [
      begin - Math.max(0, run.waited(message)), begin + Math.max(0, run.took(message)),
    ]));
  spans.sort((one, other) => one[0] - other[0]);
  const busy = [[0, 0]];
  for (const [from, to] of spans) {
    const last = busy.at(-1);
    if (from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  return busy;
}

// The parts of a run, busy and idle; of what is idle the long parts have little width.
function squeezed(busy) {
  const whole = busy.at(-1)[1] - busy[0][0] || 1;
  const isLong = ([, end], [begin]) => begin - end > IDLE_PART * whole;
  const parts = [{from: busy[0][0], to: busy[0][1], isIdle: false}];
  for (let number = 1; number < busy.length; number++) {
    const [before, it] = [busy[number - 1], busy[number]];
    if (isLong(before, it)) {
      parts.push({from: before[1], to: it[0], isIdle: true});
      parts.push({from: it[0], to: it[1], isIdle: false});
    } else {
      parts.at(-1).to = it[1];
    }
  }
  const width = parts.reduce((sum, part) => sum + (part.isIdle ? 0 : part.to - part.from), 0) || 1;
  let place = 0;
  for (const part of parts) {
    part.place = place;
    part.width = part.isIdle ? SQUEEZED_PART * width : part.to - part.from;
    place += part.width;
  }
  if (place === 0) parts.at(-1).width = 1;
  return parts;
}

// The last item whose key is at most this; the first one if none is.
function lastAtMost(items, wanted, key) {
  let [low, high] = [0, items.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (key(items[middle]) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}

// 1, 2 or 5 times a power of ten.
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 5, 10].map((factor) => factor * power).find((it) => it >= step * 0.999);
}

function steps(from, to, step) {
  const found = [];
  for (let number = Math.ceil(from / step); number * step <= to; number++) found.push(number * step);
  return found;
}
