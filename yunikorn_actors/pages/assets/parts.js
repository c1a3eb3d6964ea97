"use strict";
// What the scripts of all pages use. Everything is made of nodes and texts, never of markup: names
// come from outside.

// No message, no time.
const NONE = -1;
const $ = (name) => document.getElementById(name);

function el(tag, properties = {}, ...children) {
  const {attributes = {}, ...rest} = properties;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A name from outside: its direction stays its own, and it does not act on what stands around it.
function id(text) { return el("bdi", {className: "id"}, shown(text)); }

function link(label, act, properties = {}) {
  const button = el("button", {type: "button", className: "link id", ...properties}, shown(label));
  button.addEventListener("click", act);
  return button;
}

function facts(rows) {
  const list = el("dl", {className: "facts"});
  for (const [name, ...values] of rows) list.append(el("dt", {}, name), el("dd", {}, ...values));
  return list;
}

function badge(kind, text) { return el("span", {className: `badge ${kind}`}, text); }

function more(list, rest, item) {
  const button = el("button", {type: "button"}, `${rest.length} more`);
  button.addEventListener("click", () => button.parentNode.replaceWith(...rest.map(item)));
  return el("li", {}, button);
}

function rowsTable(head, rows) {
  const body = el("tbody");
  // Plain texts are times, which are not broken.
  const cellOf = (cell) =>
    el("td", {className: typeof cell === "string" ? "short" : ""}, ...[cell].flat());
  for (const row of rows) body.append(el("tr", {}, ...row.map(cellOf)));
  const names = head.map((name) => el("th", {attributes: {scope: "col"}}, name));
  return el("table", {}, el("thead", {}, el("tr", {}, ...names)), body);
}

// -- texts from outside

// What would act on the text around it is written as an escape, as `trace show` does: control
// characters, line ends, changes of direction.
const ACTING = /(?! )[\p{C}\p{Z}]/gu;

function shown(text) {
  return text.replace(ACTING, (char) => {
    const code = char.codePointAt(0).toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

// -- numbers in words

function seconds(ns) { return `${(ns / 1e9).toFixed(3)} s`; }

function duration(ns) {
  if (ns === NONE) return "–";
  if (ns < 1e6) return `${(ns / 1e3).toFixed(0)} µs`;
  return ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : seconds(ns);
}

// -- pictures

// Sizes a canvas for the screen, and returns what draws on it in pixels of the page.
function canvasOf(canvas, width, height) {
  const scale = globalThis.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Slanted lines over a part of a picture, so far apart.
const HATCH = 5;
function hatch(pen, colour, x, y, width, height) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = x - height; at < x + width; at += HATCH) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.stroke();
  pen.restore();
}

// -- keys

// Each key has what it does in words, and what does it. In a field only Escape is heard.
function answerKeys(table) {
  for (const [keys, [what]] of Object.entries(table))
    $("key-list").append(el("dt", {}, el("kbd", {}, keys)), el("dd", {}, what));
  $("help").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const isField = event.target.matches("input:not([type=radio]):not([type=checkbox]), select");
    const [, act] = table[event.key] ?? [];
    if (!act || (isField && event.key !== "Escape")) return;
    event.preventDefault();
    act();
  });
}

function showKeys() { $("keys").showModal(); }
