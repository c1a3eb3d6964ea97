"""What a resource manager was notified of through a portal is what its hosts hold, at rest."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hosting import NearHost, portal
from recorded_clients import Client, agree_in_the_end, play

from yunikorn_actors import SchedulerCore
from yunikorn_actors.service.cluster.portal import ClusterCore

PARTITIONS = ("default", "gpu")
UNTOLD = r"G21: .* notified last of state|G27: .* notified last of container state|G25: .* asked for (node|application)"
"""A state that was decided just before a host ended is not told again, and of several additions
that it had not answered the last one is; docs/how-to/serve-on-a-cluster.md says so."""


def cores_of(hosts: Mapping[str, NearHost]) -> list[SchedulerCore]:
    found = []
    for near in hosts.values():
        assert near.host is not None
        found.append(near.host._core)
    return found


seeds = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(it, marks=pytest.mark.slow) for it in range(2, 20))]
)


def clients_of(core: ClusterCore, seed: int) -> list[Client]:
    return [
        Client(core, f"rm-{number}", 10 * seed + number, "", PARTITIONS, ("root.work",))
        for number in range(2)
    ]


@seeds
def test_at_rest_the_record_is_what_the_hosts_hold(seed: int) -> None:
    with portal(*PARTITIONS) as (core, hosts):
        clients = clients_of(core, seed)
        play(clients, 80)
        for client in clients:
            agree_in_the_end(client, *cores_of(hosts))


@seeds
def test_so_it_is_when_a_host_ends_in_the_middle_and_comes_back(seed: int, tmp_path: Path) -> None:
    with portal(*PARTITIONS, journal=tmp_path) as (core, hosts):
        clients = clients_of(core, seed)
        ends = 0

        def end_one() -> None:
            nonlocal ends
            host = hosts[PARTITIONS[ends % 2]]
            host.end()
            host.begin()
            ends += 1

        play(clients, 80, end_one)
        assert 3 == ends
        for client in clients:
            agree_in_the_end(client, *cores_of(hosts), but=UNTOLD)
