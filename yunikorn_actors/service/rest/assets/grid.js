"use strict";
// The nodes: one cell for each. It fills from below, darker the fuller (brighter in the dark), so that
// no colour has to be told from another; a sign says that a node takes no work.

const FULL = 10;
const FIRST_SIGN = "0".charCodeAt(0);
const [OPEN, KEPT, CLOSED] = [0, 1, 2];
const STANDINGS = ["takes work", "kept for an ask", "drained or not ready"];
const FOUND_MAX = 50;
// The largest that keep the picture this low; below it stands what is read as often.
const CELLS = [22, 14, 9, 6, 5, 4];
const HEIGHT_MAX = 420;

class Grid {
  constructor(open) {
    this._open = open;
    this._canvas = $("grid");
    this._signs = "";
    this._names = {version: "", names: []};
    this._cursor = NONE;
    this._isPointed = false;
    this._listen();
    this._legend();
  }

  // -- what it shows

  show({version, signs, left_out}) {
    this._signs = signs;
    this.version = version;
    this._cursor = Math.min(this._cursor, signs.length - 1);
    const closed = this._counts().closed;
    const rest = left_out ? `, and ${count(left_out)} that are not drawn` : "";
    $("node-total").textContent = count(signs.length) + rest;
    this._canvas.setAttribute("aria-label", `${counted(signs.length, "node")}, ${count(closed)} of them ` +
      "drained or not ready. The table below tells how many are how full. Arrow keys go from node to node.");
    this.draw();
    this._table();
    if (this._cursor !== NONE) this._tell(false);
  }

  // Names come apart from the picture, and belong to one version of the list.
  name(list) {
    this._names = list;
    this.find($("node-text").value);
  }

  get hasNames() { return this._names.version === this.version; }

  _nameOf(node) { return this.hasNames ? this._names.names[node] : `node ${node + 1} of the list`; }

  _level(node) { return (this._signs.charCodeAt(node) - FIRST_SIGN) % (FULL + 1); }
  _standing(node) { return Math.floor((this._signs.charCodeAt(node) - FIRST_SIGN) / (FULL + 1)); }

  _counts() {
    const levels = new Array(FULL + 1).fill(0);
    let closed = 0;
    for (let node = 0; node < this._signs.length; node++) {
      if (this._standing(node) === CLOSED) closed++;
      else levels[this._level(node)]++;
    }
    return {levels, closed};
  }

  // -- drawing

  draw() {
    const width = this._canvas.clientWidth || 300;
    const columns = (size) => Math.max(1, Math.floor(width / size));
    const height = (size) => Math.max(1, Math.ceil(this._signs.length / columns(size))) * size;
    this._cell = CELLS.find((size) => height(size) <= HEIGHT_MAX) ?? CELLS.at(-1);
    this._columns = columns(this._cell);
    const pen = canvasOf(this._canvas, width, height(this._cell));
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this._colours = {
      empty: colour("ramp-empty"), line: colour("line"), text: colour("text"), kept: colour("kept"),
      closed: colour("refused"), panel: colour("panel"), accent: colour("accent"),
      levels: ramp(colour("ramp-empty"), colour("ramp-full")),
    };
    for (let node = 0; node < this._signs.length; node++)
      this._draw(pen, node % this._columns, Math.floor(node / this._columns), node);
    if (this._cursor !== NONE && (document.activeElement === this._canvas || this._isPointed)) {
      const [x, y] = [this._cursor % this._columns, Math.floor(this._cursor / this._columns)];
      pen.strokeStyle = this._colours.text;
      pen.lineWidth = 2;
      pen.strokeRect(x * this._cell, y * this._cell, this._cell, this._cell);
    }
  }

  _draw(pen, column, row, node) {
    const gap = this._cell > 8 ? 2 : 1;
    const [x, y, size] = [column * this._cell + gap / 2, row * this._cell + gap / 2, this._cell - gap];
    cell(pen, this._colours, x, y, size, this._level(node), this._standing(node));
  }

  _legend() {
    const nodes = [[0, OPEN, "empty"], [5, OPEN, "half full"], [FULL, OPEN, "full"],
      [5, KEPT, STANDINGS[KEPT]], [5, CLOSED, STANDINGS[CLOSED]]];
    this._signsOfLegend = nodes.map(([level, standing, label]) => {
      const canvas = el("canvas", {attributes: {"aria-hidden": "true"}});
      $("node-legend").append(canvas, label);
      return {canvas, level, standing};
    });
  }

  drawLegend() {
    for (const {canvas, level, standing} of this._signsOfLegend) {
      canvas.style.width = "14px";
      cell(canvasOf(canvas, 14, 14), this._colours, 0, 0, 14, level, standing);
    }
  }

  _table() {
    const {levels, closed} = this._counts();
    const rows = levels.map((nodes, level) => [
      level === 0 ? "empty" : level === FULL ? "full" : `to ${level * 10 + 9} %`, count(nodes)]);
    rows.push([STANDINGS[CLOSED], count(closed)]);
    $("node-table").replaceChildren(...rowsTable(["how full", "nodes"], rows).childNodes);
  }

  // -- who looks closer

  _listen() {
    const canvas = this._canvas;
    canvas.addEventListener("keydown", (event) => this._key(event));
    canvas.addEventListener("focus", () => this._move(Math.max(0, this._cursor), false));
    canvas.addEventListener("blur", () => this.draw());
    canvas.addEventListener("pointermove", (event) => this._point(event));
    canvas.addEventListener("pointerleave", () => { this._isPointed = false; this.draw(); });
    canvas.addEventListener("click", () => this._choose());
    $("node-text").addEventListener("input", () => this.find($("node-text").value));
  }

  _key(event) {
    const by = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this._columns, ArrowDown: this._columns,
      Home: -this._signs.length, End: this._signs.length,
    }[event.key];
    if (by !== undefined) this._move(Math.max(0, Math.min(this._signs.length - 1, this._cursor + by)), true);
    else if (event.key === "Enter") this._choose();
    else return;
    event.preventDefault();
  }

  _point(event) {
    const {left, top} = this._canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - left) / this._cell);
    const node = Math.floor((event.clientY - top) / this._cell) * this._columns + column;
    this._isPointed = true;
    if (column < this._columns && node >= 0 && node < this._signs.length && node !== this._cursor)
      this._move(node, false);
  }

  _move(node, isSaid) {
    if (!this._signs.length) return;
    this._cursor = node;
    this.draw();
    this._tell(isSaid);
  }

  _tell(isSaid) {
    const node = this._cursor;
    const level = this._level(node);
    const full = level === 0 ? "empty" : level === FULL ? "full" : `${level * 10} to ${level * 10 + 9} % used`;
    const text = shown(`${this._nameOf(node)}: ${full}, ${STANDINGS[this._standing(node)]}`);
    $("node-under").textContent = text;
    if (isSaid) $("announced").textContent = text;
  }

  _choose() {
    if (this._cursor !== NONE && this.hasNames) this._open(this._names.names[this._cursor]);
  }

  find(text) {
    const words = text.toLowerCase();
    const found = words && this.hasNames
      ? this._names.names.filter((name) => name.toLowerCase().includes(words)) : [];
    const nodes = found.slice(0, FOUND_MAX).map((name) => el("li", {}, link(name, () => this._open(name))));
    const rest = found.length - nodes.length;
    if (rest > 0) nodes.push(el("li", {className: "faint"}, `${count(rest)} more`));
    if (words && !found.length) nodes.push(el("li", {className: "faint"}, "no node is named so"));
    $("node-found").replaceChildren(...nodes);
  }
}

function cell(pen, colours, x, y, size, level, standing) {
  pen.fillStyle = colours.empty;
  pen.fillRect(x, y, size, size);
  const tall = Math.round((size * level) / FULL);
  pen.fillStyle = colours.levels[level];
  pen.fillRect(x, y + size - tall, size, tall);
  if (standing === OPEN) return;
  pen.strokeStyle = standing === CLOSED ? colours.closed : colours.kept;
  pen.lineWidth = size > 10 ? 2 : 1;
  pen.beginPath();
  if (standing === CLOSED) {
    pen.moveTo(x, y); pen.lineTo(x + size, y + size);
    pen.moveTo(x + size, y); pen.lineTo(x, y + size);
  } else {
    pen.rect(x + 1, y + 1, size - 2, size - 2);
  }
  pen.stroke();
}

// From the colour of what is empty to that of what is full.
function ramp(from, to) {
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [first, last] = [parts(from), parts(to)];
  return Array.from({length: FULL + 1}, (_, level) => {
    const share = 0.35 + 0.65 * (level / FULL);
    return `rgb(${first.map((it, n) => Math.round(it + (last[n] - it) * share)).join(" ")})`;
  });
}
