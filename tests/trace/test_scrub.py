"""A recording with other names replays as it did, and none of the old names is left in it."""

from pathlib import Path

import msgspec
import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player, settings_of
from recordings import INSTANCE, Tape, in_service, records, rewrite, simulate

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.trace.scrub.alphabet import Alphabet, Words
from yunikorn_actors.trace.scrub.scrub import Scrubbed
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tags import (
    APP_TAG_QUEUE_FALLBACK,
    GPU_DEVICES,
    GPU_MODEL,
    TAG_PREDICATES,
    TAG_RUNTIME,
)

Screen = pytest.CaptureFixture[str]
MARK = "zq"
"""Every name of the people below has it."""
CONFIG = """
partitions:
- name: zqwest
  placementrules:
  - {name: tag, value: namespace, create: true, filter: {type: allow, users: ['^zqa']}}
  - {name: user, create: true, parent: {name: fixed, value: root.zqpeople}}
  - {name: provided}
  queues:
  - name: root
    submitacl: 'zqann,zqbob.smith zqdevs'
    queues:
    - {name: zqpeople, parent: true, submitacl: '*', childtemplate: {maxapplications: 3}}
    - name: zqBatch
      resources: {max: {vcore: 4m}}
      limits:
      - {limit: zq few each, users: [zqbob.smith], maxresources: {vcore: 2m}}
      - {limit: zq and their group, groups: [zqdevs], maxapplications: 4}
"""


class Choosy(si.ResourceManagerCallback):
    """Refuses a node for a reason that has a name in it, and confirms what it is asked for."""

    def __init__(self, core: Simulator) -> None:
        self._core = core

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return "zqrack is being rebuilt" if args.node_id == "zqnode-2" else None

    def update_allocation(self, response: si.AllocationResponse) -> None:
        gone = tuple(
            si.AllocationRelease(
                application_id=it.application_id, allocation_key=it.allocation_key, uuid=it.uuid,
                partition_name=it.partition_name, termination_type=it.termination_type,
                message="zqpod is gone",
            )
            for it in response.released
            if it.termination_type is si.TerminationType.PLACEHOLDER_REPLACED
        )  # fmt: skip
        if gone:
            releases = si.AllocationReleasesRequest(allocations_to_release=gone)
            self._core.update_allocation(si.AllocationRequest(rm_id="zqrm", releases=releases))

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        """It hears of asks that wait."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def scrubbed(path: Path) -> Path:
    out = path.with_name("scrubbed.trace")
    with out.open("wb") as file:
        file.writelines(Scrubbed(path))
    return out


def assert_replays(path: Path) -> None:
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is None, outcome.report()
    assert outcome.complete
    assert outcome.states


def types_of(path: Path) -> list[tuple[str, int]]:
    with TraceReader(path) as trace:
        return [(type(it.message).__name__, it.at_ns) for it in trace]


def with_people(path: Path, topology: TopologyName) -> Path:
    """Users, groups, a gang, rules that make queues of names, limits, reasons, tags, reports."""
    tape = Tape(path, topology, 3)
    core = Simulator(
        Topology(topology, settings=Settings(), instance=INSTANCE),
        chooser=chooser_of(3),
        checkers=(tape,),
    )
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id="zqrm", policy_group="zqgroup", version="zq1", config=CONFIG,
            build_info={"host": "zqhost"}, extra_config={"other": "zqvalue"},
        ),
        Choosy(core),
    )  # fmt: skip
    running = si.Allocation(
        allocation_key="zqold", application_id="zqapp-0", node_id="zqnode-1", uuid="zquuid",
        resource_per_alloc=si.Resource.of({"vcore": 1}),
    )  # fmt: skip
    new = [
        si.AddApplicationRequest(
            application_id=f"zqapp-{number}", queue_name="root.zqbatch", partition_name="zqwest",
            ugi=si.UserGroupInformation(user=user, groups=("zqdevs",)),
            tags={"namespace": "zqspace", "owner": "zqowner"},
            placeholder_ask=si.Resource.of({"vcore": 2}) if number == 1 else None,
            execution_timeout_milli_seconds=60_000,
        )
        for number, user in enumerate(("zqann", "zqbob.smith", "zqcy", "zqBob"))
    ]  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id="zqrm", new=tuple(new)))
    core.settle()
    nodes = [
        si.NodeInfo(
            node_id=f"zqnode-{number}", action=si.ActionFromRM.CREATE,
            attributes={"si/node-partition": "zqwest", "si/hostname": "zqhost"},
            schedulable_resource=si.Resource.of({"vcore": 3}),
            existing_allocations=(running,) if number == 1 else (),
        )
        for number in (1, 2, 3)
    ]  # fmt: skip
    core.update_node(si.NodeRequest(rm_id="zqrm", nodes=tuple(nodes)))
    asks = [
        si.AllocationAsk(
            allocation_key=key, application_id=app, partition_name="zqwest",
            task_group_name=group, placeholder=key.startswith("zqph"),
            resource_ask=si.Resource.of({"vcore": vcore}),
            tags={"kubernetes.io/meta/podName": "zqpod"},
        )
        for key, app, group, vcore in (
            ("zqph-1", "zqapp-1", "zqteam", 1), ("zqph-2", "zqapp-1", "zqteam", 1),
            ("zqreal", "zqapp-1", "zqteam", 1), ("zqa", "zqapp-0", "", 1),
            ("zqb", "zqapp-2", "", 2), ("zqc", "zqapp-3", "", 9), ("zqd", "zqnobody", "", 1),
        )
    ]  # fmt: skip
    for ask in asks:
        core.update_allocation(si.AllocationRequest(rm_id="zqrm", asks=(ask,)))
        core.settle()
    core.advance(90 * SECOND)
    core.state_dump()
    tape.end(core)
    return path


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_name_is_left_and_all_happens_as_before(path: Path, topology: TopologyName) -> None:
    with_people(path, topology)
    facts = {
        fact["fact"] for it in records(path) for fact in it.get("payload", {}).get("facts", ())
    }
    wanted = {"SwapCompleted", "QueueAdded", "AllocationRecovered", "AskRefused"}
    out = scrubbed(path)
    assert path.read_bytes().lower().count(MARK.encode()) > 100
    assert out.read_bytes().lower().count(MARK.encode()) == 0
    assert types_of(out) == types_of(path)
    assert_replays(out)
    assert [] == sorted(wanted - facts), f"vacuous: never happened: {sorted(facts)}"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_on_threads(path: Path, topology: TopologyName) -> None:
    out = scrubbed(in_service(path, topology))
    assert types_of(out) == types_of(path)
    assert_replays(out)


@ranges.examples(8, 500)
def test_whatever_a_resource_manager_says(path: Path, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(7)
    @given(scripts(20), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1))
    def play(script: list[Move], topology: TopologyName, number: int) -> None:
        tape = Tape(path, topology, number, settings=msgspec.to_builtins(settings_of(number)))
        player = Player(topology, number, checkers=(tape,))
        for move in script:
            player.play(move)
        tape.end(player.simulator)
        out = scrubbed(path)
        assert types_of(out) == types_of(path)
        assert_replays(out)

    play()


class Follower:
    def receive(self, message: Message) -> None:
        """It hears of what becomes true."""


def test_devices_run_times_timers_and_followers(path: Path) -> None:
    """The core decides by numbers, yes and no in texts: they are not names."""
    tape = Tape(path, "proposing", 5)
    core = Simulator(
        Topology("proposing", settings=Settings(), instance=INSTANCE), checkers=(tape,)
    )
    request = si.RegisterResourceManagerRequest(
        rm_id="zqrm", policy_group="zqgroup", version="1",
        config="partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
        "[{name: zqleaf}]}]}]",
    )  # fmt: skip
    core.register_resource_manager(request, Choosy(core))
    core.followers.follow(Follower())
    nodes = [
        si.NodeInfo(
            node_id=f"zqnode-{model}", action=si.ActionFromRM.CREATE,
            attributes={GPU_DEVICES: "2", GPU_MODEL: model},
            schedulable_resource=si.Resource.of({"vcore": 8000, "gpu": 2000}),
        )
        for model in ("zqold", "zqnew")
    ]  # fmt: skip
    core.update_node(si.NodeRequest(rm_id="zqrm", nodes=tuple(nodes)))
    app = si.AddApplicationRequest(
        application_id="zqapp", queue_name="root.zqleaf", partition_name="default",
        ugi=si.UserGroupInformation(user="zqann"), tags={APP_TAG_QUEUE_FALLBACK: "false"},
    )  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id="zqrm", new=(app,)))
    asks = [
        si.AllocationAsk(
            allocation_key=key, application_id="zqapp", partition_name="default",
            resource_ask=si.Resource.of({"vcore": 1000, "gpu": 1000}),
            tags={GPU_MODEL: models, TAG_RUNTIME: "30", TAG_PREDICATES: "false"},
            execution_timeout_milli_seconds=5_000,
        )
        for key, models in (("zqa", "zqnew"), ("zqb", "zqold|zqnew"), ("zqc", "zqnone"))
    ]  # fmt: skip
    core.update_allocation(si.AllocationRequest(rm_id="zqrm", asks=tuple(asks)))
    core.settle()
    core.advance(10 * SECOND)
    core.state_dump()
    tape.end(core)
    out = scrubbed(path)
    assert types_of(out) == types_of(path)
    assert out.read_bytes().lower().count(MARK.encode()) == 0
    assert_replays(out)
    kinds = {kind for kind, _ in types_of(path)}
    assert {"ApplicationTimerDue", "PartitionSnapshot", "FollowRequested"} <= kinds, "vacuous"
    facts = [fact for it in records(out) for fact in it.get("payload", {}).get("facts", ())]
    committed = {fact["key"] for fact in facts if fact["fact"] == "AllocationCommitted"}
    assert len(committed) == 2, "vacuous: the models meet nobody"


# -- what cannot be done


def test_what_does_not_replay_is_not_scrubbed(path: Path, capsys: Screen) -> None:
    """Its machines would say something else with the other names, too."""
    recorded = records(simulate(path))
    proposal = next(it for it in recorded if it.get("type") == "ProposeAllocations")
    proposal["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    out = path.with_name("out.trace")
    assert main(["trace", "scrub", str(path), "-o", str(out)]) == 1
    where = f"{proposal['mailbox']}/{proposal['step']}"
    error = capsys.readouterr().err
    assert f"not what was recorded from {where} on" in error
    assert "so what came later is not known: trace replay says more" in error
    assert not out.exists()


def test_messages_of_a_later_version_are_refused(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    later = next(it for it in recorded if it.get("type") == "NodesRequested")
    later.update(
        type="PlanetsRequested", payload={"a": "x", "b": [{"c": 1}], "d": {"e": "y", "f": 1}}
    )
    rewrite(path, recorded)
    out = path.with_name("out.trace")
    assert main(["trace", "scrub", str(path), "-o", str(out)]) == 2
    assert "PlanetsRequested" in capsys.readouterr().err
    assert not out.exists()


def test_a_recording_without_its_beginning_is_refused(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    recorded[0]["segment"] = 2
    rewrite(path, recorded)
    assert main(["trace", "scrub", str(path), "-o", str(path.with_name("out.trace"))]) == 2
    assert "a replay needs every message from the first one on" in capsys.readouterr().err


def test_the_command_says_what_it_did(path: Path, capsys: Screen) -> None:
    simulate(path)
    out = path.with_name("out.trace")
    assert main(["trace", "scrub", str(path), "-o", str(out)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("replaced ")
    assert f"in {len(types_of(path))} messages" in told
    assert out.stat().st_mode & 0o077 == 0


# -- names


def new_names(alphabet: Alphabet, names: list[str]) -> list[str]:
    for name in names:
        alphabet.note(name)
    alphabet.settle()
    return [alphabet.new(name) for name in names]


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1), unique=True))
def test_new_names_sort_as_the_old_ones(names: list[str]) -> None:
    new = new_names(Alphabet("node"), sorted(names))
    assert new == sorted(set(new))


def test_words_sort_among_those_that_stay() -> None:
    names = ["2nd", "@recovery@", "batch", "default", "jobs", "root", "web"]
    assert new_names(Words(), names) == [
        "0-name-1", "@recovery@", "a-name-2", "default", "name-3", "root", "the-name-4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("ann", "a-name-1"),
        ("Ann", "A-name-1"),
        ("ANN", "A-NAME-1"),
        ("ann@home", "a-name-1@"),
        ("ann$", "a-name-1$"),
        ("a nn", "a-name-1%"),
        ("*", "*"),
        ("a" * 65, "a-name-1" + "-" * 64),
    ],
)
def test_a_word_can_be_what_the_old_one_could_be(name: str, new: str) -> None:
    """A user, a group, a queue; names of queues ignore case."""
    assert new_names(Words(), [name]) == [new]
