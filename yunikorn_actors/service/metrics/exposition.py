"""Prometheus' text format, version 0.0.4."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

LINES: Final = 100
TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FORBIDDEN: Final = re.compile(r"[^a-zA-Z0-9_:]")
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""
    """Behind the name of the family: a histogram has several kinds of samples."""


class Family(NamedTuple):
    """All samples of one name."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def metric_name(text: str) -> str:
    """Make a name of any text, as YuniKorn does."""
    name = _FORBIDDEN.sub("_", text)
    # A name must not begin with a digit.
    return f"_{name}" if name[:1].isdigit() else name


def exposition(families: Iterable[Family | None]) -> Iterator[bytes]:
    """Write them, some lines at a time; for a pause there is an empty text."""
    for family in families:
        lines = iter(()) if family is None else _lines(family)
        # Some at a time, as a client may be slow and the rest of the text is long.
        while some := "".join(islice(lines, LINES)):
            yield some.encode()
        yield b""


def _lines(family: Family) -> Iterator[str]:
    for number, sample in enumerate(family.samples):
        if not number:
            yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
        labels = ",".join(
            f'{name}="{text.translate(_ESCAPES)}"' for name, text in sample.labels.items()
        )
        braced = f"{{{labels}}}" if labels else ""
        yield f"{family.name}{sample.suffix}{braced} {_number(sample.value)}\n"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(value)
