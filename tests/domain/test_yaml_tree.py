"""PyYAML's own parser and libyaml read a text alike."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from yunikorn_actors.config import yaml_tree
from yunikorn_actors.config.fault import ConfigError
from yunikorn_actors.config.yaml_tree import compose

SCENARIOS = Path(__file__).parent.parent / "scenarios"
MARKS = [
    *"{}[]:,-#&*|>'\"@`= ~^0a\n", ": ", "- ", "\n- ", "\n  ", " #", "<<", "---\n", "...\n", "|-\n",
    ">+\n", "k: v\n", "? ", "\t", "!!str ", "%", "5%", "\n7%", "\\", "\r",
]  # fmt: skip
needs_libyaml = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML has no libyaml")


def shape(node: Node | None) -> Any:
    if node is None:
        return None
    line = node.start_mark.line
    if isinstance(node, ScalarNode):
        return node.tag, line, node.value, node.style
    if isinstance(node, MappingNode):
        return node.tag, line, [(shape(key), shape(value)) for key, value in node.value]
    return node.tag, line, [shape(it) for it in node.value]


def read(text: str) -> Any:
    try:
        return shape(compose(text))
    except ConfigError as error:
        return str(error)


def texts(number: int) -> list[str]:
    """Lines of scenario files, with marks of YAML put in and characters taken out."""
    draw = random.Random(11)  # noqa: S311 - texts for a test
    files = [it.read_text("utf-8").splitlines(keepends=True) for it in SCENARIOS.rglob("*.yaml")]
    found = []
    for _ in range(number):
        lines = draw.choice(files)
        first = draw.randrange(len(lines))
        text = "".join(lines[first : first + draw.choice((1, 3, 8))])
        for _ in range(draw.choice((0, 1, 1, 2, 4))):
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(MARKS) + text[at + draw.choice((0, 0, 1, 2)) :]
        found.append(text)
    return found


@needs_libyaml
@pytest.mark.parametrize(
    "number", [400, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_both_parsers_read_the_same(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = texts(number)
    quick = [read(text) for text in drawn]
    monkeypatch.setattr(yaml_tree, "_QUICK", None)
    for text, found in zip(drawn, quick, strict=True):
        assert read(text) == found, text
    kinds = Counter(type(found) for found in quick)
    assert min(kinds[str], kinds[tuple]) > number / 10, "vacuous: all alike"


@needs_libyaml
def test_libyaml_reads_what_both_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_tree, "_StrictLoader", None)
    assert compose('partitions: [{name: "default", share: 50%}]') is not None
    with pytest.raises(TypeError):
        compose("partitions:\t[]")
