"""`trace view`: a recording, or two of them, as a page for a browser."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.terminal import Progress
from yunikorn_actors.cli.trace_export import whole_file
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.records.source import STANDARD_INPUT, readable_twice
from yunikorn_actors.trace.view.objects import WHY_USUAL, WhyOf
from yunikorn_actors.trace.view.run_data import Shown
from yunikorn_actors.trace.view.run_page import page


def add_view(parser: argparse.ArgumentParser) -> None:
    add_policies(parser)
    parser.add_argument(
        "other", type=Path, nargs="?", metavar="OTHER", help="a recording to lay beside it"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT",
        help="the file; without it, one named after the recording, in the present folder",
    )  # fmt: skip
    parser.add_argument(
        "--why", choices=[it.value for it in WhyOf], default="filtered",
        help="of which asks it tells why they waited: of all, of none, or (as if nothing is said) "
        f"of the first {WHY_USUAL} that the filters leave",
    )  # fmt: skip


def view(options: argparse.Namespace, wanted: FilterOptions) -> list[int]:
    """Write the page, and return how many messages of each recording are in it."""
    files = [options.file] if options.other is None else [options.file, options.other]
    with ExitStack() as opened:
        paths = [opened.enter_context(readable_twice(path)) for path in files]
        names = [path.absolute().name for path in files]
        given = options.policies.given
        shown = [Shown(name, path, given) for name, path in zip(names, paths, strict=True)]
        progress = opened.enter_context(Progress())
        made = page(shown, wanted, WhyOf(options.why), progress.tell)
    out = options.out or Path(f"{_stem(options.file)}.html")
    with whole_file(out) as path:
        path.write_text(made.text, "utf-8")
    titles = " and ".join(
        f"{count} messages of {path}" for count, path in zip(made.messages, files, strict=True)
    )
    print(f"{out} shows {titles}: open it in a browser")
    return made.messages


def _stem(path: Path) -> str:
    return "trace" if path == STANDARD_INPUT else path.absolute().stem
