"use strict";
// The last hours, drawn: what the read side has sampled. A gap is a time of which nothing is known.

const COURSES = [
  ["asks", "asks that wait", (it) => count(it)],
  ["oldest_ns", "wait of the oldest ask", (it) => age(it)],
  ["messages", "messages in mailboxes", (it) => count(it)],
  ["wait_ns", "wait of a message", (it) => duration(it)],
  ["applications", "applications that run", (it) => count(it)],
  ["allocations", "allocations", (it) => count(it)],
];
const COURSE_HEIGHT = 56;
const GAP = 200 * SECOND;
const LEAST = 60 * SECOND;

class CoursePanel {
  constructor(changed) {
    this.hours = 1;
    this._charts = new Map(COURSES.map(([name, title, word]) => [name, courseChart(title, word)]));
    $("course-charts").append(...[...this._charts.values()].map((it) => it.node));
    for (const button of $("course-hours").querySelectorAll("button"))
      button.addEventListener("click", () => this._choose(Number(button.value), changed));
    this._mark();
  }

  _choose(hours, changed) {
    this.hours = hours;
    this._mark();
    changed();
  }

  _mark() {
    for (const button of $("course-hours").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(Number(button.value) === this.hours));
  }

  show(told) {
    this._told = told;
    this.draw();
  }

  draw() {
    if (!this._told) return;
    const {end_ns: end} = this._told;
    // A service that started a minute ago has a minute to show, and that fills the picture.
    const firsts = COURSES.map(([name]) => this._told[name][0]?.[0] ?? end);
    const begin = Math.max(this._told.begin_ns, Math.min(...firsts, end - LEAST));
    for (const [name, chart] of this._charts) chart.show(this._told[name], begin, end);
  }
}

function courseChart(title, word) {
  const [now, most] = [el("span", {className: "value"}), el("span", {className: "small"})];
  const canvas = el("canvas", {attributes: {role: "img"}});
  const [from, to] = [el("span"), el("span")];
  const node = el("li", {}, el("div", {className: "name"}, title), el("div", {}, now, " ", most), canvas,
    el("div", {className: "axis small"}, from, to));
  let [points, begin, end] = [[], 0, 1];
  const at = (event) => {
    const ns = begin + (event.offsetX / canvas.clientWidth) * (end - begin);
    const near = points.reduce((best, it) =>
      best === null || Math.abs(it[0] - ns) < Math.abs(best[0] - ns) ? it : best, null);
    if (near) write(most, `${word(near[1])}, ${age(end - near[0])} ago`);
  };
  canvas.addEventListener("pointermove", at);
  canvas.addEventListener("pointerleave", () => show(points, begin, end));
  const show = (...told) => {
    [points, begin, end] = told;
    const highest = Math.max(0, ...points.map(([, value]) => value));
    write(now, points.length ? word(points.at(-1)[1]) : "–");
    write(most, points.length > 1 ? `at most ${word(highest)}` : "");
    write(from, points.length ? `${age(end - begin)} ago` : "nothing is known yet");
    write(to, points.length ? "now" : "");
    canvas.setAttribute("aria-label", points.length
      ? `${title}, over ${age(end - begin)}: ${word(points.at(-1)[1])} now, at most ${word(highest)}` : `${title}: nothing yet`);
    drawCourse(canvas, points, begin, end, highest);
  };
  return {node, show};
}

function drawCourse(canvas, points, begin, end, highest) {
  const [width, height] = [canvas.clientWidth || 200, COURSE_HEIGHT];
  const pen = canvasOf(canvas, width, height);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  pen.strokeStyle = colour("line");
  pen.lineWidth = 1;
  for (const y of [0.5, height - 0.5]) {
    pen.beginPath();
    pen.moveTo(0, y);
    pen.lineTo(width, y);
    pen.stroke();
  }
  if (!points.length) return;
  const x = (ns) => ((ns - begin) / (end - begin)) * width;
  const y = (value) => height - 1 - (highest > 0 ? value / highest : 0) * (height - 5);
  const gap = Math.max((end - begin) / 12, GAP);
  const runs = [[]];
  points.forEach((point, place) => {
    if (place && point[0] - points[place - 1][0] > gap) runs.push([]);
    runs.at(-1).push(point);
  });
  for (const run of runs) {
    pen.beginPath();
    pen.moveTo(x(run[0][0]), height - 1);
    for (const [ns, value] of run) pen.lineTo(x(ns), y(value));
    pen.lineTo(x(run.at(-1)[0]), height - 1);
    pen.globalAlpha = 0.25;
    pen.fillStyle = colour("used");
    pen.fill();
    pen.globalAlpha = 1;
    pen.beginPath();
    for (const [ns, value] of run) pen.lineTo(x(ns), y(value));
    pen.strokeStyle = colour("used");
    pen.lineWidth = 1.5;
    pen.stroke();
    if (run.length === 1) {
      pen.fillStyle = colour("used");
      pen.fillRect(x(run[0][0]) - 1.5, y(run[0][1]) - 1.5, 3, 3);
    }
  }
}
