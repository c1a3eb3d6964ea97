"""Changes in a word: `--ask`, `--gang` and `--node` of `simulate`, made the steps of a file."""

import argparse
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.arguments import read_gpu
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.values.devices import WHOLE
from yunikorn_actors.values.quantity import QuantityError, meant_by, parse_quantity
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, GPU_MODEL, TAG_RUNTIME

Step = dict[str, Any]
NEW: Final = "what-if"
"""The first application, gang, ask or node that is given no name; others have a number behind."""
_KINDS: Final = {"cpu": "vcore", "gpus": GPU}
_OF_APP: Final = ("queue", "user")
_TAGS: Final = {"runtime": TAG_RUNTIME, "gpu-model": GPU_MODEL}
_NAMES: Final = {
    "ask": ("app", *_OF_APP, "key", "count", "priority", "node", *_TAGS, "partition"),
    "gang": ("app", *_OF_APP, "count", "priority", *_TAGS, "partition"),
    "node": ("id", "count", "partition", "gpu-model"),
}
"""By option; what has another name is an amount."""
_WHOLE: Final = ("count", "priority")


def add_short_changes(parser: argparse.ArgumentParser) -> None:
    for name, words in (
        ("ask", "ask for this, as in app=a,queue=root.x,cpu=2,memory=4Gi,count=10"),
        ("gang", "ask for members that start together, as in queue=root.x,count=8,cpu=2"),
        ("node", "add such nodes, as in cpu=16,memory=64Gi,count=2"),
    ):
        parser.add_argument(
            f"--{name}", dest="short", action="append", default=[], metavar="WORDS", help=words,
            type=partial(_named, name),
        )  # fmt: skip


def _named(name: str, text: str) -> tuple[str, str]:
    return name, text


def steps_of(name: str, text: str, number: int = 1) -> str:
    """Write what such an option asks for as steps; raise InvalidRequest for what it cannot mean.

    What has no name is called by the `number` of the option.
    """
    given: Step = {}
    for word in text.split(","):
        key, is_given, value = (it.strip() for it in word.partition("="))
        if not (is_given and key and value):
            raise _fault(name, f"{word!r} is no NAME=VALUE", "write cpu=2,memory=4Gi")
        if key in given:
            raise _fault(name, f"{key} is given twice", "give it once")
        given[key] = value
    words = {key: given.pop(key) for key in _NAMES[name] if key in given}
    for key in _WHOLE:
        if key in words:
            words[key] = _whole(name, key, words[key])
    if "runtime" in words:
        _check_runtime(name, words["runtime"])
    amounts = {_KINDS.get(key, key): _amount(name, key, it) for key, it in given.items()}
    if not amounts:
        raise _fault(name, "it names no amount", "add one, such as cpu=2 or memory=4Gi")
    return json.dumps([*_STEPS[name](words, amounts, NEW if number == 1 else f"{NEW}{number}")])


def _fault(name: str, what: str, remedy: str) -> InvalidRequest:
    return InvalidRequest(f"--{name}: {what}: {remedy}")


def _whole(name: str, key: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise _fault(name, f"{key} is no whole number: {text!r}", f"write {key}=3") from None
    if key == "count" and number < 1:
        raise _fault(name, f"count is {number}", "ask for one at least")
    return number


def _check_runtime(name: str, text: str) -> None:
    if declared_ns(text) is None:
        raise _fault(name, f"runtime is no number of seconds: {text!r}", "write runtime=600")


def _amount(name: str, key: str, text: str) -> int:
    known = ", ".join((*_NAMES[name], "and kinds of resources such as cpu and memory"))
    kind = _KINDS.get(key, key)
    if kind == GPU:
        return _devices(name, text)
    if (meant := meant_by(kind, _NAMES[name])) is not None:
        raise _fault(name, f"{key} is no name", f"write {meant}; there are {known}")
    try:
        return parse_quantity(kind, text)
    except QuantityError as error:
        written = f"write digits and perhaps a unit, such as 2 or 4Gi; there are {known}"
        raise _fault(name, f"{key}: {error}", written) from None


def _devices(name: str, text: str) -> int:
    """Read devices as an ask of a program gives them; a node has whole ones."""
    what, number = f"--{name}", re.fullmatch(r"[0-9]+(\.[0-9]+)?", text)
    amount = read_gpu(what, float(text) if number else text)
    if name == "node" and amount % WHOLE:
        raise _fault(name, f"gpu is {text}, and a node has whole devices", "write gpu=1")
    return amount


def _ask(words: Step, amounts: Step, name: str) -> list[Step]:
    new, app = _application(words, {}, name)
    ask = (
        _place(words)
        | {"app": app, "key": words.get("key", name), "resource": amounts}
        | {key: words[key] for key in ("count", "priority") if key in words}
    )
    if "node" in words:
        ask["required_node"] = words["node"]
    return [*new, {"ask": ask | _tags(words)}]


def _gang(words: Step, amounts: Step, name: str) -> list[Step]:
    """Ask for its placeholders, and for the members that take their places."""
    count = words.get("count", 1)
    whole = {kind: count * amount for kind, amount in amounts.items()}
    new, app = _application({"queue": "", **words}, {"placeholder_ask": whole}, name)
    member = {
        "app": app, "key": name, "resource": amounts, "count": count, "task_group": name,
        "priority": words.get("priority", 0), **_tags(words), **_place(words),
    }  # fmt: skip
    placeholder = {**member, "key": f"{name}-placeholder", "placeholder": True}
    return [*new, {"ask": placeholder}, {"ask": member}]


def _application(words: Step, more: Step, name: str) -> tuple[list[Step], str]:
    """Return the step that adds it: with a queue or a user it is a new one."""
    app = words.get("app", name)
    own = {key: words[key] for key in _OF_APP if key in words}
    added = {"id": app} | own | more | _place(words)
    return ([{"add_app": added}] if own or "app" not in words else []), app


def _place(words: Step) -> Step:
    return {"partition": words["partition"]} if "partition" in words else {}


def _tags(words: Step) -> Step:
    tags = {tag: words[word] for word, tag in _TAGS.items() if word in words}
    return {"tags": tags} if tags else {}


def _node(words: Step, amounts: Step, name: str) -> list[Step]:
    attributes = {GPU_MODEL: words.pop("gpu-model")} if "gpu-model" in words else {}
    if GPU in amounts:
        attributes[GPU_DEVICES] = str(amounts[GPU] // WHOLE)
    return [{"create_node": {"id": name, "capacity": amounts, "attributes": attributes} | words}]


_STEPS: Final[dict[str, Callable[[Step, Step, str], list[Step]]]] = {
    "ask": _ask, "gang": _gang, "node": _node,
}  # fmt: skip
