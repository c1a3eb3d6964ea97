"use strict";
// The lanes: one for each mailbox. Handling is a box, waiting a thin line before it. Where there are
// too many boxes for the pixels, a strip tells how many there are.

const AXIS = 22;
const LANE_MIN = 40;
const LANE_MAX = 80;
const ARROWS_MAX = 300;
const BIN = 2;
const NEAR = 6;
// A lane with less room than this for each of its messages shows how many there are.
const ROOM_MIN = 2.5;

const PASSES = 1;
const IN_CHAIN = 2;
const SELECTED = 4;
const SPEAKS = 8;

// What a message is for has a colour; the words beside the boxes say it as well.
const ROLES = ["request", "decision", "fact", "callback", "timer"];
const LINE = 13;
const LETTER = 6.2;
// Beside a box fewer letters than these tell nothing.
const LETTERS_MIN = 8;

class Lanes {
  constructor(app) {
    this._app = app;
    this._canvas = document.getElementById("lane-canvas");
    this._names = document.getElementById("lane-names");
    this.flags = app.runs.map((run) => new Uint8Array(run.count));
    this._heads = app.runs.length > 1 ? app.runs.map((run) => this._name(run.name, "run")) : [];
    this._rows = app.runs.flatMap((run) =>
      run.lanes.map((name, lane) => ({run, lane, label: this._name(name, "id")})));
    this._listen();
  }

  _name(name, kind) {
    const label = el("div", {className: kind, title: shown(name)}, shown(name));
    this._names.append(label);
    return label;
  }

  // Lanes share the height that there is, within limits.
  _layOut() {
    const room = this._canvas.parentElement.clientHeight - AXIS * (1 + this._heads.length);
    this._lane = Math.max(LANE_MIN, Math.min(LANE_MAX, Math.floor(room / this._rows.length)));
    this._tall = this._lane / 2;
    let y = AXIS;
    this._top = this._app.runs.map((run) => {
      const head = this._heads[run.side];
      if (head) head.style.top = `${y + 2}px`;
      const top = y + (head ? AXIS : 0);
      y = top + run.lanes.length * this._lane;
      return top;
    });
    for (const row of this._rows) {
      row.y = this._top[row.run.side] + row.lane * this._lane;
      row.label.style.top = `${row.y + this._lane / 2 - 9}px`;
    }
    this._height = y;
    this._names.style.height = `${y}px`;
  }

  // Once for each axis: the messages of each lane, from left to right.
  sort() {
    const {axis} = this._app;
    for (const row of this._rows) row.messages = [];
    for (const run of this._app.runs) {
      const rows = this._rows.filter((row) => row.run === run);
      for (let message = 0; message < run.count; message++)
        rows[run.lane(message)].messages.push(message);
    }
    for (const row of this._rows) {
      const begin = new Map(row.messages.map((it) => [it, axis.begin(row.run, it)]));
      row.messages.sort((one, other) => begin.get(one) - begin.get(other) || one - other);
      row.begins = Float64Array.from(row.messages, (it) => begin.get(it));
    }
  }

  // -- drawing

  draw() {
    const app = this._app;
    this._layOut();
    this._width = this._canvas.clientWidth;
    const pen = this._pen = canvasOf(this._canvas, this._width, this._height);
    this._ticks();
    idleTimes(app, pen, (at) => this._x(at), AXIS, this._width, this._height);
    const boxed = [];
    for (const row of this._rows) {
      pen.fillStyle = app.colours.line;
      pen.fillRect(0, row.y + this._lane - 1, this._width, 1);
      const seen = this._seen(row);
      if (seen.length > this._width / ROOM_MIN) this._heat(row, seen);
      else boxed.push({row, seen});
    }
    for (const {row, seen} of boxed) {
      const sent = seen.map((message) => this._x(app.axis.sent(row.run, message)));
      const begins = seen.map((message) => this._x(app.axis.begin(row.run, message)));
      seen.forEach((message, place) => {
        // The line of the next one, which tells how long it waited, would cross the words.
        this._box(row, message, Math.min(begins[place + 1], sent[place + 1]) || this._width);
      });
    }
    const count = boxed.reduce((sum, {seen}) => sum + seen.length, 0);
    this._arrows(count > ARROWS_MAX ? [] : boxed);
    this._lines();
  }

  _x(at) {
    const {from, to} = this._app;
    return ((at - from) / (to - from)) * this._width;
  }

  _middle(run, message) { return this._top[run.side] + (run.lane(message) + 0.5) * this._lane; }

  // The messages of a lane that are in the window; one that began before it may reach into it.
  _seen({messages, begins}) {
    const first = Math.max(0, countBelow(begins, this._app.from) - 1);
    return messages.slice(first, countBelow(begins, this._app.to));
  }

  _ticks() {
    const {axis, from, to, colours} = this._app;
    const pen = this._pen;
    pen.font = "11px system-ui, sans-serif";
    for (const {at, label} of axis.ticks(from, to, Math.max(2, this._width / 110))) {
      pen.fillStyle = colours.soft;
      pen.fillRect(this._x(at), AXIS, 1, this._height);
      pen.fillStyle = colours.faint;
      pen.fillText(label, this._x(at) + 3, 14);
    }
  }

  _heat(row, seen) {
    const {axis, colours} = this._app;
    const flags = this.flags[row.run.side];
    const bins = Math.ceil(this._width / BIN);
    const all = new Uint32Array(bins);
    const passing = ROLES.map(() => new Uint32Array(bins));
    const notable = new Map();
    for (const message of seen) {
      const at = this._x(axis.begin(row.run, message));
      const bin = Math.floor(at / BIN);
      if (bin < 0 || bin >= bins) continue;
      all[bin]++;
      if (flags[message] & PASSES) passing[ROLES.indexOf(row.run.role(message))][bin]++;
      if (!this._isNotable(row.run, message)) continue;
      const place = Math.round(at / 8);
      if (!(flags[notable.get(place)] & (IN_CHAIN | SELECTED))) notable.set(place, message);
    }
    const most = Math.log1p(all.reduce((one, other) => Math.max(one, other), 0));
    const tall = (count) => (count ? 4 + (this._tall - 4) * (Math.log1p(count) / most) : 0);
    const bottom = row.y + (this._lane + this._tall) / 2;
    for (let bin = 0; bin < bins; bin++) {
      this._pen.fillStyle = colours.line;
      this._pen.fillRect(bin * BIN, bottom - tall(all[bin]), BIN, tall(all[bin]));
      let top = bottom;
      const count = passing.reduce((sum, role) => sum + role[bin], 0);
      for (const [role, name] of ROLES.entries()) {
        if (!passing[role][bin]) continue;
        const part = tall(count) * (passing[role][bin] / count);
        top -= part;
        this._pen.fillStyle = colours[`${name}Edge`];
        this._pen.fillRect(bin * BIN, top, BIN, part);
      }
    }
    for (const message of notable.values()) this._signs(row, message, 0);
  }

  _isNotable(run, message) {
    const isMarked = this.flags[run.side][message] & (IN_CHAIN | SELECTED | SPEAKS);
    return isMarked || run.difference[message] || run.refused.has(message);
  }

  // What is free to the right of it, up to the next one, has room for its words.
  _box(row, message, next) {
    const {axis, colours} = this._app;
    const pen = this._pen;
    const flags = this.flags[row.run.side][message];
    const left = this._x(axis.begin(row.run, message));
    const wide = Math.max(2, this._x(axis.end(row.run, message)) - left);
    const top = row.y + (this._lane - this._tall) / 2;
    pen.globalAlpha = flags & PASSES ? 1 : 0.25;
    const sent = this._x(axis.sent(row.run, message));
    pen.fillStyle = colours.wait;
    if (sent < left) pen.fillRect(sent, top + this._tall / 2, left - sent, 1);
    const role = row.run.role(message);
    const [fill, edge] = flags & IN_CHAIN
      ? [colours.chain, colours.chainEdge] : [colours[role], colours[`${role}Edge`]];
    pen.fillStyle = wide > 4 ? fill : edge;
    pen.fillRect(left, top, wide, this._tall);
    if (wide > 4) {
      pen.strokeStyle = row.run.difference[message] ? colours.different : edge;
      pen.strokeRect(left + 0.5, top + 0.5, wide - 1, this._tall - 1);
    }
    if (wide > 28) this._words(row.run, message, {x: Math.max(0, left) + 4, top, right: left + wide, least: 3, colour: colours.boxText});
    else this._words(row.run, message, {x: left + wide + 4, top, right: next, least: LETTERS_MIN, colour: colours.text});
    pen.globalAlpha = 1;
    if (this._isNotable(row.run, message)) this._signs(row, message, wide);
  }

  // Its type, and what it says: on a line of its own where a lane is tall enough.
  _words(run, message, {x, top, right, least, colour}) {
    const fits = Math.floor((Math.min(right, this._width) - x - 2) / LETTER);
    if (fits < least) return;
    const pen = this._pen;
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colour;
    const [kind, says] = [run.kind(message), shown(run.says(message))];
    const lines = this._tall >= 2 * LINE + 2 ? [kind, says] : [`${kind} ${says}`];
    const first = top + this._tall / 2 + 4 - (LINE / 2) * (lines.length - 1);
    for (const [number, line] of lines.entries())
      pen.fillText(line.length > fits ? `${line.slice(0, fits - 1)}…` : line, x, first + number * LINE);
  }

  // What is told of a message by more than its colour: each sign has its own place and shape.
  _signs(row, message, wide) {
    const {axis, colours} = this._app;
    const pen = this._pen;
    const flags = this.flags[row.run.side][message];
    const left = this._x(axis.begin(row.run, message));
    const top = row.y + (this._lane - this._tall) / 2;
    const difference = ["", "changed", "only"][row.run.difference[message]];
    if (difference) glyph(pen, difference, colours.different, left + wide / 2, top - 4);
    if (row.run.refused.has(message))
      glyph(pen, "refused", colours.refused, left + wide / 2, top + this._tall / 2);
    if (flags & IN_CHAIN) {
      pen.fillStyle = colours.chainEdge;
      pen.fillRect(left, top + this._tall + 2, Math.max(3, wide), 3);
    }
    if (flags & SPEAKS) {
      pen.fillStyle = colours.accent;
      pen.fillRect(left, top - 5, Math.max(3, wide), 3);
    }
    if (flags & SELECTED) {
      pen.strokeStyle = colours.selected;
      pen.lineWidth = 3;
      pen.strokeRect(left - 1.5, top - 1.5, Math.max(5, wide + 3), this._tall + 3);
      pen.lineWidth = 1;
    }
  }

  _arrows(boxed) {
    const {colours} = this._app;
    for (const {row, seen} of boxed)
      for (const message of seen) this._arrow(row.run, message, colours.wait, 1);
    for (const {run, message} of this._app.chain) this._arrow(run, message, colours.chainEdge, 2);
  }

  _arrow(run, message, colour, thick) {
    const {axis} = this._app;
    const cause = run.cause(message);
    if (cause === NONE) return;
    const [x, y] = [this._x(axis.begin(run, message)), this._middle(run, message)];
    const [fromX, fromY] = [this._x(axis.sent(run, message)), this._middle(run, cause)];
    const turn = y === fromY ? 0 : Math.sign(y - fromY) * (this._tall / 2);
    const angle = Math.atan2(y - turn - fromY - turn, x - fromX);
    const pen = this._pen;
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = thick;
    pen.beginPath();
    pen.moveTo(fromX, fromY + turn);
    pen.lineTo(x, y - turn);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x, y - turn);
    for (const side of [-0.4, 0.4])
      pen.lineTo(x - 8 * Math.cos(angle + side), y - turn - 8 * Math.sin(angle + side));
    pen.fill();
    pen.lineWidth = 1;
  }

  _lines() {
    const {cursor, divergence, colours} = this._app;
    const pen = this._pen;
    pen.fillStyle = colours.text;
    pen.fillRect(this._x(cursor), 0, 1, this._height);
    if (divergence === null) return;
    const x = this._x(divergence);
    pen.save();
    pen.strokeStyle = pen.fillStyle = colours.different;
    pen.setLineDash([6, 4]);
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x, AXIS);
    pen.lineTo(x, this._height);
    pen.stroke();
    pen.font = "bold 11px system-ui, sans-serif";
    pen.fillText("first difference", x + 4, AXIS + 12);
    pen.restore();
  }

  // -- pointing

  _listen() {
    const app = this._app;
    const canvas = this._canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = {x: event.clientX, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag === null) return this._hover(event);
      const by = event.clientX - drag.x;
      if (!drag.moved && Math.abs(by) < 4) return;
      drag = {x: event.clientX, moved: true};
      app.pan((-by / this._width) * (app.to - app.from));
    });
    canvas.addEventListener("pointerup", (event) => {
      const isClick = drag !== null && !drag.moved;
      drag = null;
      if (isClick) this._click(event);
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("wheel", (event) => this._wheel(event), {passive: false});
  }

  _wheel(event) {
    const app = this._app;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      app.zoom(Math.exp(event.deltaY / 300), this._place(event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      app.pan(((event.deltaX || event.deltaY) / this._width) * (app.to - app.from));
    }
  }

  _place(event) {
    const {left} = this._canvas.getBoundingClientRect();
    return this._app.from + ((event.clientX - left) / this._width) * (this._app.to - this._app.from);
  }

  _click(event) {
    const found = this._under(event);
    if (found) this._app.selectMessage(found.run, found.message);
    else this._app.moveCursor(this._place(event));
  }

  _hover(event) {
    const found = this._under(event);
    const text = found ? messageLine(found.run, found.message) : "";
    document.getElementById("hover").textContent = text;
  }

  // The message under the pointer, or the nearest one of its lane; of those at one place one that
  // passes the filters.
  _under(event) {
    const {top} = this._canvas.getBoundingClientRect();
    const y = event.clientY - top;
    const row = this._rows.find((it) => y >= it.y && y < it.y + this._lane);
    if (!row || !row.messages.length) return null;
    const {axis} = this._app;
    const x = this._x(this._place(event));
    const away = (message) => {
      const [left, right] = [axis.begin, axis.end].map((of) => this._x(of.call(axis, row.run, message)));
      return Math.max(0, left - x, x - Math.max(right, left + 2));
    };
    const next = countBelow(row.begins, this._place(event));
    const near = row.messages.slice(Math.max(0, next - 20), next + 20)
      .filter((message) => away(message) <= NEAR);
    const passes = (message) => this.flags[row.run.side][message] & PASSES;
    near.sort((one, other) => passes(other) - passes(one) || away(one) - away(other));
    return near.length ? {run: row.run, message: near[0]} : null;
  }
}

// How many of these ascending numbers are below a limit.
function countBelow(numbers, limit) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
