"""What an administrator does to a node by hand: a row for each act, for every way to it.

From a row come the route of REST and the right that it needs, the question to a core, here or on a
cluster, and what the command says when it is done. The command is a module of `cli` of this name,
and a line in the table there.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    # The commands read this table, and load nothing that runs a core.
    from yunikorn_actors.service.served import QuestionedCore


class NodeAct(NamedTuple):
    summary: str
    """Of the route: what is so from then on."""
    done: str
    """Printed by the command; `{node}` is the id, `{allocations}` how many run there."""
    change: "Callable[[QuestionedCore, str, str, str], None]"
    """Do it to a node of a partition; the last argument is who asked."""


NODE_ACTS: Final = {
    "drain": NodeAct(
        "the node takes no new work",
        "{node} is drained: nothing new is placed there; allocations that go on: {allocations}",
        lambda core, partition, node, by: core.set_drained(partition, node, by, drained=True),
    ),
    "undrain": NodeAct(
        "the node takes work again",
        "{node} takes work again",
        lambda core, partition, node, by: core.set_drained(partition, node, by, drained=False),
    ),
}
