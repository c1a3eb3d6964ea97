"""Which topologies there are, and how many schedulers plan for a partition."""

import asyncio
from typing import Any

import pytest

from yunikorn_actors import AsyncSchedulerCore, InvalidTopology, SchedulerCore
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology

REFUSED: dict[str, tuple[Any, Any, str]] = {
    "unknown": ("flat", 1, "unknown topology 'flat': choose one of proposing, fused"),
    "fused has one planner": ("fused", 2, "fused has no room for several schedulers"),
    "none": ("proposing", 0, "0 schedulers for a partition are not allowed: give a whole number"),
    "too many": ("proposing", 65, "from 1 to 64"),
    "a yes": ("proposing", True, "True schedulers"),
    "a text": ("proposing", "2", "'2' schedulers"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(what: str) -> None:
    name, schedulers, reason = REFUSED[what]
    with pytest.raises(InvalidTopology, match=reason):
        Topology(name, settings=Settings(), instance="t", schedulers=schedulers)
    with pytest.raises(InvalidTopology, match=reason):
        SchedulerCore(topology=name, schedulers=schedulers)

    async def on_a_loop() -> None:
        AsyncSchedulerCore(topology=name, schedulers=schedulers)

    with pytest.raises(InvalidTopology, match=reason):
        asyncio.run(on_a_loop())


def test_one_is_what_there_is_without_asking() -> None:
    topology = Topology("fused", settings=Settings(), instance="t")
    assert 1 == topology.schedulers
    assert topology.described() == {
        "topology": "fused", "schedulers": 1, "instance": "t",
        "settings": topology.described()["settings"],
    }  # fmt: skip
