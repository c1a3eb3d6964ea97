"""The steps by name, and how each is read."""

from collections.abc import Mapping
from typing import Final, TypeVar

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from yunikorn_actors.config.yaml_tree import line_of
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.expectations import EXPECTATION
from yunikorn_actors.scenario.yaml_reading import (
    Reader,
    ScenarioFault,
    allowed,
    duration,
    members,
    one_of,
    record,
    text,
    within,
    wrong,
)
from yunikorn_actors.values.tags import TAG_FOREIGN

_N = TypeVar("_N", bound=w.NamedStep)

StepReaders = Mapping[str, Reader[w.Step]]


def _named(kind: type[_N]) -> Reader[_N]:
    """Read a step that is one name, or a mapping with that name as `id`."""
    read_mapping = record(kind)
    return lambda node: read_mapping(node) if isinstance(node, MappingNode) else kind(id=text(node))


def _word_or(word: str, step: w.Step, read: Reader[w.Step]) -> Reader[w.Step]:
    """Read a step that may also be written as one word."""
    read_word = one_of({word: step})
    return lambda node: (read_word if isinstance(node, ScalarNode) else read)(node)


def _read_create_node(node: Node) -> w.CreateNode:
    step = _read_nodes(node)
    if bool(step.id) == bool(step.ids) or (step.ids and step.count is not None):
        raise ScenarioFault(
            line_of(node), "name the nodes by `id`, by `id` with `count`, or by `ids`"
        )
    return step


def _read_bind(node: Node) -> w.Bind:
    step = _read_running(node)
    if not step.app and TAG_FOREIGN not in step.tags:
        raise ScenarioFault(
            line_of(node), f"'app' is missing; only work with the tag {TAG_FOREIGN!r} has none"
        )
    return step


def _read_release(node: Node) -> w.Release:
    step = _read_ended(node)
    if not step.app and not step.key:
        raise ScenarioFault(line_of(node), "'app' is missing; only with a 'key' it may be left out")
    return step


def _read_confirm(node: Node) -> w.Confirm | w.ConfirmAll:
    """Read a confirmation; one that names a resource manager alone is of all that it has open."""
    is_of_all = [key.value for key, _ in members(node)] == ["rm"]
    return (_read_confirmed_all if is_of_all else _read_confirmed)(node)


def _read_config(node: Node) -> w.Config:
    """Read a configuration, alone or under `queues` beside other keys."""
    if any(key.value == "queues" for key, _ in members(node)):
        return _read_config_fields(node)
    return w.Config(queues=w.configuration(node))


def _steps(readers: StepReaders) -> Reader[tuple[w.WrittenStep, ...]]:
    def read(node: Node) -> tuple[w.WrittenStep, ...]:
        if not isinstance(node, SequenceNode):
            raise wrong(node, "a list of steps")
        if not node.value:
            raise ScenarioFault(line_of(node), "the list is empty; write a list of steps")
        return tuple(
            within(f"step {number}", _step(readers, number), item)
            for number, item in enumerate(node.value, 1)
        )

    return read


def _step(readers: StepReaders, number: int) -> Reader[w.WrittenStep]:
    def read(node: Node) -> w.WrittenStep:
        written = list(members(node))
        if len(written) != 1:
            raise ScenarioFault(line_of(node), f"a step has exactly one key, not {len(written)}")
        key, value = written[0]
        name = str(key.value)
        if name not in readers:
            raise ScenarioFault(line_of(key), f"unknown step {name!r}; {allowed(readers)}")
        step = within(name, readers[name], value)
        return w.WrittenStep(number=number, line=line_of(key), name=name, step=step)

    return read


_read_nodes: Final = record(w.CreateNode)
_read_running: Final = record(w.Bind)
_read_ended: Final = record(w.Release)
_read_confirmed: Final[Reader[w.Confirm]] = record(w.Confirm)
_read_confirmed_all: Final[Reader[w.ConfirmAll]] = record(w.ConfirmAll)
_read_config_fields: Final = record(w.Config)

_REQUESTS: Final[dict[str, Reader[w.Step]]] = {
    "register": record(w.Register),
    "create_node": _read_create_node,
    "update_node": record(w.UpdateNode),
    "drain_node": _named(w.DrainNode),
    "undrain_node": _named(w.UndrainNode),
    "remove_node": _named(w.RemoveNode),
    "add_app": record(w.AddApp),
    "remove_app": _named(w.RemoveApp),
    "ask": record(w.AddAsk),
    "release_ask": record(w.ReleaseAsk),
    "release": _read_release,
    "confirm": _word_or("all", w.ConfirmAll(), _read_confirm),
    "bind": _read_bind,
    "config": _read_config,
    "lose_rm": _named(w.LoseRm),
    "unregister": _named(w.Unregister),
    "raw": record(w.Raw),
    "predicate": _word_or("allow", w.Predicate(), record(w.Predicate)),
}
"""The steps that send something; only these may be in a `together`."""

_read_together: Final = _steps(_REQUESTS)
_STEPS: Final[dict[str, Reader[w.Step]]] = {
    **_REQUESTS,
    "advance": lambda node: w.Advance(duration_ns=duration(node)),
    "together": lambda node: w.Together(steps=_read_together(node)),
    "expect": lambda node: w.Expect(expected=EXPECTATION.read(node)),
}

read_steps: Final = _steps(_STEPS)

_NO_CHANGES: Final = ("register", "confirm", "lose_rm", "unregister", "raw", "predicate")
read_changes: Final = _steps({
    **{name: read for name, read in _REQUESTS.items() if name not in _NO_CHANGES},
    "reconfigure": record(w.Reconfigure),
    "advance": _STEPS["advance"],
})  # fmt: skip
"""The steps that may change a simulation."""
