"""Changes for a simulation, written as the steps of a scenario.

The document is a list of steps, or a mapping with `steps`. `advance` lets time pass before what
stands behind it; `reconfigure` changes one queue of the configuration in force.
"""

from collections.abc import Iterator
from typing import Final

from yaml.nodes import MappingNode

from yunikorn_actors import si
from yunikorn_actors.config import ConfigError
from yunikorn_actors.config.yaml_tree import compose
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.step_readers import read_changes
from yunikorn_actors.scenario.steps import request_of
from yunikorn_actors.scenario.yaml_reading import ScenarioFault, refuse_ambiguous_keys, table
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Change, Reconfigure

NAMED_MAX: Final = 100_000
"""So many asks and nodes may be asked for by `count`: a short text could name any number."""
_read_document: Final = table({"steps": read_changes})


def parse_changes(source: str, file: str) -> list[Change]:
    """Read them; raise InvalidRequest with file and line for what is none."""
    try:
        written = _read(source)
        _refuse_idle(written)
        _refuse_too_many(written)
    except ConfigError as error:
        fault = error.faults[0]
        raise InvalidRequest(f"{file}:{fault.line}: {fault.what} ({fault.remedy})") from None
    except ScenarioFault as fault:
        raise InvalidRequest(f"{file}:{fault.line}: {fault}") from None
    return list(_changes(written, file))


def _read(source: str) -> tuple[w.WrittenStep, ...]:
    root = compose(source, is_alone=True)
    if root is None:
        raise ScenarioFault(1, "the file is empty; write a list of steps")
    refuse_ambiguous_keys(root)
    if not isinstance(root, MappingNode):
        return read_changes(root)
    steps: tuple[w.WrittenStep, ...] = _read_document(root).get("steps", ())
    return steps


def _refuse_idle(written: tuple[w.WrittenStep, ...]) -> None:
    """Times begin anew with each text, so one that only lets time pass has no effect."""
    if written and all(isinstance(it.step, w.Advance) for it in written):
        after_s = (
            sum(it.step.duration_ns for it in written if isinstance(it.step, w.Advance)) / SECOND
        )
        raise ScenarioFault(
            written[0].line,
            "advance: no change stands behind it, so it has no effect: to look that far ahead give "
            f"--until {after_s:g} (until={after_s:g} of a call), or write the change behind it, in "
            "the same text",
        )


def _refuse_too_many(written: tuple[w.WrittenStep, ...]) -> None:
    named = 0
    for one in written:
        named += getattr(one.step, "count", None) or 0
        if named > NAMED_MAX:
            raise ScenarioFault(
                one.line, f"count: {named} asks and nodes in all; write {NAMED_MAX} at most"
            )


def _changes(written: tuple[w.WrittenStep, ...], file: str) -> Iterator[Change]:
    after_s = 0.0
    for one in written:
        step, where = one.step, f"{file}:{one.line}: step {one.number}: {one.name}"
        match step:
            case w.Advance():
                after_s += step.duration_ns / SECOND
            case w.Config():
                update = si.UpdateConfigurationRequest(
                    rm_id=step.rm, config=step.queues, extra_config=step.extra
                )
                yield Change(update, after_s, where)
            case w.Reconfigure():
                yield Change(_reconfigure(step), after_s, where)
            case _:
                request = request_of(step, step.rm if isinstance(step, w.ManagerStep) else "")
                assert request is not None
                yield Change(request, after_s, where)


def _reconfigure(step: w.Reconfigure) -> Reconfigure:
    names = (it for it in Reconfigure.__struct_fields__ if it != "rm_id")
    given = {name: value for name in names if (value := getattr(step, name)) not in (None, "")}
    return Reconfigure(**given, rm_id=step.rm)
