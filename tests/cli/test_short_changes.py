"""`--ask`, `--gang` and `--node` of `simulate`: the common questions without a file."""

import json
from pathlib import Path

import pytest

from tests.what_if.test_simulate import busy
from yunikorn_actors import VirtualCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.cli.short_changes import steps_of
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.values.tags import GPU_DEVICES, GPU_MODEL


@pytest.fixture
def dump(tmp_path: Path) -> str:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(busy("proposing").state_dump()))
    return str(file)


QUOTA = "reconfigure: {queue: root.a, max: {vcore: 16000}}"


def test_asks_of_a_new_application(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = "app=a,queue=root.a,user=bob,cpu=1,count=3,runtime=60"
    assert main(["simulate", "--dump", dump, "-c", QUOTA, "--ask", ask]) == 0
    assert "a/what-if-2 on n1 at once, ends after 1 min (vcore 1)" in capsys.readouterr().out
    assert main(["simulate", "--dump", dump, "--ask", ask, "--until", "60"]) == 1
    assert "queue root.a has no room for it" in capsys.readouterr().out


def test_an_ask_of_an_application_that_there_is(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = "app=app,key=z,cpu=500m"
    assert main(["simulate", "--dump", dump, "--ask", ask, "--until", "60"]) == 1
    assert "app/z from the beginning to the end" in capsys.readouterr().out


def test_a_gang_and_the_nodes_that_it_needs(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    gang = ["--gang", "app=g,queue=root.a,user=bob,count=4,cpu=3"]
    assert main(["simulate", "--dump", dump, "-c", QUOTA, *gang]) == 1
    nodes = ["--node", "cpu=8,memory=64Gi,count=2"]
    capsys.readouterr()
    assert main(["simulate", "--dump", dump, "-c", QUOTA, *nodes, *gang]) == 0
    out = capsys.readouterr().out
    assert "placeholder g/what-if-placeholder-0 on what-if-0 at once (vcore 3)" in out
    assert "  g/what-if-3 on what-if-1 at once (vcore 3)" in out


def test_another_partition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = "{name: root, submitacl: '*', queues: [{name: a}]}"
    parts = ", ".join(f"{{name: {it}, queues: [{root}]}}" for it in ("default", "gpu"))
    core, file = VirtualCore().start(), tmp_path / "dump.json"
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=f"partitions: [{parts}]")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    file.write_text(json.dumps(core.state_dump()))
    there = "cpu=2,partition=gpu"
    asked = ["--node", "cpu=8,partition=gpu", "--ask", f"queue=root.a,user=bob,{there}"]
    gang = ["--gang", f"queue=root.a,user=bob,count=2,{there}"]
    assert main(["simulate", "--dump", str(file), *asked, *gang, "--json"]) == 0
    course = json.loads(capsys.readouterr().out)["course"]
    assert {it["partition"] for it in course["placed"]} == {"[rm-1]gpu"}


def test_what_has_no_name_does_not_collide(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    one = "queue=root.a,user=bob,cpu=1"
    shown = ["simulate", "--dump", dump, "-c", QUOTA, "--node", "cpu=8", "--node", "cpu=4"]
    asks = ["--ask", one, "--ask", one, "--gang", one, "--gang", one]
    assert main([*shown, *asks, "--json"]) == 0
    course = json.loads(capsys.readouterr().out)["course"]
    names = {it["application"] for it in course["placed"]}
    assert names == {"what-if", "what-if2", "what-if3", "what-if4"}
    assert course["refused"] == []


def test_what_is_refused_is_no_success(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--dump", dump, "--ask", "app=new,queue=root.b,cpu=1"]) == 1
    assert "there is no queue root.b" in capsys.readouterr().out
    assert main(["simulate", "--dump", dump, "--ask", "app=none,cpu=1"]) == 2
    refused = "--ask:1: step 1: ask: ask none/what-if: its application 'none' is not there"
    assert refused in capsys.readouterr().err


def test_what_the_words_become() -> None:
    (change,) = parse_changes(steps_of("node", "cpu=16,memory=4Gi,id=big,count=2"), "x")
    nodes = change.request.nodes  # type: ignore[union-attr]
    assert [it.node_id for it in nodes] == ["big-0", "big-1"]
    assert nodes[0].schedulable_resource == si.Resource.of({"vcore": 16_000, "memory": 4 << 30})
    (change,) = parse_changes(steps_of("ask", "app=a,cpu=1,node=n1,priority=-3"), "x")
    (ask,) = change.request.asks  # type: ignore[union-attr]
    assert ask.priority == -3
    assert ask.tags == {"yunikorn.apache.org/requiredNode": "n1"}


def test_devices_are_counted_as_a_program_counts_them() -> None:
    (change,) = parse_changes(steps_of("node", "cpu=16,gpu=8,gpu-model=V100"), "x")
    (node,) = change.request.nodes  # type: ignore[union-attr]
    assert node.schedulable_resource == si.Resource.of({"vcore": 16_000, "gpu": 8_000})
    assert node.attributes.items() >= {(GPU_DEVICES, "8"), (GPU_MODEL, "V100")}
    (change,) = parse_changes(steps_of("ask", "app=a,gpu=0.6,gpu-model=V100|A100,runtime=9"), "x")
    (ask,) = change.request.asks  # type: ignore[union-attr]
    assert ask.resource_ask == si.Resource.of({"gpu": 600})
    assert ask.tags == {GPU_MODEL: "V100|A100", "yunikorn-actors/runtime": "9"}
    *_, placeholders, members = parse_changes(steps_of("gang", "queue=root.a,count=8,gpus=1"), "x")
    for it in (placeholders, members):
        sizes = [ask.resource_ask for ask in it.request.asks]  # type: ignore[union-attr]
        assert sizes == [si.Resource.of({"gpu": 1_000})] * 8


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("ask", "", "'' is no NAME=VALUE: write cpu=2,memory=4Gi"),
        ("ask", "cpu", "'cpu' is no NAME=VALUE"),
        ("ask", "cpu=", "'cpu=' is no NAME=VALUE"),
        ("ask", "cpu=1,cpu=2", "cpu is given twice"),
        ("ask", "queue=root.a", "it names no amount: add one"),
        ("ask", "cpu=x", "cpu: invalid quantity 'x'"),
        ("ask", "cpu=1,cuont=3", "cuont is no name: write count"),
        ("ask", "cpu=1,priority=high", "priority is no whole number: 'high': write priority=3"),
        ("ask", "cpu=1,runtime=soon", "runtime is no number of seconds: 'soon'"),
        ("gang", "cpu=1,count=0", "count is 0: ask for one at least"),
        ("node", "memory=1Qx", "memory: invalid quantity '1Qx'"),
        ("node", "gpu=0.5", "gpu is 0.5, and a node has whole devices: write gpu=1"),
        ("ask", "gpu=1.5", "gpu: 1.5 is neither a share of one, from 0.001 to 0.999, nor a number"),
        ("ask", "gpu=4k", "gpu: '4k' is neither a share of one"),
    ],
)
def test_what_cannot_be_understood(name: str, text: str, fault: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        steps_of(name, text)
    assert f"--{name}: {fault}" in str(raised.value)


def test_the_command_says_so(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--dump", dump, "--ask", "cpu"]) == 2
    assert "--ask: 'cpu' is no NAME=VALUE: write cpu=2,memory=4Gi" in capsys.readouterr().err
