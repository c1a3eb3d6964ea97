"""Every item goes to the partition that it names, once, in order."""

from typing import Any

import pytest
from hosting import application, ask, node, release, remove
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors import si
from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.policies import registry
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.service.cluster.split import config_for, home_of, names_in, split
from yunikorn_actors.values.tags import NODE_PARTITION

HOMES = ("default", "gpu", "spot")
CONFIG = """
partitions:
  - name: default
    placementrules: [{name: user, create: true}]
    queues: [{name: root, queues: [{name: a, resources: {max: {vcore: 2}}}]}]
  - name: gpu
    nodesortpolicy: {type: binpacking}
    queues: [{name: root, queues: [{name: a}]}]
"""


@pytest.mark.parametrize(
    ("named", "home"),
    [("", "default"), ("gpu", "gpu"), ("[rm-1]gpu", "gpu"), ("[rm-1]default", "default")],
)
def test_a_partition_is_named_as_its_manager_or_the_core_does(named: str, home: str) -> None:
    assert home == home_of("rm-1", si.AllocationAsk(partition_name=named))
    assert home == home_of("rm-1", si.NodeInfo(attributes={NODE_PARTITION: named}))


def test_a_node_without_the_attribute_is_of_the_default_partition() -> None:
    assert "default" == home_of("rm-1", si.NodeInfo(node_id="n"))


names = st.sampled_from(("", *HOMES, "[rm-1]gpu"))
keys = st.lists(names, max_size=12)


@given(asks=keys, reports=keys, releases=keys, withdrawn=keys)
def test_the_parts_together_are_the_whole(
    asks: list[str], reports: list[str], releases: list[str], withdrawn: list[str]
) -> None:
    def numbered(kind: type, partitions: list[str]) -> tuple:
        return tuple(
            kind(allocation_key=str(n), partition_name=name) for n, name in enumerate(partitions)
        )

    whole = si.AllocationRequest(
        rm_id="rm-1",
        asks=numbered(si.AllocationAsk, asks),
        allocations=numbered(si.Allocation, reports),
        releases=si.AllocationReleasesRequest(
            allocations_to_release=numbered(si.AllocationRelease, releases),
            allocation_asks_to_release=numbered(si.AllocationAskRelease, withdrawn),
        ),
    )
    parts = split(whole, HOMES)
    assert all("rm-1" == it.rm_id for it in parts.values())

    def of(request: si.AllocationRequest, home: str) -> list[tuple]:
        lists = (request.asks, request.allocations)
        if request.releases is not None:
            lists += (
                request.releases.allocations_to_release,
                request.releases.allocation_asks_to_release,
            )
        return [tuple(it for it in items if home_of("rm-1", it) == home) for items in lists]

    for home in HOMES:
        said = any(of(whole, home))
        assert said == (home in parts)
        if said:
            everything = (parts[home].asks, parts[home].allocations)
            assert of(parts[home], home)[:2] == list(everything)
            assert [it for it in of(parts[home], home) if it] == [
                it for it in of(whole, home) if it
            ]


@pytest.mark.parametrize(
    "request_",
    [
        node("gpu", "n"),
        application("gpu", "a"),
        remove("gpu", "a"),
        ask("gpu", "a", "k"),
        release("gpu", "a", "u"),
    ],
)
def test_a_request_about_one_partition_goes_there_as_it_is(request_: si.NodeRequest) -> None:
    assert {"gpu": request_} == split(request_, HOMES)


def test_what_names_no_partition_that_is_here_goes_to_the_first() -> None:
    stray = application("nowhere", "a")
    assert {"default": stray} == split(stray, HOMES)


def test_an_empty_request_goes_nowhere() -> None:
    assert {} == split(si.NodeRequest(rm_id="rm-1"), HOMES)


def test_the_parts_of_a_configuration_say_what_the_whole_says() -> None:
    whole = parse_config(CONFIG)
    assert ("default", "gpu") == names_in(CONFIG)
    for name, partition in zip(names_in(CONFIG), whole.partitions, strict=True):
        assert (partition,) == parse_config(config_for(CONFIG, name)).partitions


def test_a_blank_configuration_is_the_built_in_one() -> None:
    assert ("default",) == names_in("")
    assert parse_config("").partitions == parse_config(config_for("", "default")).partitions


def test_a_policy_of_an_installed_package_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Score:
        def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - the protocol
            return 0.0

    text = "partitions: [{name: gpu, nodesortpolicy: {type: packaged}, queues: [{name: root}]}]"
    with pytest.raises(ConfigError, match="undefined policy: packaged"):
        names_in(text)
    assert ("gpu",) == names_in(text, Policies({"packaged": Score}))
    monkeypatch.setattr(registry, "installed", lambda: {"packaged": Score})
    monkeypatch.delitem(NO_POLICIES.__dict__, "names", raising=False)
    try:
        assert ("gpu",) == names_in(text)
    finally:
        NO_POLICIES.__dict__.pop("names", None)
