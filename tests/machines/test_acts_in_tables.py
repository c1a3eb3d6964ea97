"""The message of an administrator's act stands in each table that knows such messages by class.

Where it is forgotten it overtakes long work of its manager, is missing in a journal, or is left out
when a recording is played under another configuration, and nothing says so.
"""

from collections.abc import Container

import pytest

from yunikorn_actors.journal import journaled_context
from yunikorn_actors.machines.context import context
from yunikorn_actors.messages import rm_events
from yunikorn_actors.messages.base import Message
from yunikorn_actors.trace import other_configuration

ACTS = [
    kind
    for kind in vars(rm_events).values()
    if isinstance(kind, type) and {"by", "reply_to"} <= {*getattr(kind, "__struct_fields__", ())}
]
TABLES: dict[str, Container[type]] = {
    "order keys": context._ORDER_KEYS,
    "requests of the journal": journaled_context._REQUESTS,
    "calls of another configuration": other_configuration._CALLS,
}


def test_there_are_acts() -> None:
    assert {rm_events.AdminNodeUpdate, rm_events.RMUnregistered} <= {*ACTS}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("table", TABLES)
def test_it_stands_in_each_table(table: str, act: type[Message]) -> None:
    of_all = not {"partition", "rm_id"} & {*act.__struct_fields__}
    assert act in TABLES[table] or (of_all and table == "order keys")
