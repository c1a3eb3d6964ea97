"use strict";
// What is selected, in words: an ask and why it waits, an application, a node.

const ITEMS_MAX = 50;
const GO = "/ws/v1";

const DETAILS = {
  ask: {
    path: ({partition, application, key}) =>
      `${GO}/x/why?${new URLSearchParams({partition, application, key})}`,
    title: ({key}) => ["Ask ", id(key)],
    nodes: whyNodes,
  },
  application: {
    path: ({partition, name, isEnded}) => (isEnded ? ""
      : `${GO}/partition/${encodeURIComponent(partition)}/application/${encodeURIComponent(name)}`),
    // One that has ended is found among those that are remembered.
    otherwise: ({partition, name}) =>
      `${GO}/x/partition/${encodeURIComponent(partition)}/applications?${new URLSearchParams({text: name})}`,
    title: ({name}) => ["Application ", id(name)],
    nodes: (it, app) => (it.applications ? rememberedNodes(it.applications, app) : applicationNodes(it, app)),
  },
  node: {
    path: ({partition, name}) =>
      `${GO}/partition/${encodeURIComponent(partition)}/node/${encodeURIComponent(name)}`,
    title: ({name}) => ["Node ", id(name)],
    nodes: nodeNodes,
  },
  queue: {
    path: ({partition, name}) =>
      `${GO}/partition/${encodeURIComponent(partition)}/queue/${encodeURIComponent(name)}`,
    title: ({name}) => ["Queue ", id(name)],
    nodes: queueNodes,
  },
};

// What tells the time of the answer alone is no change of what is told.
function lasting(answer) {
  return JSON.stringify(answer, (name, value) => (["at_ns", "left_ns"].includes(name) ? undefined : value));
}

// -- why an ask waits

function whyNodes(why, app) {
  const go = (name) => app.select("application", {name});
  const nodes = [facts([
    ["application", link(why.application_id, () => go(why.application_id))],
    ...(why.queue ? [["queue", id(why.queue)]] : []),
    ...(why.position ? [["place", `${count(why.position)} of the ${count(why.waiting)} that wait in its queue`]] : []),
    ...(why.expected?.latest_ns ? [["starts", expectedStart(why.expected, app.nowNs)]] : []),
    ["since", `${age(app.nowNs - why.since_ns)} ago`],
    ...(why.repeats > 1 ? [["waiting", `${count(why.repeats)} repeats`]] : []),
    ...(why.nodes_with_room === null ? [] : [["room now", counted(why.nodes_with_room, "node")]]),
    ...(why.runtime ? [["declared run time", why.runtime]] : []),
    ...(why.reserved.length ? [["kept for it", ...names(why.reserved, (name) => app.select("node", {name}))]] : []),
    ...placedAt(why, app),
  ])];
  const [first, ...behind] = [why.obstacle, ...why.behind];
  nodes.push(el("h3", {}, why.repeats > 0 ? "Why it waits" : "What became of it"), ...obstacleNodes(first));
  if (why.preempting) nodes.push(...preemptingNodes(why.preempting, app));
  if (behind.length) {
    const list = el("ol", {}, ...behind.map((it) => el("li", {}, ...obstacleNodes(it))));
    nodes.push(el("h3", {}, "What else stands behind that"), list);
  }
  return nodes;
}

function expectedStart(expected, nowNs) {
  return `in ${age(expected.earliest_ns - nowNs)} to ${age(expected.latest_ns - nowNs)}, as it looks`;
}

function preemptingNodes(its, app) {
  const goes = its.goes ?? [], against = Object.entries(its.against ?? {});
  const nodes = [el("p", {}, sentence(its.text))];
  const verb = (its.victims ?? []).length || its.rule ? "goes" : "would go";
  const items = goes.slice(0, ITEMS_MAX).map((it) => el("li", {},
    `${verb}: `, id(it.key), " of ", link(it.application_id, () => app.select("application", {name: it.application_id})),
    ` on ${it.node_id}, after ${count(it.ran_s ?? 0)} s; ${it.unit}`));
  if (goes.length > ITEMS_MAX) items.push(el("li", {}, `and ${count(goes.length - ITEMS_MAX)} more`));
  items.push(...against.map(([reason, n]) => el("li", {}, `against ${count(n)} others: ${reason}`)));
  return items.length ? [...nodes, el("ul", {}, ...items)] : nodes;
}

function placedAt(why, app) {
  const on = Object.keys(why.placed);
  return on.length ? [["runs on", ...names(on, (name) => app.select("node", {name}))]] : [];
}

function names(listed, go) {
  const links = listed.slice(0, ITEMS_MAX).flatMap((name) => [link(name, () => go(name)), " "]);
  return listed.length > ITEMS_MAX ? [...links, `and ${count(listed.length - ITEMS_MAX)} more`] : links;
}

function obstacleNodes(obstacle) {
  const said = el("p", {}, sentence(obstacle.text));
  const nodes = [said];
  if (obstacle.never) said.prepend(badge("refused", "× never"));
  if (obstacle.remedy) nodes.push(el("p", {className: "remedy"}, "→ ", sentence(obstacle.remedy)));
  if (obstacle.holders?.length) nodes.push(el("p", {className: "remedy"}, "held by ", id(obstacle.holders.join(", "))));
  return nodes;
}

// -- an application

function applicationNodes(it, app) {
  const requests = it.requests ?? [], allocations = it.allocations ?? [];
  const when = (ns) => `${age(app.nowNs - ns)} ago`;
  return [
    facts([
      ["state", it.applicationState],
      ["queue", id(it.queueName)],
      ["user", id(it.user ?? "")],
      ["has", amounts(it.usedResource)],
      ["had at most", amounts(it.maxUsedResource)],
      ["waits for", amounts(it.pendingResource)],
      ["came", when(it.submissionTime)],
    ]),
    ...(it.placeholderData?.length ? [el("h3", {}, "Gang"), gangTable(it.placeholderData)] : []),
    el("h3", {}, `Asks that wait (${count(requests.length)})`),
    itemList(requests, (ask) => [
      link(ask.allocationKey, () => app.select("ask", {application: it.applicationID, key: ask.allocationKey})),
      ` ${amounts(ask.resource)}`]),
    el("h3", {}, `Allocations (${count(allocations.length)})`),
    itemList(allocations, (item) => [
      id(item.allocationKey), " on ", link(item.nodeId, () => app.select("node", {name: item.nodeId})),
      item.placeholder ? " placeholder" : "", item.preempted ? " asked back" : ""]),
    el("h3", {}, "What it went through"),
    itemList([...(it.stateLog ?? [])].reverse(), (entry) => [`${entry.applicationState}, ${when(entry.time)}`]),
  ];
}

function gangTable(groups) {
  const rows = groups.map((it) => [
    [id(it.taskGroupName ?? "")], count(it.count ?? 0), count(it.replaced ?? 0), count(it.timedout ?? 0)]);
  return rowsTable(["task group", "placeholders", "replaced", "timed out"], rows);
}

function itemList(items, nodesOf) {
  if (!items.length) return el("p", {className: "faint"}, "none");
  const list = el("ul", {}, ...items.slice(0, ITEMS_MAX).map((it) => el("li", {}, ...nodesOf(it))));
  if (items.length > ITEMS_MAX) list.append(el("li", {className: "faint"}, `${count(items.length - ITEMS_MAX)} more`));
  return list;
}

function endedNodes(it, app) {
  return [facts([
    ["state", it.state],
    ...(it.message ? [["why", sentence(it.message)]] : []),
    ["queue", id(it.queue)],
    ["user", id(it.user)],
    ["came", `${age(app.nowNs - it.since_ns)} ago`],
  ])];
}

function rememberedNodes(applications, app) {
  const found = applications.find((it) => it.id === app.selected.name);
  if (!found) return [el("p", {className: "faint"}, "No application of this id is here, or remembered.")];
  return endedNodes(found, app);
}

// -- a queue

function queueNodes(it) {
  const kinds = [...new Set(["allocatedResource", "pendingResource", "maxResource", "guaranteedResource", "headroom"]
    .flatMap((column) => Object.keys(it[column] ?? {})))];
  const rows = kinds.map((kind) => [[id(kind)],
    ...["allocatedResource", "pendingResource", "guaranteedResource", "maxResource", "headroom"].map((column) =>
      it[column]?.[kind] === undefined ? "–" : amount(kind, it[column][kind]))]);
  const most = it.maxRunningApps ? ` of ${count(it.maxRunningApps)}` : "";
  return [
    facts([
      ["state", it.status],
      ["kind", `${it.isLeaf ? "takes applications" : "has queues below it"}${it.isManaged ? "" : ", made when it was needed"}`],
      ["running", `${counted(it.runningApps ?? 0, "application")}${most}`],
      ["order", `${it.sortingPolicy}${it.prioritySorting ? ", by priority first" : ""}`],
      ["preempts", it.preemptionEnabled ? `after ${it.preemptionDelay}` : "never"],
    ]),
    rowsTable(["", "allocated", "waits", "guaranteed", "maximum", "left"], rows),
  ];
}

// -- a node

function nodeNodes(it, app) {
  const allocations = it.allocations ?? [], foreign = it.foreignAllocations ?? [];
  const kinds = Object.keys(it.capacity ?? {});
  const rows = kinds.map((kind) => [
    [id(kind)], ...["allocated", "occupied", "available", "capacity"]
      .map((column) => amount(kind, it[column]?.[kind] ?? 0))]);
  return [
    facts([
      ["takes work", it.schedulable ? (it.isReserved ? "no, it is kept for an ask" : "yes") : "no, it is drained or not ready"],
      ...(it.hostName ? [["host", id(it.hostName)]] : []),
      ...(it.rackName ? [["rack", id(it.rackName)]] : []),
      ...(it.reservations?.length ? [["kept for", id(it.reservations.join(", "))]] : []),
    ]),
    rowsTable(["", "allocated", "others", "free", "all"], rows),
    el("h3", {}, `Allocations (${count(allocations.length)})`),
    itemList(allocations, (item) => [
      id(item.allocationKey), " of ",
      link(item.applicationId, () => app.select("application", {name: item.applicationId})),
      ` ${amounts(item.resource)}`]),
    ...(foreign.length ? [el("h3", {}, `Work of others (${count(foreign.length)})`),
      itemList(foreign, (item) => [id(item.allocationKey), ` ${amounts(item.resource)}`])] : []),
  ];
}
