"""What can be seen of a policy without asking it: its methods, and how they are written."""

import inspect
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.lab.policy_check.findings import Findings
from yunikorn_actors.policies.guard import shown, tried
from yunikorn_actors.policies.places import METHODS
from yunikorn_actors.policies.registry import methods_of, step_of, unwritable

_DECIDES: Final = tuple(name for name in METHODS if name not in {"devices", "observe"})
_NEAR: Final = 0.8


def made_of(policy: object, findings: Findings) -> Any | None:  # noqa: ANN401 - what it makes
    """Make one and look at its methods; None if it is of no use to play with it."""
    if not callable(policy):
        findings.add("type", f"it is {shown(policy, 100)}, and no class")
        return None
    made, fault = tried("making it", policy)
    if fault:
        findings.add("type", f"it cannot be made without arguments: {fault}")
        return None
    findings.of_class(type(made))
    _, fault = tried("reading its methods", methods_of, made)
    if fault:
        findings.add("type", f"its attributes raise: {fault}")
        return None
    before = len(findings.all())
    for name in METHODS:
        if hasattr(made, name):
            _look_at(name, getattr(made, name), findings)
    _look_for_slips(made, findings)
    if not any(hasattr(made, name) for name in _DECIDES):
        findings.add("type", f"it decides nothing: it has none of {', '.join(_DECIDES)}")
    _look_at_fields(made, findings)
    return None if len(findings.all()) > before else made


def _look_at(name: str, method: Any, findings: Findings) -> None:  # noqa: ANN401
    given = METHODS[name]
    shape = f"{name}(self, {', '.join(given)})"
    if not callable(method):
        findings.add("shape", f"{name} is {shown(method, 100)}, and no method; it is {shape}", name)
        return
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        findings.add("shape", f"{name} is written with `async def`, and nobody awaits it", name)
    elif inspect.isgeneratorfunction(method):
        findings.add("shape", f"{name} is a generator, and nobody iterates over it", name)
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        findings.add("shape", f"{name} cannot be called as {shape}", name)
    except ValueError:
        """It has no signature, as some functions in C have none."""


def _look_for_slips(made: object, findings: Findings) -> None:
    own = [name for kind in type(made).__mro__[:-1] for name in vars(kind)]
    for name in dict.fromkeys(own):
        if name in METHODS or name.startswith("_") or not callable(getattr(made, name, None)):
            continue
        for near in get_close_matches(name, METHODS, 1, _NEAR):
            if not hasattr(made, near):
                findings.add("shape", f"nobody calls {name}: did you mean {near}?", name)


def _look_at_fields(made: object, findings: Findings) -> None:
    _, fault = tried("reads", step_of, made)
    if fault:
        findings.add("type", fault.partition("raised InvalidPolicy(")[2].rstrip(")") or fault)
    if not isinstance(getattr(made, "takes_gangs", True), bool):
        findings.add("type", "takes_gangs is neither True nor False")
    if hasattr(made, "observe"):
        if not (is_dataclass(made) or isinstance(made, Struct)):
            findings.add("fold", "it has observe, and what it keeps has no types")
        elif fault := unwritable(made):
            findings.add("fold", f"what it keeps cannot be written down: {fault}", "observe")
        if hasattr(made, "score"):
            what = "it has score and observe, and a node score is given no facts"
            findings.add("type", what, "observe")
