"""`simulate`: from a dump and steps to what would happen, and exit statuses."""

import json
from pathlib import Path

import pytest

from tests.what_if.test_simulate import asks, busy, node
from yunikorn_actors import VirtualCore, si
from yunikorn_actors.cli import main


@pytest.fixture
def dump(tmp_path: Path) -> str:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(busy("proposing").state_dump()))
    return str(file)


ASK = "ask: {app: app, key: z, resource: {vcore: 1000}, tags: {yunikorn-actors/runtime: '60'}}"
QUOTA = "reconfigure: {queue: root.a, max: {vcore: 8000}}"
LIMIT = "reconfigure: {queue: root.a, user: ann, max: {vcore: 8000}}"


def test_what_starts_and_what_waits(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--dump", dump, "-c", ASK, "--until", "60"]) == 1
    out = capsys.readouterr().out
    assert "app/z from the beginning to the end: queue root.a has no room for it" in out
    assert main(["simulate", "--dump", dump, "-c", QUOTA, "-c", LIMIT, "-c", ASK]) == 0
    out = capsys.readouterr().out
    assert "app/z on n1 at once, ends after 1 min (vcore 1)" in out
    assert main(["simulate", "--dump", dump, "--json", "-c", QUOTA, "-c", LIMIT, "-c", ASK]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [it["key"] for it in answer["course"]["placed"]] == ["z"]


def test_a_file_with_times_and_a_configuration(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "changes.yaml"
    file.write_text(f"- {QUOTA}\n- {LIMIT}\n- advance: 10s\n- {ASK}\n")
    assert main(["simulate", str(file), "--dump", dump]) == 0
    assert "app/z on n1 after 10 s" in capsys.readouterr().out
    config = tmp_path / "queues.yaml"
    config.write_text("partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]\n")
    assert main(["simulate", "--config", str(config), "--dump", dump]) == 0


def test_several_changes_are_one_text_of_steps(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["-c", QUOTA, "-c", LIMIT, "-c", "advance: 10s", "-c", ASK]
    assert main(["simulate", "--dump", dump, *steps]) == 0
    assert "app/z on n1 after 10 s" in capsys.readouterr().out
    assert main(["simulate", "--dump", dump, *steps[:4], "-c", "drain: n1"]) == 2
    assert "--change:3: step 3: unknown step 'drain'" in capsys.readouterr().err


def test_the_least_change(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--dump", dump, "--least", "-c", ASK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("as of [rm-1]default revision ")
    assert any("raise: raise vcore in root.a from 4 to 5 and vcore of ann" in it for it in lines)
    assert "  3 run times are as declared" in lines[lines.index("assumed:") :]
    assert "not known from this state:" in lines
    assert main(["simulate", "--dump", dump, "--least", "-c", ASK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"revisions", "at_ns", "assumptions", "lacks"} <= found.keys()


def test_the_least_change_for_an_ask_that_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core, file = busy("proposing"), tmp_path / "dump.json"
    core.update_allocation(asks("3"))
    core.run_until_idle()
    file.write_text(json.dumps(core.state_dump()))
    least = ["simulate", "--dump", str(file), "--least"]
    assert main([*least, "--waiting", "app/3"]) == 0
    assert "raise: raise vcore in root.a from 4 to 6 and vcore of ann" in capsys.readouterr().out
    assert main([*least, "--waiting", "app/1"]) == 2
    assert "least change: ask app/1: it neither waits nor is" in capsys.readouterr().err
    assert main([*least[:-1], "--waiting", "app/3"]) == 2
    assert "--waiting: it is what --least is to let start" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*least, "--waiting", "app"])
    assert "'app' is no APPLICATION/KEY" in capsys.readouterr().err


def test_what_cannot_be_understood(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--dump", dump, "-c", "drain: n1"]) == 2
    assert "--change:1: step 1: unknown step 'drain'; allowed: add_app" in capsys.readouterr().err
    # The line is that of the change, and all that is named was written by the user.
    for number, steps in enumerate((["-c", "{"], ["-c", QUOTA, "-c", "{"]), 1):
        assert main(["simulate", "--dump", dump, *steps]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"--change:{number}: no YAML: expected the node content")
        assert "]" not in err
    assert main(["simulate", "--dump", f"{dump}.not", "-c", ASK]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert main(["simulate", "--dump", dump, "--journal", dump]) == 2
    assert "--dump and --journal: a simulation begins with one state" in capsys.readouterr().err
    assert main(["simulate", "--dump", dump, "--server", "localhost:1"]) == 2
    assert "--dump and --server: a simulation begins with one" in capsys.readouterr().err
    assert main(["simulate", "--dump", dump, "--at", "3"]) == 2
    assert "--at: it is a moment of a recording" in capsys.readouterr().err
    for until in ("inf", "nan", "-1"):
        assert main(["simulate", "--until", until]) == 2
        assert "--until: must be seconds from 0 to 1e+09, not " in capsys.readouterr().err
    assert main(["simulate", "nope.yaml", "--dump", dump]) == 2
    assert "nope.yaml: cannot be read" in capsys.readouterr().err
    assert main(["simulate", "--dump", dump, "--least", "-c", "drain_node: n1"]) == 2
    assert "least change: name an ask that is to start" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it is empty; write one with"),
        ("yaml: yes", "not JSON: Expecting value"),
        ("[]", "not a state dump: a list at the top, as in a part of one; write one with"),
        ("{}", "dump.json: 'timestamp' is missing; write one with"),
        ('{"queuename": "root"}', "it looks like the answer of another route"),
    ],
)
def test_what_is_no_dump_names_the_remedy(
    text: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = tmp_path / "dump.json", tmp_path / "queues.yaml"
    file.write_text(text)
    config.write_text("partitions: [{name: default, queues: [{name: root}]}]")
    for command in (["simulate", "-c", ASK], ["config", "diff", str(config), str(config)]):
        assert main([*command, "--dump", str(file)]) == 2
        err = capsys.readouterr().err
        assert fault in err
        assert "take /debug/fullstatedump of a service" in err


def test_a_place_behind_the_end_of_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core = VirtualCore(trace=tmp_path / "run.trace").start()
    request = si.RegisterResourceManagerRequest(rm_id="rm-1")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.advance_to(core.now_ns + 2_500_000_000)
    core.update_node(node("n1", 1_000))
    core.run_until_idle()
    core.stop()
    where = ["--trace", str(tmp_path / "run.trace"), "--at"]
    assert main(["simulate", *where, "9s", "-c", ASK]) == 2
    err = capsys.readouterr().err
    assert "has no such place: its first message is record 2, its last one record " in err
    assert ", 2.5s after the start; without --at its end is taken" in err
    last = err.partition(" last one record ")[2].partition(",")[0]
    # A place before its first message is no later one.
    for early in ("1", "context/0"):
        assert main(["simulate", *where, early, "-c", ASK]) == 2
        assert "its first message is record 2, its last one" in capsys.readouterr().err
    assert main(["simulate", *where, last, "-c", "drain_node: n1"]) == 0
    at_the_last = capsys.readouterr().out
    assert main(["simulate", *where[:2], "-c", "drain_node: n1"]) == 0
    assert at_the_last == capsys.readouterr().out
