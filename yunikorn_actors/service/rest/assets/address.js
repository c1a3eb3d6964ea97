"use strict";
// What is selected stands in the address of the page: it can be kept, sent and come back to.

const NAMED = {ask: ["application", "ask"], application: ["application"], node: ["node"], queue: ["queue"]};

function addressOf({kind, partition, name, application, key}) {
  const parts = partition ? {partition} : {};
  if (kind === "ask") Object.assign(parts, {application, ask: key});
  else if (kind) parts[kind] = name;
  const text = String(new URLSearchParams(parts));
  return text ? `#${text}` : "#";
}

// What an address names, or only a partition, or nothing.
function aboutOf(address) {
  const parts = Object.fromEntries(new URLSearchParams(address.replace(/^#/, "")));
  const kind = Object.keys(NAMED).find((it) => NAMED[it].every((name) => parts[name]));
  const about = {partition: parts.partition ?? ""};
  if (kind === "ask") return {...about, kind, application: parts.application, key: parts.ask};
  return kind ? {...about, kind, name: parts[kind]} : about;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;  // A page that came without TLS, from another computer, may not.
  }
}
