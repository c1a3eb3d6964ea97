"use strict";
// The page: it follows one partition, and asks for more where somebody looks closer.

const POLL_MS = 2000;
// After a slow answer the next question waits so many times as long as that one took.
const POLL_SHARE = 20;
const SILENT_MS = 6000;
const AGAIN_MS = 3000;

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const response = await fetch(path, {credentials: "same-origin", ...options});
  if (response.ok) return response.status === 204 ? null : response.json();
  throw await refusal(response);
}

async function refusal(response) {
  const said = await response.json().catch(() => ({message: response.statusText}));
  return new Refused(response.status, [said.message, said.description].filter((it, place, all) =>
    it && all.indexOf(it) === place).join(": "));
}

// Asks again and again as long as there is a path: one question at a time. Who shows the answer is
// told whether it is the first one of its path.
class Poll {
  constructor(show, fail) {
    [this._show, this._fail] = [show, fail];
    this._path = "";
    this._due = 0;
    this._isAsking = false;
  }

  set(path) {
    if (path === this._path) return;
    this._path = path;
    this._due = 0;
    this._isNew = true;
    this.tick();
  }

  async tick() {
    const path = this._path;
    if (!path || this._isAsking || performance.now() < this._due) return;
    this._isAsking = true;
    const begin = performance.now();
    try {
      const answer = await ask(path);
      if (path === this._path) this._show(answer, this._isNew);
      if (path === this._path) this._isNew = false;
    } catch (error) {
      if (path === this._path) this._fail(error);
    } finally {
      const took = performance.now() - begin;
      this._isAsking = false;
      this._due = path === this._path ? performance.now() + Math.max(POLL_MS, POLL_SHARE * took) : 0;
      if (path !== this._path) this.tick();
    }
  }
}

class App {
  constructor() {
    this.nowNs = 0;
    this.selected = null;
    this._state = {};
    this._heardMs = 0;
    this._tiles = new Tiles();
    this._queues = new QueueTable((path) => {
      this._search(path);
      this.select("queue", {name: path});
    });
    this._course = new CoursePanel(() => this._chosen());
    this._sortings = {
      asks: new Sorting($("ask-head"), [
        (it) => it.key, (it) => it.application, (it) => it.queue, (it) => -it.since_ns,
        (it) => largest(it.amounts), (it) => it.said], () => this._listAsks()),
      applications: new Sorting($("application-head"), [
        (it) => it.id, (it) => it.state, (it) => it.queue, (it) => it.user, (it) => largest(it.allocated),
        (it) => it.allocations ?? 0, (it) => it.waiting ?? 0, (it) => -it.since_ns], () => this._listApplications()),
    };
    this._reasons = new Reasons(() => this._chosen());
    this._actors = new Actors();
    this._grid = new Grid((name) => this.select("node", {name}));
    this._troubles = new Rows($("trouble-rows"), troubleRow);
    this._askRows = new Rows($("ask-rows"), tableRow((it) => this._askTexts(it), {
      names: [1, 2], sentences: [5], labels: labelsOf($("ask-head")), open: ({application, key}) => this.select("ask", {application, key})}));
    this._applicationRows = new Rows($("application-rows"), tableRow((it) => this._applicationTexts(it), {
      names: [2, 3], numbers: [5, 6, 7], labels: labelsOf($("application-head")), open: (it) =>
        this.select("application", {name: it.id, isEnded: it.ended, ended: it})}));
    const fail = (error) => this._failed(error);
    this._polls = {
      asks: new Poll((...answer) => this._showAsks(...answer), fail),
      applications: new Poll((...answer) => this._showApplications(...answer), fail),
      nodes: new Poll((answer) => this._grid.name(answer), fail),
      course: new Poll((answer) => this._course.show(answer), fail),
      detail: new Poll((answer) => this._showDetail(answer), (error) => this._detailFailed(error)),
    };
    this._listen();
  }

  // -- the stream

  async begin() {
    this._wanted = aboutOf(location.hash).partition || this._wanted;
    const {needs_token: needsToken, is_in: isIn} = await ask(`${GO}/x/session`);
    $("leave").hidden = !(needsToken && isIn);
    if (isIn) this._follow();
    else this._logIn();
  }

  _follow() {
    this._source?.close();
    const source = new EventSource(`${GO}/x/overview?${new URLSearchParams({partition: this._wanted ?? ""})}`);
    this._source = source;
    source.addEventListener("message", (event) => this._heard(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED && source === this._source) this._lost();
    });
  }

  // The stream was refused: the service says why, or nobody is there.
  async _lost() {
    this._source = null;
    const stop = new AbortController();
    const response = await fetch(`${GO}/x/overview`, {signal: stop.signal}).catch(() => null);
    if (response?.status === 401) return this.begin();
    if (response && !response.ok) this._warn((await refusal(response)).message);
    stop.abort();
    setTimeout(() => { if (!this._source && !document.hidden) this._follow(); }, AGAIN_MS);
  }

  _heard(parts) {
    const elapsed = this.nowNs ? (parts.now_ns - this.nowNs) / SECOND : 0;
    this.nowNs = parts.now_ns;
    this._heardMs = performance.now();
    if (parts.partition !== undefined) this._changePartition(parts.partition);
    Object.assign(this._state, parts);
    // Said first, so that it does not follow upon what somebody does here.
    if (!this._isLive) this._showStanding();
    this._write(parts, elapsed);
    for (const poll of Object.values(this._polls)) poll.tick();
    document.documentElement.dataset.ready = "yes";
  }

  // Another partition begins with nothing of the former one.
  _changePartition(name) {
    if (name === this._state.partition) return;
    this._state = {};
    this._close({isFromAddress: true});
    this._tiles = new Tiles();
    $("tiles").replaceChildren();
    for (const poll of Object.values(this._polls)) poll.set("");
    this._state.partition = name;
    if (name) this._chosen();
    if (name) this._open(aboutOf(location.hash));
  }

  _write(parts, elapsed) {
    const {cluster, waiting, queues, core} = this._state;
    if (parts.partitions) this._showPartitions(parts.partitions);
    this._warn(this._trouble());
    if (core) this._actors.show(core, elapsed);
    this._showEmpty();
    if (!cluster) return;
    if (parts.waiting || parts.words) this._reasons.show(waiting ?? {}, this._state.words ?? {});
    this._tiles.sample(cluster, this._reasons.total ?? 0, elapsed);
    if (parts.queues || parts.cluster) this._queues.show(queues, cluster);
    if (parts.nodes) this._showNodes(parts.nodes);
    this._showTroubles();
    document.title = `${count(this._reasons.total)} waiting: yunikorn-actors`;
  }

  // Without a partition there is nothing to show but why.
  _showEmpty() {
    const {partition, partitions} = this._state;
    const isEmpty = !partition;
    $("empty").hidden = !isEmpty;
    document.documentElement.classList.toggle("is-empty", isEmpty);
    if (isEmpty && this._wanted && partitions?.length)
      write($("empty"), `There is no partition ${shown(this._wanted)} here; choose another one above.`);
  }

  _trouble() {
    const {failure, partitions, partition} = this._state;
    if (failure) return failure;
    const state = partitions?.find((it) => it.name === partition)?.state;
    if (state === "Paused") return "The resource manager of this partition is away: nothing is decided for it.";
    if (state === "Behind") return "The resource manager of this partition does not take its messages: nothing new is decided for it.";
    return "";
  }

  _warn(text) {
    write($("banner"), shown(text));
    $("banner").hidden = !text;
  }

  _showPartitions(partitions) {
    const options = partitions.map((it) => {
      const isAlone = partitions.filter((other) => other.short === it.short).length === 1;
      return el("option", {value: it.name}, shown(isAlone ? it.short : it.name));
    });
    const isThere = partitions.some((it) => it.name === this._state.partition);
    if (!isThere) options.unshift(el("option", {value: ""}, "–"));
    $("partition").replaceChildren(...options);
    $("partition").value = isThere ? this._state.partition : "";
    $("choice").hidden = !partitions.length;
  }

  _showNodes(nodes) {
    this._grid.show(nodes);
    this._grid.drawLegend();
    this._polls.nodes.set(this._grid.hasNames ? "" : this._path("nodes", {version: nodes.version}));
  }

  _showTroubles() {
    const {troubles} = this._state;
    this._troubles.show(troubles.map((trouble) => ({trouble, now: this.nowNs})),
      ({trouble}) => `${trouble.kind} ${trouble.whom} ${trouble.what}`);
    $("no-troubles").hidden = troubles.length > 0;
  }

  _showStanding() {
    const silent = performance.now() - this._heardMs;
    const isLive = this._source && silent < SILENT_MS;
    const text = isLive ? `● live, up for ${age(this.nowNs - this._state.since_ns)}`
      : `○ nothing heard for ${age(silent * 1e6)}`;
    if (isLive !== this._isLive && this._heardMs)
      $("announced").textContent = isLive ? "The page is live." : "The service is not heard any more.";
    this._isLive = isLive;
    write($("standing"), this._heardMs ? text : "○ not connected yet");
  }

  // -- lists

  _path(list, query) {
    const partition = encodeURIComponent(this._state.partition);
    return `${GO}/x/partition/${partition}/${list}?${new URLSearchParams(query)}`;
  }

  _chosen() {
    if (!this._state.partition) return;
    if (this._state.waiting) this._reasons.show(this._state.waiting, this._state.words);
    this._polls.asks.set(this._path("asks", {reason: this._reasons.reason, text: $("ask-text").value}));
    this._polls.applications.set(this._path("applications", {text: $("application-text").value}));
    this._polls.course.set(this._path("history", {hours: this._course.hours}));
  }

  // Both lists show what is in a queue.
  _search(path) {
    for (const name of ["ask-text", "application-text"]) $(name).value = path;
    this._chosen();
    $("announced").textContent = shown(`Waiting asks and applications of ${path} are listed.`);
  }

  // The number of results is read out once after a search, and not with each update.
  _found(name, text, isNew) {
    write($(name), text);
    if (isNew && $(name).closest("section").contains(document.activeElement)) $("announced").textContent = text;
  }

  _listAsks() {
    this._askRows.show(this._sortings.asks.sorted(this._asks ?? []), (it) => `${it.application} ${it.key}`);
  }

  _listApplications() {
    const listed = this._sortings.applications.sorted(this._applications ?? []);
    this._applicationRows.show(listed, (it) => `${it.id} ${it.since_ns}`);
  }

  _showAsks({total, asks}, isNew) {
    this._asks = asks;
    this._listAsks();
    $("ask-table").hidden = !asks.length;
    const {reason} = this._reasons;
    const what = reason ? `, because ${this._words(reason)}` : "";
    const rest = total > asks.length ? `; the first ${count(asks.length)} are listed` : "";
    const found = total ? `${counted(total, "ask waits", "asks wait")}${what}${rest}` : "no ask waits like this";
    this._found("ask-count", found, isNew);
  }

  _words(cause) { return this._state.words?.[cause] ?? cause; }

  _askTexts(it) {
    const kind = it.placeholder ? "placeholder of " : it.task_group ? "member of " : "";
    const repeats = it.repeats > 1 ? `${count(it.repeats)} times ` : "";
    return [
      it.key, it.application, it.queue, age(this.nowNs - it.since_ns), repeats + amounts(it.amounts),
      (kind ? `${kind}${it.task_group || "a gang"}. ` : "") + it.said];
  }

  _showApplications({total, applications}, isNew) {
    this._applications = applications;
    this._listApplications();
    $("application-table").hidden = !applications.length;
    const rest = total > applications.length ? `; ${count(applications.length)} are listed` : "";
    const found = total ? `${counted(total, "application")}${rest}` : "there is no such application";
    this._found("application-count", found, isNew);
  }

  _applicationTexts(it) {
    return [
      it.id, it.gang ? `${it.state}, gang` : it.state, it.queue, it.user, it.ended ? "–" : amounts(it.allocated),
      it.ended ? "–" : count(it.allocations), it.waiting ? count(it.waiting) : "–", `${age(this.nowNs - it.since_ns)} ago`];
  }

  // -- details

  // What an address names is shown; one that names nothing shows nothing.
  _open({partition, kind, ...whom}) {
    const isHere = !partition || partition === this._state.partition;
    if (kind && isHere) this.select(kind, whom, {isFromAddress: true});
    else if (isHere) this._close({isFromAddress: true});
    else this._choosePartition(partition);
  }

  _choosePartition(name) {
    this._wanted = name;
    this._follow();
  }

  _keepAddress(about) {
    const address = addressOf(about ?? {partition: this._wanted ?? ""});
    if (address !== (location.hash || "#")) history.pushState(null, "", address);
  }

  async _copyAddress(button) {
    const isDone = await copied(location.href);
    const said = isDone ? "Copied" : "Copy it from the address of the page";
    write(button, said);
    $("announced").textContent = said;
    setTimeout(() => write(button, "Copy link"), 2000);
  }

  select(kind, whom, {isFromAddress = false} = {}) {
    const about = {kind, partition: this._state.partition, ...whom};
    if (!$("right").contains(document.activeElement)) this._opener = document.activeElement;
    this.selected = about;
    this._told = null;
    if (!isFromAddress) this._keepAddress(about);
    this._body = el("div", {}, el("p", {className: "faint"}, "Asking …"));
    const close = el("button", {type: "button", className: "close", attributes: {"aria-label": "Close"}}, "✕");
    close.addEventListener("click", () => this._close());
    const copy = el("button", {type: "button", className: "copy"}, "Copy link");
    copy.addEventListener("click", () => this._copyAddress(copy));
    $("right").replaceChildren(close, el("h2", {}, ...DETAILS[kind].title(about)), copy, this._body);
    $("right").hidden = false;
    $("right").focus({preventScroll: true});
    this._grid.draw();
    if (about.ended) this._body.replaceChildren(...endedNodes(about.ended, this));
    this._polls.detail.set("");
    this._polls.detail.set(about.isEnded ? "" : DETAILS[kind].path(about));
  }

  _showDetail(answer) {
    const told = lasting(answer);
    if (told === this._told) return;
    this._told = told;
    const focused = this._body.contains(document.activeElement) ? document.activeElement.textContent : null;
    this._body.replaceChildren(...DETAILS[this.selected.kind].nodes(answer, this));
    if (focused !== null)
      [...this._body.querySelectorAll("button")].find((it) => it.textContent === focused)?.focus({preventScroll: true});
  }

  _detailFailed(error) {
    this._polls.detail.set("");
    const {otherwise} = DETAILS[this.selected.kind];
    if (error.status === 404 && otherwise && !this.selected.isOtherwise) {
      this.selected.isOtherwise = true;
      this._polls.detail.set(otherwise(this.selected));
      return;
    }
    this._body.replaceChildren(el("p", {className: "refused"}, shown(error.message)));
    if (error.status === 401) this._failed(error);
  }

  _close({isFromAddress = false} = {}) {
    if ($("right").hidden) return;
    $("right").hidden = true;
    this.selected = null;
    if (!isFromAddress) this._keepAddress(null);
    this._polls.detail.set("");
    this._opener?.focus?.({preventScroll: true});
    this._grid.draw();
  }

  _failed(error) {
    if (error.status === 401) this._leaveQuietly();
  }

  // -- logging in

  _logIn() {
    $("leave").hidden = true;
    if (!$("login").open) $("login").showModal();
  }

  _leaveQuietly() {
    this._source?.close();
    this._source = null;
    for (const poll of Object.values(this._polls)) poll.set("");
    this._logIn();
  }

  async _showToken(event) {
    event.preventDefault();
    const body = $("token").value.trim();
    try {
      await ask(`${GO}/x/login`, {method: "POST", body, headers: {"Content-Type": "text/plain"}});
    } catch (error) {
      $("login-problem").textContent = error.message;
      return;
    } finally {
      $("token").value = "";
    }
    $("login-problem").textContent = "";
    $("login").close();
    this._state = {};
    await this.begin();
  }

  async _logOut() {
    await ask(`${GO}/x/logout`, {method: "POST"});
    location.reload();
  }

  // -- who acts

  _listen() {
    const on = (name, event, act) => $(name).addEventListener(event, act);
    on("partition", "change", () => {
      this._choosePartition($("partition").value);
      this._keepAddress(null);
    });
    addEventListener("popstate", () => this._open(aboutOf(location.hash)));
    for (const name of ["ask-text", "application-text"]) on(name, "input", () => this._typed());
    on("login-form", "submit", (event) => this._showToken(event));
    on("login", "cancel", (event) => event.preventDefault());
    on("leave", "click", () => this._logOut());
    document.addEventListener("visibilitychange", () => this._seen());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this._redraw());
    new ResizeObserver(() => this._redraw()).observe($("nodes"));
    setInterval(() => this._showStanding(), 1000);
    answerKeys(this._keys);
  }

  // One question for a word, not one for each letter of it.
  _typed() {
    clearTimeout(this._typing);
    this._typing = setTimeout(() => this._chosen(), 200);
  }

  // A page that nobody sees costs nothing.
  _seen() {
    if (document.hidden) {
      this._source?.close();
      this._source = null;
    } else if (!$("login").open) {
      this._follow();
    }
  }

  _redraw() {
    if (!this._state.nodes) return;
    this._grid.draw();
    this._grid.drawLegend();
    this._course.draw();
  }

  _keys = {
    "/": ["search applications", () => this._enter("application-text")],
    "w": ["search waiting asks", () => this._enter("ask-text")],
    "n": ["search nodes", () => this._enter("node-text")],
    "g": ["to the picture of the nodes: arrows, Enter", () => this._enter("grid")],
    "h": ["to the last hours", () => this._enter("course")],
    "q": ["to the queues", () => this._enter("queues")],
    "t": ["to refusals, preemption, timeouts and losses", () => this._enter("troubles")],
    "m": ["to the mailboxes", () => this._enter("actors")],
    "f": ["to the flows", () => this._enter("flows")],
    "d": ["to what is selected", () => this._enter("right")],
    "Escape": ["leave a field, or close what is selected", () => this._escape()],
    "?": ["these keys", showKeys],
  };

  _enter(name) {
    $(name).focus();
    $(name).select?.();
    $(name).scrollIntoView({block: "nearest"});
  }

  _escape() {
    const active = document.activeElement;
    if (active?.matches("input, select")) active.blur();
    else this._close();
  }
}

globalThis.app = new App();
app.begin().catch((error) => app._warn(`The service does not answer: ${error.message}`));
