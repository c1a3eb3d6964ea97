"""Scenario files as plain data: what can be drawn, changed, made small and written again."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

Data = Any
"""What YAML holds: mappings, lists, and single values."""
Document = dict[str, Data]
"""A mapping with the keys of a scenario file."""
WIDTH: Final = 120
_LONG: Final = ("config", "register")
"""Steps that hold a configuration: that takes several lines."""


class _Step(dict[str, Data]):
    """A step, of which the word is written first."""


class _Line(dict[str, Data]):
    """What a step is about, in one line."""


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Data) -> bool:  # noqa: ARG002 - as the library calls it
        return True

    def represent_step(self, data: _Step) -> yaml.MappingNode:
        return self.represent_mapping("tag:yaml.org,2002:map", data, flow_style=False)

    def represent_line(self, data: _Line) -> yaml.MappingNode:
        return self.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


_Dumper.add_representer(_Step, _Dumper.represent_step)
_Dumper.add_representer(_Line, _Dumper.represent_line)


def document_of(text: str) -> Document:
    """Read the text of a scenario file that is known to be one."""
    document: Document = yaml.load(text, Loader=yaml.CSafeLoader)
    return document


def written(document: Document) -> str:
    """Write it as a scenario file, each step in a line."""
    shown = {**document, "steps": [_in_lines(step) for step in document["steps"]]}
    text: str = yaml.dump(
        shown, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=WIDTH,
        allow_unicode=True,
    )  # fmt: skip
    return text


def _in_lines(step: Document) -> _Step:
    return _Step({word: _in_line(word, about) for word, about in step.items()})


def _in_line(word: str, about: Data) -> Data:
    if word == "together":
        return [_in_lines(inner) for inner in about]
    return _Line(about) if isinstance(about, dict) and word not in _LONG else about


def steps_alone(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the steps of a case with their numbers on a tape: those of a `together` one by one."""
    for number, step in enumerate(document["steps"], 1):
        if "together" in step:
            for inner_number, inner in enumerate(step["together"], 1):
                yield f"{number}.{inner_number}", inner
        elif "expect" not in step:
            yield str(number), step
