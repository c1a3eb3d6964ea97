"""The page on the configuration has every key that the parser knows, and its examples are read."""

import re

import pytest
import yaml
from pages import REPOSITORY

from yunikorn_actors.config import parse_config, schema, warnings_in
from yunikorn_actors.config.placement_rules import KNOWN_RULES
from yunikorn_actors.config.properties import READERS, QueueProperties

PAGE = (REPOSITORY / "docs/reference/configuration.md").read_text("utf-8")
KEYS = {
    "The document": schema.CONFIG,
    "A partition": schema.PARTITION,
    "A queue": schema.QUEUE,
    "Resources of a queue": schema.RESOURCES,
    "Properties of a queue": READERS,
    "A template": schema.TEMPLATE,
    "A limit": schema.LIMIT,
    "A placement rule": schema.RULE,
    "A filter": schema.FILTER,
    "Preemption": schema.PREEMPTION,
    "Node order": schema.NODE_SORT,
    "Groups of users": schema.RESOLVER,
}
"""Each part of the page, and what it has to list."""


def part(title: str) -> str:
    _, _, rest = PAGE.partition(f"# {title}\n")
    return re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0]


def keys_in(text: str) -> list[str]:
    """Return the first column of the first table."""
    table = re.search(r"^\| key .*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return re.findall(r"^\| `([\w.]+)` \|", table[1], re.MULTILINE) if table else []


def examples() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_no_table_of_the_parser_is_left_out() -> None:
    tables = [it for name, it in vars(schema).items() if isinstance(it, dict) and name.isupper()]
    known = [id(table) for table in KEYS.values()]
    assert [] == [
        table for table in tables if id(table) not in known and table is not schema._KINDS
    ]


@pytest.mark.parametrize("title", KEYS)
def test_every_key_has_its_row(title: str) -> None:
    assert sorted(KEYS[title]) == sorted(keys_in(part(title)))


def test_a_key_without_a_row_is_noticed() -> None:
    text = part("A limit").replace("| `groups` |", "| `gruops` |")
    assert sorted(schema.LIMIT) != sorted(keys_in(text))


def test_the_defaults_of_properties_are_those_of_the_core() -> None:
    rows = dict(
        re.findall(
            r"^\| `([\w.]+)` \| [^|]* \| ([^|]*) \|", part("Properties of a queue"), re.MULTILINE
        )
    )
    written = {
        key: text.strip("`")
        for key, text in rows.items()
        if text not in {"never", "as the setting"}
    }
    assert QueueProperties() == QueueProperties.of(written)
    assert QueueProperties() == QueueProperties.of({})


def test_every_rule_is_explained() -> None:
    named = re.findall(r"^\| `(\w+)` \| (?:the queue)", part("A placement rule"), re.MULTILINE)
    assert sorted(KNOWN_RULES) == sorted(named)


@pytest.mark.parametrize("text", examples())
def test_an_example_is_read_without_a_warning(text: str) -> None:
    parse_config(text)
    assert () == warnings_in(text)


def test_every_key_stands_in_an_example() -> None:
    shown: set[str] = set()
    waiting = [yaml.safe_load(text) for text in examples()]
    while waiting:
        value = waiting.pop()
        shown |= set(value) if isinstance(value, dict) else set()
        waiting += (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        )
    known = {key for table in KEYS.values() for key in table}
    assert {"checksum"} == known - shown
