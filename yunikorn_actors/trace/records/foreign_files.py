"""What a file is that is no recording: found by its first bytes, with what to do about it."""

import re
from typing import Final, NamedTuple

HEAD: Final = 4096
"""So many bytes tell it."""


class Kind(NamedTuple):
    what: str
    remedy: str = ""
    """What to do instead; empty if nothing but another file helps."""


_UNPACK: Final = "unpack it, and give the recording that is in it"
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", Kind("a PNG image")),
    (b"\xff\xd8\xff", Kind("a JPEG image")),
    (b"GIF8", Kind("a GIF image")),
    (b"%PDF-", Kind("a PDF document")),
    (b"\x7fELF", Kind("a program (ELF)")),
    (b"\x1f\x8b", Kind("a gzip file", "unpack it with gunzip, and give what comes out")),
    (b"\x28\xb5\x2f\xfd", Kind("a zstd file", "unpack it with unzstd, and give what comes out")),
    (b"\xfd7zXZ\x00", Kind("an xz file", "unpack it with unxz, and give what comes out")),
    (b"BZh", Kind("a bzip2 file", "unpack it with bunzip2, and give what comes out")),
    (b"PK\x03\x04", Kind("a zip file", _UNPACK)),
    (b"PK\x05\x06", Kind("an empty zip file")),
    (
        b"SQLite format 3\x00",
        Kind(
            "an SQLite database",
            "sqlite3 asks it; the recording that it was made of is needed here",
        ),
    ),
)
_CHARACTER_MAX: Final = 4
"""Bytes of a character in UTF-8."""
_TAR: Final = 257
"""Where a tar file has its name."""
_JOURNAL: Final = re.compile(rb".{12}[\x80-\x8f\xde].{0,4}?\xa7journal", re.DOTALL)
"""Three numbers of a record, and the map that begins each file."""
_JSON: Final = (
    (b'"resourceSpans"', Kind("spans of OpenTelemetry in JSON", "a collector reads it")),
    (b'"traceEvents"', Kind("a Chrome trace in JSON", "Perfetto reads it")),
    (b'"managers"', Kind("a state dump", "`yunikorn-actors health` and `why --dump` read it")),
    (b"", Kind("JSON, and its first line is no header of a recording")),
)
"""What tells it in the first bytes."""
_PAGE: Final = re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE)
_TAPE: Final = re.compile(rb"(#[^\n]*\n|\s)*tape \d+ of ")
_SCENARIO: Final = re.compile(rb"^steps:", re.MULTILINE)
_YAML: Final = re.compile(rb"((#[^\n]*|---)?\s*\n)*[\w-]+:(\s|$)")


def kind_of(head: bytes) -> Kind | None:
    """Return what a file is that begins so; None if that does not tell."""
    for begin, kind in _MAGIC:
        if head.startswith(begin):
            return kind
    if head[_TAR : _TAR + 5] == b"ustar":
        return Kind("a tar file", _UNPACK)
    if _JOURNAL.match(head):
        return Kind("a file of a journal", "a core that is started with --journal reads it")
    return _text(head)


def _text(head: bytes) -> Kind | None:
    if not head or not _is_text(head):
        return None
    if head.lstrip()[:1] in {b"{", b"["}:
        # A recording as lines of JSON may still lack the end of its first line.
        return None if b'"record"' in head else next(kind for word, kind in _JSON if word in head)
    if _PAGE.match(head):
        return Kind("a page of HTML", "open it in a browser")
    if _TAPE.match(head):
        return Kind("a tape", "`yunikorn-actors lab replay` plays it")
    if _SCENARIO.search(head):
        return Kind(
            "a scenario", "`yunikorn-actors scenario run` runs it, and records with --trace"
        )
    return Kind("YAML" if _YAML.match(head) else "text")


def _is_text(head: bytes) -> bool:
    """Say whether it is UTF-8 as people read it; the last character may be cut off."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - _CHARACTER_MAX:
            return False
        text = head[: error.start].decode()
    return bool(text) and all(it.isprintable() or it.isspace() for it in text)
