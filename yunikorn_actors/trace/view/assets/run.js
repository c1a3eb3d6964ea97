"use strict";
// A recorded run as the page has it: columns of numbers, and each text once. The other side of this
// is `run.py`. A message is a number: its place in the columns.

async function unpacked(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

// Of each number the first one that names it in a column, and the next one with the same.
function linked(column) {
  const [first, next] = [0, 1].map(() => new Int32Array(column.length).fill(NONE));
  for (let it = column.length - 1; it >= 0; it--) {
    if (column[it] === NONE) continue;
    next[it] = first[column[it]];
    first[column[it]] = it;
  }
  return [first, next];
}

// Of each stage its message: those of a message follow each other, and behind them all are others.
function stageMessages({first, message, item}) {
  const found = new Int32Array(item.length);
  for (let it = 0; it + 1 < first.length; it++) found.fill(it, first[it], first[it + 1]);
  found.set(message, first[first.length - 1]);
  return found;
}

function* linkedTo(number, first, next) {
  for (let it = first[number]; it !== NONE; it = next[it]) yield it;
}

class Run {
  constructor({run, about}, payloads, side) {
    Object.assign(this, about);
    this.name = run.name;
    this.about = run.about;
    this.ending = run.ending;
    this.isSimulated = run.is_simulated;
    this.lanes = run.lanes;
    this.series = run.series;
    this.marks = run.marks;
    this.columns = run.messages;
    this.ways = run.ways;
    this._stageMessages = stageMessages(run.ways);
    this._partOf = new Int32Array(run.ways.item.length).fill(NONE);
    for (const [part, whole] of run.ways.parts) this._partOf[part] = whole;
    this.count = run.messages.record.length;
    this.side = side;
    this._texts = run.texts;
    this._payloads = payloads === "" ? [] : payloads.split("\n");
    [this._first, this._next] = linked(this.columns.cause);
    [this._firstStage, this._nextStage] = linked(this.ways.before);
    [this._firstPart, this._nextPart] = linked(this._partOf);
    this._wide = new Set(this.ways.wide);
    this.refused = new Set(this._marked("refused"));
    this._objectsByName();
    this.difference = new Array(this.count).fill(0);
    this.partner = new Array(this.count).fill(NONE);
    this.column = Array.from({length: this.count}, (_, message) => message);
  }

  align(side) {
    Object.assign(this, side);
  }

  // -- what a message is

  kind(message) { return this._texts[this.columns.kind[message]]; }
  role(message) { return this._texts[this.columns.role[message]]; }
  place(message) { return this._texts[this.columns.place[message]]; }
  stimulus(message) { return this._texts[this.columns.stimulus[message]]; }
  origin(message) { return this._texts[this.columns.origin[message]]; }
  says(message) { return this._texts[this.columns.says[message]]; }
  lane(message) { return this.columns.lane[message]; }
  cause(message) { return this.columns.cause[message]; }
  begin(message) { return this.columns.begin_ns[message]; }
  took(message) { return this.columns.took_ns[message]; }
  payload(message) { return JSON.parse(this._payloads[message]); }

  waited(message) {
    const sent = this.columns.sent_ns[message];
    return sent === NONE ? NONE : Math.max(0, this.begin(message) - sent);
  }

  marksOf(message) { return this.marks.filter((mark) => mark.message === message); }

  kinds() { return [...new Set(this.columns.kind)].map((text) => this._texts[text]).sort(); }
  stimuli() { return [...new Set(this.columns.stimulus)].map((text) => this._texts[text]); }

  // -- what led to what

  effects(message) {
    return [...linkedTo(message, this._first, this._next)];
  }

  // The items of a message as stages of their ways: the first one is followed if none is chosen.
  stages(message) {
    const [from, to] = [this.ways.first[message], this.ways.first[message + 1]];
    return Array.from({length: to - from}, (_, place) => from + place);
  }

  // The item that an object is in a message: the first one if none has its name.
  stageOf(message, {names}) {
    const stages = this.stages(message);
    return stages.find((it) => names.includes(this.item(it))) ?? stages[0];
  }

  messageOf(stage) { return this._stageMessages[stage]; }

  item(stage) { return this._texts[this.ways.item[stage]]; }

  // The stage before another one that is in the picture.
  stageBefore(stage) {
    let it = this.ways.before[stage];
    while (it !== NONE && this.messageOf(it) === NONE) it = this.ways.before[it];
    return it;
  }

  // All that led to a message, the first one first: to its item, or by causes if it has none.
  led(message, stage = this.stages(message)[0]) {
    const found = [];
    if (stage === undefined) {
      for (let it = this.cause(message); it !== NONE; it = this.cause(it)) found.push(it);
      return found.reverse();
    }
    const met = new Set([message]);
    for (let it = this.stageBefore(stage); it !== NONE; it = this.stageBefore(it)) {
      const before = this.messageOf(it);
      if (met.has(before)) break;
      met.add(before);
      found.push(before);
    }
    return found.reverse();
  }

  // All that came of a message, each behind what it came of, with how many messages lead there: what
  // came of its item, and what it has set off.
  came(message, stage = this.stages(message)[0]) {
    const found = [];
    const met = new Set([message]);
    const rest = this._behind({message, stages: stage === undefined ? [] : [stage], depth: 0});
    while (rest.length) {
      const link = rest.pop();
      if (met.has(link.message)) continue;
      met.add(link.message);
      found.push(link);
      rest.push(...this._behind(link));
    }
    return found;
  }

  // What is right behind a message, the last one first.
  _behind({message, stages, depth}) {
    const behind = new Map();
    for (const stage of stages)
      for (const part of this._partsWith(stage)) this._behindStage(part, behind);
    for (const effect of this.effects(message)) {
      const own = this.stages(effect);
      // Others may have set off what came of several that were handled together.
      if (!behind.has(effect) && !(own.length && this.columns.mixed[effect])) behind.set(effect, own);
    }
    return [...behind].sort(([one], [other]) => other - one)
      .map(([it, some]) => ({message: it, stages: some, depth: depth + 1}));
  }

  // An ask stands in a message by its key alone, and later its placement leads back to it as well.
  // What is about all of an application is not about its asks alone, and so is no part of them.
  _partsWith(stage) {
    const whole = this._partOf[stage];
    const isSame = whole !== NONE && (!this._wide.has(whole) || this._isSame(stage, whole));
    const first = isSame ? whole : stage;
    return [first, ...this._partsOf(first)];
  }

  _isSame(stage, whole) {
    return this._wide.has(stage) && this.ways.item[stage] === this.ways.item[whole];
  }

  *_partsOf(whole) {
    for (const part of linkedTo(whole, this._firstPart, this._nextPart)) {
      yield part;
      yield* this._partsOf(part);
    }
  }

  // What the filters have left out leads on all the same.
  _behindStage(stage, behind) {
    for (const next of linkedTo(stage, this._firstStage, this._nextStage)) {
      const message = this.messageOf(next);
      if (message === NONE) this._behindStage(next, behind);
      else behind.set(message, [...(behind.get(message) ?? []), next]);
    }
  }

  // Those that have the same cause, in their order; without a cause, all that have none.
  siblings(message) {
    const cause = this.cause(message);
    if (cause !== NONE) return this.effects(cause);
    this._roots ??= [...this.columns.cause.keys()].filter((it) => this.cause(it) === NONE);
    return this._roots;
  }

  // -- objects

  _objectsByName() {
    this._named = new Map();
    this._spoken = new Map();
    for (const object of this.objects)
      for (const name of object.names) {
        if (!this._named.has(name)) this._named.set(name, []);
        this._named.get(name).push(object);
      }
  }

  // The object that a text in a message means, if it means any.
  named(text, message) {
    const found = this._named.get(text) ?? [];
    return found.find((object) => this._speaks(object)(message));
  }

  // The messages that speak of an object.
  spoken(object) {
    if (!this._spoken.has(object)) {
      const found = object.messages ?? [...this.columns.cause.keys()].filter(this._speaks(object));
      this._spoken.set(object, new Set(found));
    }
    return this._spoken.get(object);
  }

  // Whether a message speaks of it. A UUID tells by itself whose it is; a key with its application.
  _speaks({names, uuids, application, messages}) {
    if (messages) return (message) => messages.includes(message);
    const quoted = (some) => some.map((it) => `"${it}"`);
    const [own, any, owner] = [uuids, names, [application]].map(quoted);
    const says = (payload, some) => some.some((it) => payload.includes(it));
    return (message) => {
      const payload = this._payloads[message];
      return says(payload, any) && (!application || says(payload, owner) || says(payload, own));
    };
  }

  _marked(kind) {
    return this.marks
      .filter((mark) => mark.kind === kind && mark.message !== NONE)
      .map((mark) => mark.message);
  }

  // -- filters

  // One entry for each message: whether it passes all that is asked for.
  passing({text, kind, lane, stimulus, refused, object}) {
    const words = text && new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu");
    const fact = `"fact":${JSON.stringify(kind)}`;
    const tests = [
      [kind, (it) => this.kind(it) === kind || this._payloads[it].includes(fact)],
      [lane, (it) => this.lanes[this.lane(it)] === lane],
      [stimulus, (it) => this.stimulus(it) === stimulus],
      [refused, (it) => this.refused.has(it)],
      [object, (it) => this.spoken(object).has(it)],
      [words, (it) => this._has(it, words)],
    ].filter(([isAsked]) => isAsked).map(([, test]) => test);
    return Uint8Array.from({length: this.count}, (_, it) => tests.every((test) => test(it)));
  }

  _has(message, words) {
    return (
      words.test(this._payloads[message]) || words.test(this.place(message)) ||
      words.test(this.kind(message)) || words.test(this.stimulus(message)) ||
      words.test(this.says(message))
    );
  }
}
