"use strict";
// Numbers in words.

const SECOND = 1e9;
const UNITS = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
const IN_BYTES = /memory|storage|bytes|hugepages/;
const SIGNS = {refused: "×", preempted: "↺", timeout: "◷", lost: "■"};

function count(number) { return number.toLocaleString("en"); }

function counted(number, one, many = `${one}s`) { return `${count(number)} ${number === 1 ? one : many}`; }

function rounded(number) {
  return number.toLocaleString("en", {maximumFractionDigits: Math.abs(number) < 100 ? 1 : 0});
}

// An amount in the units of people: cores, bytes, pieces.
function amount(kind, quantity) {
  if (kind === "vcore") return rounded(quantity / 1000);
  if (!IN_BYTES.test(kind)) return count(quantity);
  const [name, size] = UNITS.find(([, least]) => Math.abs(quantity) >= least) ?? ["B", 1];
  return `${rounded(quantity / size)} ${name}`;
}

function amounts(resource) {
  const said = Object.entries(resource ?? {}).filter(([, it]) => it)
    .map(([kind, it]) => `${amount(kind, it)} ${kind}`);
  return said.join(", ") || "nothing";
}

// Amounts in a sentence of the core are in base units: {vcore: 1500, memory: 1073741824}.
const IN_BASE_UNITS = /\{([^{}:]+: -?\d+(?:, [^{}:]+: -?\d+)*)\}/g;
function inUnits(text) {
  return text.replace(IN_BASE_UNITS, (_, listed) => listed.split(", ").map((it) => {
    const [kind, quantity] = it.split(": ");
    return `${kind} ${amount(kind, Number(quantity))}`;
  }).join(", "));
}

function age(ns) {
  const seconds = Math.max(0, Math.floor(ns / SECOND));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function perSecond(rate) { return rate >= 100 ? count(Math.round(rate)) : rounded(rate); }

function percent(part) { return `${Math.round(part * 100)} %`; }

// A sentence that has names from outside in it.
function sentence(text) { return el("bdi", {}, shown(inUnits(text))); }
