"use strict";
// A recorded run as the page has it: columns of numbers, and each text once. The other side of this
// is `run.py`. A message is a number: its place in the columns.

async function unpacked(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
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
    this.count = run.messages.record.length;
    this.side = side;
    this._texts = run.texts;
    this._payloads = payloads === "" ? [] : payloads.split("\n");
    this._linkEffects();
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

  _linkEffects() {
    this._first = new Int32Array(this.count).fill(NONE);
    this._next = new Int32Array(this.count).fill(NONE);
    for (let message = this.count - 1; message >= 0; message--) {
      const cause = this.cause(message);
      if (cause !== NONE) {
        this._next[message] = this._first[cause];
        this._first[cause] = message;
      }
    }
  }

  effects(message) {
    const found = [];
    for (let it = this._first[message]; it !== NONE; it = this._next[it]) found.push(it);
    return found;
  }

  // All that led to a message, the first one first.
  led(message) {
    const found = [];
    for (let it = this.cause(message); it !== NONE; it = this.cause(it)) found.push(it);
    return found.reverse();
  }

  // All that came of it, each behind what caused it, with how many messages lead there.
  came(message) {
    const found = [];
    const rest = this.effects(message).reverse().map((effect) => ({message: effect, depth: 1}));
    while (rest.length) {
      const link = rest.pop();
      found.push(link);
      for (const effect of this.effects(link.message).reverse())
        rest.push({message: effect, depth: link.depth + 1});
    }
    return found;
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
    for (const object of this.objects) {
      object.spoken = new Set(object.messages);
      for (const name of object.names) {
        if (!this._named.has(name)) this._named.set(name, []);
        this._named.get(name).push(object);
      }
    }
  }

  // The object that a text in a message means, if it means any.
  named(text, message) {
    const found = this._named.get(text) ?? [];
    return found.find((object) => object.spoken.has(message));
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
      [object, (it) => object.spoken.has(it)],
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
