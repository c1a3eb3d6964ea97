"use strict";
// Tables that sort by the column whose head is pressed: up, down, and as they came.

class Sorting {
  // `keys` gives for each column what its rows are sorted by; a column without one does not sort.
  constructor(head, keys, changed) {
    [this._keys, this._changed] = [keys, changed];
    this._column = NONE;
    this._isDown = false;
    this.heads([...head.children]);
  }

  heads(cells) {
    this._cells = cells;
    cells.forEach((cell, column) => {
      if (!this._keys[column]) return;
      const button = el("button", {type: "button", className: "sort"}, ...cell.childNodes);
      button.addEventListener("click", () => this._press(column));
      cell.replaceChildren(button);
    });
    this._mark();
  }

  _press(column) {
    if (this._column !== column) [this._column, this._isDown] = [column, false];
    else if (!this._isDown) this._isDown = true;
    else this._column = NONE;
    this._mark();
    this._changed();
  }

  _mark() {
    this._cells.forEach((cell, column) => {
      if (column === this._column) cell.setAttribute("aria-sort", this._isDown ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  get isSorted() { return this._column !== NONE; }

  // What is equal stays in the order in which it came.
  sorted(items) {
    if (this._column === NONE) return items;
    const [key, sign] = [this._keys[this._column], this._isDown ? -1 : 1];
    return [...items].sort((one, other) => sign * compared(key(one), key(other)));
  }
}

function compared(one, other) {
  return typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", {numeric: true});
}

// By the first kind of resource of which there is any.
function largest(resource) {
  const known = resource ?? {};
  return known.vcore ?? Object.values(known)[0] ?? 0;
}
