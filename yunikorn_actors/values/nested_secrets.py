"""Maps and lists under the name of a secret: each value in them is one.

Keys, brackets and indentation stay, so that what is masked can be parsed, and refused, as before.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

Leaf = Callable[[str], str]
"""What stands in the place of one value."""

_BLOCK: Final = re.compile(r"\\*[\"']?:[ \t]*(\r?\n|(?:\\+r)?\\+n)")
"""Behind a name in YAML: what follows stands on lines of its own."""
_LINE: Final = re.compile(
    r"([ \t]*(?:-[ \t]+)*)((?:\\*[\"'])?[\w.@/-]+(?:\\*[\"'])?:(?=\s|\\|$)[ \t]*)?"
)
"""Indentation and a key: what comes before a value."""
_TOKEN: Final = re.compile(
    r"([\[{(])|([\]})])"
    r"|(\\+\"(?:(?!\\+\").)*\\+\"|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
    r"|(?:[^\s,;\[\]{}()\"'=:]|:(?![\s\"'\[{\\]))+)"
    r"(\s*(?:=>|=|:(?=[\s\"'\[{\\]|$)|(?<=[\"']):))?",
    re.DOTALL,
)
"""What opens, what closes, a text; and what makes a key of it."""


class Nested(NamedTuple):
    end: int
    text: str


def nested(text: str, name_start: int, name_end: int, start: int, leaf: Leaf) -> Nested | None:
    """Cover the values under a name whose value starts there; None if it is no map and no list."""
    if text.startswith(("{", "[", "("), start):
        return _in_brackets(text, start, leaf)
    block = _BLOCK.match(text, name_end)
    if block is None:
        return None
    first = block.end()
    end, covered = _indented(text, name_start, block, leaf)
    if end > first:
        # White space after the name may have been read already.
        return Nested(end, text[start:first] + covered[max(0, start - first) :])
    line = _LINE.match(text, first)
    is_of_another_key = line is not None and line[2] is not None
    return Nested(start, "") if is_of_another_key else None


def _in_brackets(text: str, start: int, leaf: Leaf) -> Nested:
    out: list[str] = []
    depth, kept, end = 0, start, len(text)
    for token in _TOKEN.finditer(text, start):
        opening, closing, value, mark = token.groups()
        depth += bool(opening) - bool(closing)
        if depth == 0:
            end = token.end()
            break
        if value and not mark:
            out += (text[kept : token.start()], leaf(value))
            kept = token.end()
    return Nested(end, "".join([*out, text[kept:end]]))


def _indented(text: str, name_start: int, block: re.Match[str], leaf: Leaf) -> Nested:
    """Cover the values on the lines that belong to the name."""
    newline = block[1]
    before = text.rfind(newline, 0, name_start)
    head = text[0 if before < 0 else before + len(newline) : name_start].lstrip("\\\"'")
    own = head if not head.strip(" \t-\\\"'") else head[: len(head) - len(head.lstrip())]
    out: list[str] = []
    place = block.end()
    while place < len(text):
        stop = text.find(newline, place)
        stop = len(text) if stop < 0 else stop
        line = text[place:stop]
        indentation = len(line) - len(line.lstrip())
        is_item = line.startswith("- ", indentation) and indentation == len(own)
        if line and indentation <= len(own) and not is_item:
            break
        out += (_line(line, leaf), text[stop : stop + len(newline)])
        place = min(stop + len(newline), len(text))
    return Nested(place, "".join(out))


def _line(line: str, leaf: Leaf) -> str:
    before = _LINE.match(line)
    start = before.end() if before else 0
    value = line[start:].rstrip()
    if value.startswith(("{", "[", "(")):
        covered = _in_brackets(value, 0, leaf).text
    else:
        covered = leaf(value) if value else ""
    return line[:start] + covered + line[start + len(value) :]
