"use strict";
// What is written beside the lanes. All of it is made of nodes and texts, never of markup: names come
// from outside.

const LISTED_MAX = 100;
const OBJECTS_MAX = 200;
const ROWS = 100;
const PAYLOAD_LINES = 300;

function messageLine(run, message) {
  return shown(`${run.place(message)}  ${run.kind(message)}  ${run.says(message)}`);
}

function messageLink(app, run, message) {
  return link(`${run.place(message)} ${run.kind(message)}`, () => app.selectMessage(run, message));
}

// -- a message

const DIFFERENCES = ["", "◇ happened in both, and is different", "◆ happened only in this run"];
const SIGNS = {refused: "×", timeout: "◷", lost: "■"};

function messagePanel(app, run, message, stage) {
  const nodes = [
    el("h2", {}, id(run.place(message)), " ", run.kind(message)),
    el("p", {}, el("span", {className: `role ${run.role(message)}`}, run.role(message))),
    ...run.marksOf(message).map((mark) =>
      el("p", {}, badge(mark.kind, `${SIGNS[mark.kind]} ${mark.kind}`), id(mark.text))),
  ];
  if (run.difference[message])
    nodes.push(el("p", {}, badge("different", DIFFERENCES[run.difference[message]])));
  nodes.push(facts([...messageFacts(app, run, message)]));
  nodes.push(...chainLists(app, run, message, stage), ...payloadNodes(app, run, message));
  return nodes;
}

function* messageFacts(app, run, message) {
  if (app.runs.length > 1) yield ["run", id(run.name)];
  yield ["record", String(run.columns.record[message])];
  yield ["time", `${seconds(run.begin(message))} since the start`];
  const stimulus = run.stimulus(message);
  yield ["stimulus", link(stimulus, () => app.filter({stimulus}))];
  const cause = run.cause(message);
  yield ["from", cause === NONE ? id(run.origin(message)) : messageLink(app, run, cause)];
  if (run.waited(message) !== NONE) yield ["waited", duration(run.waited(message))];
  if (run.took(message) !== NONE) yield ["took", duration(run.took(message))];
  if (run.columns.joined[message]) yield ["handled", "together with the one before it"];
  const partner = run.partner[message];
  if (partner !== NONE) {
    const other = app.runs[1 - run.side];
    yield ["other run", messageLink(app, other, partner)];
  }
  yield ["says", id(run.says(message))];
}

function chainLists(app, run, message, stage) {
  const led = run.led(message, stage).map((it, depth) => ({message: it, depth}));
  const came = run.came(message, stage);
  return [
    ...itemNodes(app, run, message, stage),
    el("h3", {}, `What led to it (${led.length})`),
    chainList(app, run, led),
    el("h3", {}, `What came of it (${came.length})`),
    chainList(app, run, came),
  ];
}

// By which of its items the message is followed.
function itemNodes(app, run, message, stage) {
  const stages = run.stages(message);
  if (stages.length < 2) return [];
  const list = el("ul");
  const followed = run.item(stage);
  const item = (it) => {
    const name = run.item(it);
    return el("li", {}, name === followed ? el("strong", {}, id(name))
      : link(name, () => app.selectMessage(run, message, it)));
  };
  list.append(...stages.slice(0, LISTED_MAX).map(item));
  if (stages.length > LISTED_MAX) list.append(more(list, stages.slice(LISTED_MAX), item));
  return [el("h3", {}, `Its items (${stages.length}): one is followed`), list];
}

function chainList(app, run, links) {
  const list = el("ol");
  const item = ({message, depth}) => {
    const line = el("li", {}, messageLink(app, run, message), " ", id(run.says(message)));
    line.style.paddingLeft = `${Math.min(depth, 12) * 10}px`;
    return line;
  };
  list.append(...links.slice(0, LISTED_MAX).map(item));
  if (links.length > LISTED_MAX) list.append(more(list, links.slice(LISTED_MAX), item));
  return list;
}

// -- a payload

function payloadNodes(app, run, message) {
  const pre = el("pre");
  const lines = [...jsonLines(run.payload(message), "", "", "")];
  const write = (some) => {
    for (const parts of some) pre.append(...parts.map((part) => written(app, run, message, part)), "\n");
  };
  write(lines.slice(0, PAYLOAD_LINES));
  const nodes = [el("h3", {}, "Payload"), pre];
  if (lines.length > PAYLOAD_LINES) {
    const rest = el("button", {type: "button"}, `${lines.length - PAYLOAD_LINES} more lines`);
    rest.addEventListener("click", () => { write(lines.slice(PAYLOAD_LINES)); rest.remove(); });
    nodes.push(rest);
  }
  return nodes;
}

// Lines of parts: a text is a part by itself, as `{text}`, so that it can become a link.
function* jsonLines(value, indent, before, after) {
  if (typeof value === "string") {
    yield [indent, ...nameOf(before), {text: value}, after];
    return;
  }
  if (value === null || typeof value !== "object" || !Object.keys(value).length) {
    yield [indent, ...nameOf(before), JSON.stringify(value) + after];
    return;
  }
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  yield [indent, ...nameOf(before), open];
  const entries = Object.entries(value);
  for (const [number, [name, item]] of entries.entries()) {
    const comma = number < entries.length - 1 ? "," : "";
    yield* jsonLines(item, `${indent}  `, Array.isArray(value) ? "" : name, comma);
  }
  yield [indent, close + after];
}

function nameOf(name) { return name === "" ? [] : [{text: name}, ": "]; }

function written(app, run, message, part) {
  if (typeof part === "string") return part;
  const object = run.named(part.text, message);
  const quoted = shown(JSON.stringify(part.text));
  return object ? link(quoted, () => app.selectObject(run, object)) : el("bdi", {}, quoted);
}

// -- an object

function objectPanel(app, run, object) {
  const only = el("button", {type: "button"}, "Only what speaks of it");
  only.addEventListener("click", () => app.filter({object}));
  const nodes = [
    el("h2", {}, `${object.kind} `, id(object.name)),
    facts([
      ...(app.runs.length > 1 ? [["run", id(run.name)]] : []),
      ["messages", `${run.spoken(object).size} speak of it; they are marked ▔`],
      ...(object.names.length > 1 ? [["known as", ...object.names.flatMap((it) => [id(it), " "])]] : []),
    ]),
    el("p", {}, only),
  ];
  if (object.kind === "ask") nodes.push(el("h3", {}, "Why it waited"), ...whyNodes(app, run, object));
  nodes.push(el("h3", {}, "Story"), storyTable(app, run, object));
  return nodes;
}

function whyNodes(app, run, object) {
  if (run.problem) return [el("p", {className: "faint"}, id(run.problem))];
  if (object.why === null) {
    const how = "It was not worked out. Export with --why all, or with --about and its key.";
    return [el("p", {className: "faint"}, how)];
  }
  const [from, to] = run.has_times ? ["from_ns", "to_ns"] : ["from_record", "to_record"];
  const when = (value) => (value === null ? "" : run.has_times ? seconds(value) : `record ${value}`);
  const rows = object.why.map((wait) => [
    when(wait[from]), when(wait[to]),
    [id(wait.text), ...(wait.held_by.length ? [el("br"), "held by ", id(wait.held_by.join(", "))] : [])],
    wait.message === NONE ? id(wait.since)
      : link(wait.since, () => app.selectMessage(run, wait.message)),
  ]);
  return [rowsTable(["from", "to", "why", "since"], rows)];
}

function storyTable(app, run, object) {
  const {at_ns, message, place, text} = run.lines;
  const rows = object.story.map((line) => [
    seconds(at_ns[line]),
    message[line] === NONE ? id(place[line])
      : link(run.place(message[line]), () => {
        app.selectMessage(run, message[line], run.stageOf(message[line], object));
      }),
    id(text[line]),
  ]);
  return rowsTable(["time", "message", "what"], rows);
}

// -- the runs as a whole

function summaryPanel(app) {
  const nodes = [];
  for (const run of app.runs) {
    nodes.push(
      el("h2", {}, id(run.name)),
      facts([
        ["recorded", id(run.about)],
        ["messages", String(run.count)],
        ["ending", id(run.ending)],
      ]),
      ...marksList(app, run),
    );
  }
  if (app.comparison)
    nodes.push(el("h2", {}, "What is different"), el("pre", {}, ...app.comparison.lines.map(hanging)));
  return nodes;
}

// A line of a table; what has no room in it goes on below, further to the right.
function hanging(text) {
  const indent = text.search(/\S|$/) + 2;
  const line = el("div", {}, shown(text.trim().replace(/ {3,}/g, "  ")) || "\u00a0");
  line.style.paddingLeft = `${indent}ch`;
  line.style.textIndent = "-2ch";
  return line;
}

function marksList(app, run) {
  if (!run.marks.length) return [];
  const list = el("ol");
  const item = (mark) => {
    const sign = badge(mark.kind, `${SIGNS[mark.kind]} ${mark.kind}`);
    const what = mark.message === NONE ? id(mark.text)
      : link(mark.text, () => app.selectMessage(run, mark.message));
    return el("li", {}, sign, what);
  };
  list.append(...run.marks.slice(0, LISTED_MAX).map(item));
  if (run.marks.length > LISTED_MAX) list.append(more(list, run.marks.slice(LISTED_MAX), item));
  return [el("h3", {}, "Refusals, timeouts and losses"), list];
}

// -- objects on the left

function objectList(app, kind, words) {
  const wanted = words.toLowerCase();
  const found = app.runs.flatMap((run) =>
    run.objects
      .filter((object) => object.kind === kind)
      .filter((object) => object.names.some((name) => name.toLowerCase().includes(wanted)) ||
        object.name.toLowerCase().includes(wanted))
      .map((object) => ({run, object})));
  const nodes = found.slice(0, OBJECTS_MAX).map(({run, object}) => {
    const isSelected = app.marked?.object === object;
    const button = el(
      "button", {type: "button", attributes: {"aria-pressed": String(isSelected)}},
      id(app.named(run, object.name)));
    button.addEventListener("click", () => (isSelected ? app.unselect() : app.selectObject(run, object)));
    return el("li", {}, button);
  });
  const rest = found.length - nodes.length;
  if (rest > 0) nodes.push(el("li", {className: "faint"}, `${rest} more: type a part of the name above`));
  return nodes;
}

// -- the table: the same as the lanes, in words

const HEAD = ["message", "type", "what it says", "notes", "time", "waited", "took", "stimulus", "from"];

function messageTable(app, messages, first) {
  const body = el("tbody");
  for (const {run, message} of messages.slice(first, first + ROWS))
    body.append(messageRow(app, run, message));
  const last = Math.min(messages.length, first + ROWS);
  const caption = el("caption", {}, ...pageButtons(app, messages, first),
    messages.length ? `messages ${first + 1} to ${last} of ${messages.length}` : "no message passes");
  const head = [...(app.runs.length > 1 ? ["run"] : []), ...HEAD];
  const names = head.map((name) => el("th", {attributes: {scope: "col"}}, name));
  return el("table", {}, caption, el("thead", {}, el("tr", {}, ...names)), body);
}

function pageButtons(app, messages, first) {
  const button = (label, to, isDisabled) => {
    const node = el("button", {type: "button", disabled: isDisabled}, label);
    node.addEventListener("click", () => app.turnTable(to));
    return node;
  };
  return [
    button("Earlier", first - ROWS, first === 0),
    button("Later", first + ROWS, first + ROWS >= messages.length),
  ];
}

function messageRow(app, run, message) {
  const isSelected = app.isSelected(run, message);
  const notes = [
    ...run.marksOf(message).map((mark) => `${SIGNS[mark.kind]} ${mark.kind}`),
    ...(app.isInChain(run, message) ? ["in the chain"] : []),
    ...(app.isMarked(run, message) ? ["▔ speaks of the object"] : []),
    DIFFERENCES[run.difference[message]],
  ];
  const says = id(run.says(message));
  const cells = [
    ...(app.runs.length > 1 ? ["AB"[run.side]] : []),
    link(run.place(message), () => app.selectMessage(run, message)),
    el("span", {className: `role ${run.role(message)}`}, run.kind(message)), says, notes.filter(Boolean).join(", "), seconds(run.begin(message)),
    duration(run.waited(message)), duration(run.took(message)),
    id(run.stimulus(message)), id(run.origin(message)),
  ];
  const row = el("tr", {}, ...cells.map((cell) => el("td", {}, cell)));
  row.cells[cells.indexOf(says)].className = "says";
  if (isSelected) row.setAttribute("aria-selected", "true");
  return row;
}
