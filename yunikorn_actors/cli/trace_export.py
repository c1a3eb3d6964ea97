"""`trace export` and `trace query`: a recording for other programs, and for questions in SQL."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, Final

import msgspec

from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.export.formats import FORMATS
from yunikorn_actors.trace.export.sqlite import QueryError, query, save
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import ending

SQLITE: Final = "sqlite"
"""The one format that is a file by nature, and no text."""
QUERY_S: Final = 10.0


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", required=True, choices=(*FORMATS, SQLITE), help="the format", dest="format"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help="the file; without it, standard output"
    )


def export(options: argparse.Namespace, wanted: FilterOptions) -> int | None:
    """Return how many messages were wanted; None if there is no place for them."""
    if options.format == SQLITE and options.out is None:
        print("a database is no text: name a file for it with -o", file=sys.stderr)
        return None
    with TraceReader(options.file) as trace:
        sieve = DeliveryFilter(wanted, trace)
        if options.out is None:
            sys.stdout.writelines(_lines(options.format, trace, sieve))
            warn_of_end(trace)
            return sieve.taken
        with whole_file(options.out) as path:
            if options.format == SQLITE:
                save(trace, sieve, path)
            else:
                with path.open("w", encoding="utf-8") as file:
                    file.writelines(_lines(options.format, trace, sieve))
    warn_of_end(trace)
    return sieve.taken


def _lines(format_: str, trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    return (f"{line}\n" for line in FORMATS[format_](trace, sieve))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a file to write to that gets this name when it is whole, and is gone if it fails.

    A pipe or a device is written to as it is: a file in its place would be read by nobody.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    with NamedTemporaryFile(prefix=f".{path.name}.", dir=path.parent, delete=False) as file:
        part = Path(file.name)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# -- questions


def add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="a question to the tables that export has")
    parser.add_argument("--save", type=Path, metavar="DB", help="keep the database in this file")
    parser.add_argument(
        "--seconds", default=QUERY_S, type=_seconds, metavar="N",
        help="how long the question may take (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object on a line")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is no number of seconds above 0")
    return seconds


def ask(options: argparse.Namespace, wanted: FilterOptions) -> bool:
    """Print the answer; return whether the question was understood."""
    with TemporaryDirectory(prefix="yunikorn-actors-") as folder:
        path = Path(folder, "trace.sqlite")
        with TraceReader(options.file) as trace:
            save(trace, DeliveryFilter(wanted, trace), path)
        if options.save is not None:
            with whole_file(options.save) as kept:
                kept.write_bytes(path.read_bytes())
        rows = query(path, options.sql, options.seconds)
        try:
            (_print_json if options.json else _print_table)(rows)
        except QueryError as error:
            print(f"the question has no answer: {printable(str(error))}", file=sys.stderr)
            return False
    warn_of_end(trace)
    return True


def warn_of_end(trace: TraceReader) -> None:
    """Say that a recording that was read has no end: what was counted may not be all there was."""
    if trace.footer is None:
        print(printable(f"{trace.path}: {ending(trace)}"), file=sys.stderr)


def _print_json(rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        print(msgspec.json.encode(row).decode())


def _print_table(rows: Iterable[dict[str, Any]]) -> None:
    """Columns are parted by tabs."""
    for number, row in enumerate(rows):
        if number == 0:
            print("\t".join(map(_cell, row)))
        print("\t".join(map(_cell, row.values())))


def _cell(value: object) -> str:
    return "" if value is None else printable(str(value))
