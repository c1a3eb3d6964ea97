"""`trace export`: write a recording in another format, to a file or to standard output."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from yunikorn_actors.trace.export.formats import FORMATS
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.wanted import Sieve, Wanted


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, choices=FORMATS, help="the format", dest="format")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help="the file; without it, standard output"
    )


def export(options: argparse.Namespace, wanted: Wanted) -> int:
    """Return how many messages were wanted."""
    with TraceReader(options.file) as trace:
        sieve = Sieve(wanted, trace)
        lines = (f"{line}\n" for line in FORMATS[options.format](trace, sieve))
        if options.out is None:
            sys.stdout.writelines(lines)
            return sieve.taken
        with whole_file(options.out) as path, path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    return sieve.taken


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a file to write to that gets this name when it is whole, and is gone if it fails."""
    with NamedTemporaryFile(prefix=f".{path.name}.", dir=path.parent, delete=False) as file:
        part = Path(file.name)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
