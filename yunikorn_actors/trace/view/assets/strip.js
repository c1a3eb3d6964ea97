"use strict";
// The strip above the lanes: the whole run, how full each queue was, what went wrong, and where in it
// the lanes and the cursor are.

const ROW = 18;

const GLYPHS = {
  refused: (pen, x, y) => {
    pen.beginPath();
    pen.moveTo(x - 4, y - 4); pen.lineTo(x + 4, y + 4);
    pen.moveTo(x + 4, y - 4); pen.lineTo(x - 4, y + 4);
    pen.stroke();
  },
  timeout: (pen, x, y) => {
    pen.beginPath();
    pen.arc(x, y, 4.5, 0, 2 * Math.PI);
    pen.moveTo(x, y - 3); pen.lineTo(x, y); pen.lineTo(x + 2.5, y);
    pen.stroke();
  },
  lost: (pen, x, y) => pen.fillRect(x - 4, y - 4, 8, 8),
  only: (pen, x, y) => { diamond(pen, x, y); pen.fill(); },
  changed: (pen, x, y) => { diamond(pen, x, y); pen.stroke(); },
};

function diamond(pen, x, y) {
  pen.beginPath();
  pen.moveTo(x, y - 5); pen.lineTo(x + 5, y); pen.lineTo(x, y + 5); pen.lineTo(x - 5, y);
  pen.closePath();
}

function glyph(pen, kind, colour, x, y) {
  pen.save();
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = 2;
  GLYPHS[kind](pen, x, y);
  pen.restore();
}

class Strip {
  constructor(app) {
    this._app = app;
    this._canvas = document.getElementById("level-canvas");
    this._names = document.getElementById("level-names");
    this._rows = app.runs.flatMap((run) => [
      {run, series: null, name: app.named(run, "refusals ×, timeouts ◷, losses ■")},
      ...run.series.map((series) => ({run, series, name: app.named(run, series.name)})),
    ]);
    for (const row of this._rows) {
      row.output = el("output");
      this._names.append(el("div", {title: shown(row.name)}, id(row.name), row.output));
    }
    this._canvas.addEventListener("pointerdown", (event) => this._point(event));
    this._canvas.addEventListener("pointermove", (event) => event.buttons && this._point(event));
  }

  _point(event) {
    const {left, width} = this._canvas.getBoundingClientRect();
    this._app.moveCursor(((event.clientX - left) / width) * this._app.axis.total);
  }

  // Once for each axis: where each level begins.
  sort() {
    const {axis} = this._app;
    for (const row of this._rows.filter((it) => it.series)) {
      const {points} = row.series;
      row.begins = Float64Array.from(points, ([next, ns]) => axis.moment(row.run, next, ns));
    }
    this._still = null;
  }

  draw() {
    const width = this._canvas.clientWidth;
    const height = this._rows.length * ROW;
    const {axis, colours, cursor} = this._app;
    const x = (at) => (at / axis.total) * width;
    const pen = canvasOf(this._canvas, width, height);
    // What stays is drawn once; the window and the cursor move over it.
    if (this._still?.colours !== colours || this._still.width !== width)
      this._still = {colours, width, picture: this._picture(x, width, height)};
    pen.drawImage(this._still.picture, 0, 0, width, height);
    this._window(pen, x, width, height);
    for (const row of this._rows.filter((it) => it.series)) {
      const [, , permille] = row.series.points[countBelow(row.begins, cursor + 1e-9) - 1] ?? [0, 0, 0];
      row.output.textContent = `${Math.round(permille / 10)} %`;
    }
  }

  _picture(x, width, height) {
    const picture = el("canvas");
    const pen = canvasOf(picture, width, height);
    this._rows.forEach((row, number) => {
      const bottom = (number + 1) * ROW - 1;
      pen.fillStyle = this._app.colours.line;
      pen.fillRect(0, bottom, width, 1);
      if (row.series) this._level(pen, row, x, bottom);
      else this._marks(pen, row.run, x, bottom - ROW / 2);
    });
    idleTimes(this._app, pen, x, 0, width, height);
    return picture;
  }

  _level(pen, row, x, bottom) {
    const {axis, colours} = this._app;
    row.series.points.forEach(([, , permille], number) => {
      const height = (Math.min(1000, permille) / 1000) * (ROW - 4);
      // Whole pixels: between parts of them seams would be seen.
      const left = Math.floor(x(row.begins[number]));
      const wide = Math.max(1, Math.floor(x(row.begins[number + 1] ?? axis.total)) - left);
      pen.clearRect(left, bottom - ROW + 1, wide, ROW - 1);
      pen.fillStyle = colours.level;
      pen.fillRect(left, bottom - height, wide, height);
      // Full is a line on top as well, not another colour alone.
      pen.fillStyle = colours.full;
      if (permille >= 1000) pen.fillRect(left, bottom - height - 2, wide, 3);
    });
  }

  _marks(pen, run, x, middle) {
    const drawn = new Set();
    for (const mark of run.marks) {
      const at = x(this._app.axis.moment(run, mark.following, mark.at_ns));
      const place = `${mark.kind} ${Math.round(at / 6)}`;
      if (!drawn.has(place)) glyph(pen, mark.kind, this._app.colours[mark.kind], at, middle);
      drawn.add(place);
    }
  }

  // What the lanes do not show is veiled.
  _window(pen, x, width, height) {
    const {from, to, cursor, colours} = this._app;
    pen.save();
    pen.globalAlpha = 0.6;
    pen.fillStyle = colours.soft;
    pen.fillRect(0, 0, x(from), height);
    pen.fillRect(x(to), 0, width - x(to), height);
    pen.restore();
    pen.strokeStyle = colours.accent;
    pen.strokeRect(x(from) + 0.5, 0.5, Math.max(2, x(to) - x(from) - 1), height - 1);
    pen.fillStyle = colours.text;
    pen.fillRect(Math.round(x(cursor)), 0, 1.5, height);
  }
}

// The squeezed idle times, each with how long it was, as far as there is room for the words.
function idleTimes({axis, colours}, pen, x, top, width, bottom) {
  let free = 0;
  pen.save();
  pen.font = "11px system-ui, sans-serif";
  for (const gap of axis.gaps) {
    const [from, to] = [x(gap.from), x(gap.to)];
    if (to < 0 || from > width) continue;
    // Zoomed in, a gap is millions of pixels wide: what is seen of it is hatched, as if it all were.
    const seen = from < 0 ? from % HATCH : from;
    hatch(pen, colours.line, seen, top, Math.min(to, width) - seen, bottom - top);
    const wide = pen.measureText(gap.label).width + 6;
    const left = Math.max(free, Math.min(width - wide, (from + to - wide) / 2));
    if (left + wide > width) continue;
    pen.fillStyle = colours.panel;
    pen.fillRect(left, top + 2, wide, 14);
    pen.fillStyle = colours.faint;
    pen.fillText(gap.label, left + 3, top + 13);
    free = left + wide;
  }
  pen.restore();
}
