"""Draining by hand: a row for each act on the drain of a node, for every way to it.

From a row come the route of REST and the right that it needs, the question to a core, here or on a
cluster, and what the command says when it is done. The command is a module of `cli` of this name,
and stands in `GROUPS` of `cli/__init__.py`.
"""

from typing import Final, NamedTuple


class NodeAct(NamedTuple):
    summary: str
    """Of the route: what is so from then on."""
    done: str
    """Printed by the command; `{node}` is the id, `{allocations}` how many run there."""
    drained: bool
    """Whether the node is to be drained."""


NODE_ACTS: Final = {
    "drain": NodeAct(
        "the node takes no new work",
        "{node} is drained: nothing new is placed there; allocations that go on: {allocations}",
        drained=True,
    ),
    "undrain": NodeAct(
        "the node takes work again",
        "{node} takes work again",
        drained=False,
    ),
}
