"""A run that policies of one's own decided is replayed with them."""

import inspect
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from viewed import blocks

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.policies.inputs import Change, Hold, Job, Started
from yunikorn_actors.policies.places import ApplicationSeen, Key, NodeSeen, Pool
from yunikorn_actors.policies.registry import MissingPolicy, PolicyChanged, digest_of
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.trace import recording
from yunikorn_actors.trace.checkpointed_replay import Checkpoints
from yunikorn_actors.values.resource import Resource

CONFIG = """
partitions:
- name: default
  nodesortpolicy: {type: last}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: jobs
      properties: {application.sort.policy: mine}
"""


@dataclass
class LeastStarted:
    """Who started least goes first, of equals the later name; one at a time may run."""

    reads = ("state",)
    started: dict[str, int] = field(default_factory=dict)

    def application_key(self, app: ApplicationSeen) -> Key:
        return self.started.get(app.user, 0), -int(app.id[-1])

    def may_start(self, _: Job, pool: Pool) -> Hold | None:
        return Hold("two run") if len(pool.running) > 1 else None

    def observe(self, fact: Change, _: int) -> None:
        if isinstance(fact, Started):
            self.started[fact.job.user] = self.started.get(fact.job.user, 0) + 1


@dataclass
class Another(LeastStarted):
    """The same decisions from another source."""


class LastNode:
    def score(self, node: NodeSeen, _: Resource) -> float:
        return -float(node.id.removeprefix("n"))


POLICIES: dict[str, Any] = {"mine": LeastStarted, "last": LastNode}


class Manager(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.placed: list[tuple[str, str, str]] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed += [(it.application_id, it.node_id, it.uuid) for it in response.new]


def run(path: Path, topology: TopologyName, policies: dict[str, Any] = POLICIES) -> list[str]:
    """Let work come and go; return which application was placed on which node, in order."""
    manager = Manager()
    with VirtualCore(topology=topology, trace=path, policies=policies) as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG)
        core.register_resource_manager(request, manager)
        size = si.Resource.of({"vcore": 4})
        core.update_node(
            si.NodeRequest(
                rm_id="rm",
                nodes=tuple(
                    si.NodeInfo(
                        node_id=f"n{number}",
                        action=si.ActionFromRM.CREATE,
                        schedulable_resource=size,
                    )
                    for number in range(3)
                ),
            )
        )
        core.run_until_idle()
        for number in range(8):
            name = f"app-{number}"
            user = si.UserGroupInformation(user=f"user-{number % 3}")
            new = si.AddApplicationRequest(application_id=name, queue_name="root.jobs", ugi=user)
            core.update_application(si.ApplicationRequest(rm_id="rm", new=(new,)))
            ask = si.AllocationAsk(
                allocation_key=f"ask-{number}",
                application_id=name,
                resource_ask=si.Resource.of({"vcore": 1}),
            )
            core.update_allocation(si.AllocationRequest(rm_id="rm", asks=(ask,)))
        core.run_until_idle()
        for number in range(6):
            core.advance_to(core.now_ns + 10**9)
            name, _, uuid = manager.placed[number]
            gone = si.AllocationRelease(application_id=name, uuid=uuid)
            releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
            core.update_allocation(si.AllocationRequest(rm_id="rm", releases=releases))
            core.run_until_idle()
    return [f"{name} on {node}" for name, node, _ in manager.placed]


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_a_replay_with_the_same_policies_is_identical(
    tmp_path: Path, topology: TopologyName
) -> None:
    path = tmp_path / "run.trace"
    placed = run(path, topology)
    assert ["app-7 on n2", "app-6 on n2", "app-5 on n2"] == placed[:3]
    assert len(placed) == 8
    recorded = recording.open(path, POLICIES)
    assert {"mine": digest_of(LeastStarted), "last": digest_of(LastNode)} == (
        recorded.header.policies
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = recorded.replay()
    assert outcome.difference is None, outcome.report()
    assert outcome.states > 0
    assert any("two run" in period.text for period in recorded.why("ask-0")[0].periods)


def test_the_source_of_a_class_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own:
        """Nobody has asked for its digest."""

    looked: list[object] = []

    def source(kind: object) -> str:
        looked.append(kind)
        return "class Own: ..."

    monkeypatch.setattr(inspect, "getsource", source)
    assert digest_of(Own) == digest_of(Own)
    assert [Own] == looked


@dataclass
class Pairs(LeastStarted):
    """Keeps pairs, which a file gives back as lists."""

    pairs: dict[str, tuple[str, int]] = field(default_factory=dict)

    def observe(self, fact: Change, now_ns: int) -> None:
        super().observe(fact, now_ns)
        self.pairs[type(fact).__name__] = ("seen", now_ns)


def test_a_dump_of_what_policies_keep_is_the_same_in_a_replay(tmp_path: Path) -> None:
    path, policies = tmp_path / "run.trace", POLICIES | {"mine": Pairs}
    with VirtualCore(trace=path, policies=policies) as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG)
        core.register_resource_manager(request, Manager())
        core.run_until_idle()
        application = si.AddApplicationRequest(
            application_id="a", queue_name="root.jobs", ugi=si.UserGroupInformation(user="ann")
        )
        core.update_application(si.ApplicationRequest(rm_id="rm", new=(application,)))
        ask = si.AllocationAsk(
            allocation_key="k", application_id="a", resource_ask=si.Resource.of({"vcore": 1})
        )
        core.update_allocation(si.AllocationRequest(rm_id="rm", asks=(ask,)))
        core.run_until_idle()
        kept = core.state_dump()["folds"]["[rm]default"]["root.jobs"]
    assert ["seen", core.now_ns] == kept[1]["pairs"]["Arrived"]
    outcome = recording.open(path, policies).replay()
    assert outcome.difference is None, outcome.report()


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_a_checkpoint_has_what_policies_keep(tmp_path: Path, topology: TopologyName) -> None:
    """Also where a policy was written inside a function, so that it has no name to be found by."""

    class Local(LastNode):
        pass

    policies = POLICIES | {"last": Local}
    path = tmp_path / "run.trace"
    run(path, topology, policies)
    fresh, kept = recording.open(path, policies), recording.open(path, policies)
    kept._checkpoints = Checkpoints(every=10)
    last = sum(1 for _ in fresh)
    for place in (last // 2, last, last // 2 + 7):
        assert fresh.at(place) == kept.at(place)
    assert len(kept._checkpoints._of[1]) > 2, "it went on from checkpoints"


def test_without_the_policy_a_replay_says_which_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.trace"
    run(path, "fused")
    with pytest.raises(MissingPolicy, match=r"policies 'last', 'mine', which .*--policies"):
        recording.open(path).replay()
    for command in (["replay"], ["why"], ["at"], ["scrub"]):
        more = {"why": ["ask-0"], "at": ["5"], "scrub": ["-o", str(tmp_path / "out")]}
        assert 2 == main(["trace", *command, str(path), *more.get(command[0], [])])
        assert "decided by policies 'last', 'mine'" in capsys.readouterr().err


def test_another_policy_of_that_name_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    run(path, "fused")
    was, now = digest_of(LeastStarted), digest_of(Another)
    with pytest.warns(PolicyChanged, match=rf"'mine' .*{was} and is {now} now.*give the source"):
        outcome = recording.open(path, POLICIES | {"mine": Another}).replay()
    assert outcome.difference is None, "it decides the same"


def test_policies_of_a_replay_are_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.trace"
    run(path, "proposing")
    monkeypatch.chdir(tmp_path)
    place = f"from {__name__} import LastNode, LeastStarted, Another"
    Path("my_policies.py").write_text(
        f"{place}\nSAME = {{'mine': LeastStarted, 'last': LastNode}}\n"
        "OTHER = SAME | {'mine': Another}\nNONE = {'mine': 3}\n",
        "utf-8",
    )
    assert 0 == main(["trace", "replay", str(path), "--policies", "my_policies:SAME"])
    said = capsys.readouterr()
    assert re.search("replayed .* identical", said.out)
    assert not said.err
    assert 0 == main(["trace", "replay", str(path), "--policies", "my_policies:OTHER"])
    assert "policy 'mine' is not the one" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["trace", "replay", str(path), "--policies", "my_policies:NONE"])
    assert "give a class, not 3" in capsys.readouterr().err


def test_a_page_of_a_recording_says_why_asks_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.trace"
    run(path, "proposing")
    monkeypatch.chdir(tmp_path)
    text = f"from {__name__} import LastNode, LeastStarted\n"
    Path("of_view.py").write_text(
        f"{text}M = {{'mine': LeastStarted, 'last': LastNode}}\n", "utf-8"
    )
    assert 0 == main(["trace", "view", str(path), "-o", "without.html"])
    assert "decided by policies 'last', 'mine'" in blocks(Path("without.html"))["data"]
    assert 0 == main(["trace", "view", str(path), "-o", "with.html", "--policies", "of_view:M"])
    shown = blocks(Path("with.html"))["data"]
    assert "two run" in shown
    assert "decided by policies" not in shown
