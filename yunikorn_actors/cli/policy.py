"""`policy check`: is a class a policy, and a good one? Faults are named with place and remedy."""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import to_builtins

from yunikorn_actors.lab.nondeterminism_guard import shown_path
from yunikorn_actors.lab.policy_check.check import WORLDS, Report, check_policy
from yunikorn_actors.policies.loading import found_at
from yunikorn_actors.policies.registry import SHIPPED, InvalidPolicy, installed


class _Named(NamedTuple):
    policy: Any
    name: str
    place: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="play it in drawn worlds and watch each of its calls")
    check.add_argument(
        "policies", nargs="+", metavar="MODULE:CLASS", type=_loaded,
        help="a policy, what makes one, or a mapping of names to such; or the name of one that is "
        "shipped, or that an installed package has",
    )  # fmt: skip
    check.add_argument(
        "--seed", type=_whole(0), default=1, metavar="N",
        help="another seed, other worlds (default: 1)",
    )  # fmt: skip
    check.add_argument(
        "--worlds", type=_whole(1), default=WORLDS, metavar="N",
        help=f"so many worlds (default: {WORLDS})",
    )  # fmt: skip
    check.add_argument("--json", action="store_true", help="one JSON object for each policy")


def run(options: argparse.Namespace) -> int:
    is_good = True
    for named in (it for loaded in options.policies for it in loaded):
        report = check_policy(
            named.policy, seed=options.seed, worlds=options.worlds, name=named.name,
            place=named.place,
        )  # fmt: skip
        print(_as_json(report) if options.json else report.text, flush=True)
        is_good = is_good and report.is_good
    return 0 if is_good else 1


def _as_json(report: Report) -> str:
    remedies = [{"remedy": finding.remedy} for finding in report.findings]
    written: dict[str, Any] = to_builtins(report)
    for finding, remedy in zip(written["findings"], remedies, strict=True):
        finding.update(remedy)
    return json.dumps(written)


def _whole(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"{text} is too small: give {least} or more")
        return number

    return whole


def _loaded(text: str) -> tuple[_Named, ...]:
    if ":" not in text:
        known = installed() | SHIPPED
        if text not in known:
            what = f"no policy {text!r:.100} is shipped or installed ({', '.join(sorted(known))})"
            raise argparse.ArgumentTypeError(f"{what}: give MODULE:CLASS for one in a file")
        return (_Named(known[text], "", ""),)
    try:
        found = found_at(text)
    except InvalidPolicy as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if isinstance(found, Mapping):
        return tuple(_Named(policy, str(name), "") for name, policy in found.items())
    if isinstance(found, type):
        return (_Named(found, "", ""),)
    module, _, attribute = text.partition(":")
    return (_Named(found, attribute, _place(sys.modules[module], attribute)),)


def _place(module: object, attribute: str) -> str:
    """Return the line that gives the attribute its value, if it is written there."""
    try:
        file = inspect.getsourcefile(module)  # type: ignore[arg-type] # a TypeError is answered
        tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError):
        return ""
    line = next((node.lineno for node in tree.body if attribute in _names(node)), 1)
    return f"{shown_path(file or '?')}:{line}"


def _names(node: ast.stmt) -> Iterator[str]:
    for target in getattr(node, "targets", (node,)):
        yield getattr(target, "id", getattr(target, "name", ""))
