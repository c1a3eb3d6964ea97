"""Policies by name: on the command line, of installed packages, and in answers."""

import json
import linecache
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors import ResourceManagerCallback, Scheduler, si
from yunikorn_actors.cli import main
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.policies import loading, registry
from yunikorn_actors.policies.registry import BrokenPolicy, Policies
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.scenario.document import ScenarioError, parse_scenario
from yunikorn_actors.workload import WorkloadError
from yunikorn_actors.workload.campaign import RunJob, campaign_jobs, run_all

MODULE = """
class Own:
    def application_key(self, app):
        return app.id

    def queue_key(self, queue):
        return queue.path

    def score(self, node, shape):
        return 0


MINE = {"own": Own}
NOTHING = 3
"""
QUEUES = """\
partitions:
- name: default
  nodesortpolicy: {type: own}
  queues:
  - name: root
    submitacl: "*"
    properties: {queue.sort.policy: own}
    queues: [{name: jobs, properties: {application.sort.policy: own}}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path("own_names.py").write_text(MODULE, "utf-8")
    Path("q.yaml").write_text(QUEUES, "utf-8")
    yield tmp_path
    sys.modules.pop("own_names", None)
    loading.policies_at.cache_clear()


def check(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    status = main(["config", "check", "q.yaml", *options])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_configuration_is_checked_with_policies(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, told = check(capsys)
    assert (1, True) == (status, "undefined policy: own" in told)
    for options in ((), ("--strict",)):
        status, shown, told = check(capsys, *options, "--policies", "own_names:MINE")
        assert (0, "") == (status, told)
        assert "node order: own" in shown
        assert "property application.sort.policy: own" in shown
        assert "property queue.sort.policy: own" in shown


def test_a_name_that_stands_for_nothing_is_a_fault_where_policies_are_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("q.yaml").write_text(
        QUEUES.replace("type: own", "type: fair").replace(
            "sort.policy: own}}]", "sort.policy: owm}}]"
        ),
        "utf-8",
    )
    status, _, told = check(capsys)
    assert (0, True) == (status, "q.yaml:8: warning: " in told)
    status, _, told = check(capsys, "--strict")
    assert (1, True) == (status, "'owm' is no value for it" in told)
    status, _, told = check(capsys, "--policies", "own_names:MINE")
    assert 1 == status
    assert re.search(r"q.yaml:8: .*'owm' is no value for it.*or a policy: .*, own\)", told)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("own_names", "'own_names': give MODULE:ATTRIBUTE"),
        ("own_names:MINES", "AttributeError"),
        ("no_such:MINE", "ModuleNotFoundError(\"No module named 'no_such'\")"),
        ("own_names:NOTHING", "must be a mapping of names to policies"),
        ("own_names:Own", "must be a mapping of names to policies"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "config check q.yaml",
        "config diff q.yaml q.yaml",
        "scenario run q.yaml",
        "lab run q.yaml",
        "lab swarm",
        "workload run x",
        "workload compare a b x",
        "workload campaign x -o y",
        "simulate --dump x",
        "trace what-if x q.yaml",
        "serve",
    ],
)
def test_what_is_no_mapping_is_refused_by_each_command(
    command: str, place: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--policies", place])
    told = capsys.readouterr().err
    assert (2, True) == (ended.value.code, what in told), told


def test_a_log_is_compared_under_policies(capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.swf").write_text(
        "".join(f"{at} 0 -1 9 2 -1 -1 2 {20 - at} {'-1 ' * 9}\n" for at in range(1, 9)), "utf-8"
    )
    words = ["policy:fcfs", "policy:own", "log.swf", "--nodes", "2", "--policies", "own_names:MINE"]
    options = ["--draws", "1", "--executor", "serial", "--json"]
    assert main(["workload", "compare", *words, *options]) == 0
    found = json.loads(capsys.readouterr().out)["summaries"]
    assert [it["done"] for it in found.values()] == [8, 8]


def test_a_campaign_keeps_no_result_of_another_policy_of_the_name() -> None:
    job = RunJob(log="sample:cluster.swf", policy="own", policies="own_names:MINE", limit=1)
    for order in ("app.id", "app.user"):
        Path(f"{order}.py").write_text(MODULE.replace("app.id", order), "utf-8")
        Path(f"{order}.py").replace("own_names.py")
        for _ in range(2):
            sys.modules.pop("own_names", None)
            loading.policies_at.cache_clear()
            linecache.clearcache()
            run_all([job], executor="serial", cache=Path("kept"))
    assert len(list(Path("kept").iterdir())) == 2


def test_a_campaign_names_a_policy_that_is_not_there() -> None:
    Path("campaign.yaml").write_text("{log: x, policies: 'own_names:MINES'}", "utf-8")
    with pytest.raises(WorkloadError, match=r"own_names:MINES: .*AttributeError"):
        campaign_jobs(Path("campaign.yaml"))


def test_configurations_are_compared_with_policies(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").write_text(QUEUES.replace("own}}]", "mine}}]"), "utf-8")
    assert main(["config", "diff", "q.yaml", "r.yaml"]) == 1
    assert main(["config", "diff", "q.yaml", "r.yaml", "--policies", "own_names:MINE"]) == 2
    assert "mine" in capsys.readouterr().err


def test_a_simulation_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy goes by the names of applications; one that nobody gives is refused."""
    with VirtualCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm")
        core.register_resource_manager(request, ResourceManagerCallback())
        Path("dump.json").write_text(json.dumps(core.state_dump()), "utf-8")
    steps = """
- config:
    partitions:
    - name: default
      queues:
      - name: root
        submitacl: "*"
        queues: [{name: jobs, properties: {application.sort.policy: own}}]
- add_app: {id: b, queue: root.jobs, user: ann}
- add_app: {id: a, queue: root.jobs, user: ann}
- ask: {app: b, key: k, resource: {vcore: 1}}
- ask: {app: a, key: k, resource: {vcore: 1}}
- create_node: {id: n, capacity: {vcore: 1}}
"""
    Path("steps.yaml").write_text(steps, "utf-8")
    command = ["simulate", "steps.yaml", "--dump", "dump.json", "--json"]
    assert 1 == main([*command, "--policies", "own_names:MINE"])  # one of the two waits
    answer = json.loads(capsys.readouterr().out)
    assert [it["application"] for it in answer["course"]["placed"]] == ["a"]
    assert 2 == main(command)
    assert "steps.yaml:2: step 1: config: " in (err := capsys.readouterr().err)
    assert "'own' is no value for it" in err


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        ("{own: own_names:Owm}", "a.yaml:2: .*module 'own_names' has no attribute 'Owm'"),
        ("{own: own_names:NOTHING}", "a.yaml:2: .*policy 'own': give a class, not 3"),
        ("{own: 3}", "a.yaml:2: .*give MODULE:ATTRIBUTE"),
        ("own_names:Own", "a.yaml:2: .*must be a mapping"),
        ("[own]", "a.yaml:2: .*a list where a mapping is expected"),
    ],
)
def test_a_scenario_with_a_wrong_policy_names_its_line(policies: str, what: str) -> None:
    text = f"name: a\npolicies: {policies}\nsteps: [{{advance: 1s}}]\n"
    with pytest.raises(ScenarioError, match=what):
        parse_scenario(text, "a.yaml")


def test_a_tape_names_the_place_of_policies() -> None:
    header = "tape 2 of a.yaml sha256 0123456789ab on proposing"
    where = " with 2 schedulers with policies own_names:MINE, steps 1-4"
    tape = parse_tape(header + where)
    assert (2, "own_names:MINE", 4) == (tape.schedulers, tape.policies, len(tape.steps or ()))
    assert header + where == tape.line()
    assert not parse_tape(header).policies


def test_worlds_of_a_swarm_name_the_policies_that_decide_in_them() -> None:
    texts = [drawn(5, number, policies="own_names:MINE").case.text for number in range(1, 13)]
    assert all("policies: own_names:MINE\n" in text for text in texts)
    for place in ("application.sort.policy: own", "queue.sort.policy: own", "type: own"):
        assert any(place in text for text in texts), place
    assert not any("conservative" in text for text in texts)


def test_a_swarm_plays_them(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["lab", "swarm", "--runs", "3", "--policies", "own_names:MINE", "--json"])
    assert (0, 3) == (status, json.loads(capsys.readouterr().out)["runs"])


# -- of installed packages


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def offer(*values: str) -> None:
        points = [EntryPoint(f"of-{n}", value, registry.GROUP) for n, value in enumerate(values)]
        monkeypatch.setattr(
            "importlib.metadata.entry_points", lambda group: points if group else []
        )
        _forget()

    yield offer
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    registry.installed.cache_clear()
    for known in ("names", "digests"):
        registry.NO_POLICIES.__dict__.pop(known, None)


def test_policies_of_an_installed_package_decide_by_their_names(
    offers: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    offers("own_names:Own")
    assert {"of-0"} <= {*Policies().names.applications} & {*Policies().names.nodes}
    assert ["of-0"] == [*Policies().digests]
    text = QUEUES.replace("own", "of-0")
    Path("q.yaml").write_text(text, "utf-8")
    assert (0, "") == check(capsys, "--strict")[::2]
    with Scheduler(text) as s:
        s.add_node("n1", vcore=1)
        later = s.application("b", queue="root.jobs", user="ann")
        first = s.application("a", queue="root.jobs", user="ann")
        with s.application("0", queue="root.jobs", user="ann").ask("k", vcore=1).result(10):
            waiting = [app.ask("k", vcore=1) for app in (later, first)]
        assert "n1" == waiting[1].result(10).node_id
        assert not waiting[0].done()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("no_such_package:Own", "ModuleNotFoundError"),
        ("own_names:Owm", "AttributeError"),
        ("own_names:NOTHING", "give a class, not 3"),
        ("builtins:dict", "decides nothing"),
    ],
)
def test_a_broken_package_is_warned_of_and_stops_nobody(
    offers: Callable[..., None], value: str, what: str
) -> None:
    offers(value, "own_names:Own")
    with pytest.warns(BrokenPolicy, match=f"of-0 = {value} .* counts as not there: .*{what}"):
        known = Policies().names.applications
    assert ("of-0" in known, "of-1" in known) == (False, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        VirtualCore()


OF_PACKAGE = """\
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: jobs, properties: {application.sort.policy: newest}}]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as pip leaves it, with an entry point that names a policy and one that does not."""
    folder = tmp_path / "site"
    info = folder / "my_orders-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-orders\nVersion: 0.1\n")
    points = "newest = my_orders:Newest\nbroken = my_orders:Nothing\n"
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}")
    lines = "class Newest:\n    def application_key(self, app):\n        return -app.submitted_ns\n"
    (folder / "my_orders.py").write_text(lines)
    monkeypatch.syspath_prepend(folder)
    _forget()
    yield
    sys.modules.pop("my_orders", None)
    monkeypatch.undo()
    _forget()


@pytest.mark.usefixtures("package")
def test_an_installed_package_is_found_as_pip_left_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(registry.BrokenPolicy, match="entry point broken = my_orders:Nothing"):
        assert 0 == main(["policy", "check", "newest", "--worlds", "1"])
    assert "Newest: no fault in 1 worlds" in capsys.readouterr().out
    Path("q.yaml").write_text(OF_PACKAGE, "utf-8")
    assert 0 == check(capsys, "--strict")[0]
    with Scheduler(OF_PACKAGE) as s:
        old, new = (s.application(name, queue="root.jobs", user="ann") for name in ("a", "b"))
        asked = [app.ask("k", vcore=1) for app in (old, new)]
        s.add_node("n1", vcore=1)
        assert "n1" == asked[1].result(10).node_id
        assert not asked[0].done()
    with pytest.raises(SystemExit):
        main(["policy", "check", "newst"])
    assert "no policy 'newst' is shipped or installed (" in capsys.readouterr().err


@pytest.mark.usefixtures("package")
def test_a_warning_of_a_command_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("q.yaml").write_text(OF_PACKAGE, "utf-8")

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        """Write it as Python does where nobody records warnings."""
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        _, _, told = check(capsys)
    assert told.startswith("warning: entry point broken = my_orders:Nothing of ")
    assert 1 == told.count("\n"), told
