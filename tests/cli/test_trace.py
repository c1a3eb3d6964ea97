"""`yunikorn-actors trace`: what it prints, and its exit status."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from recordings import ask, in_service, records, register, rewrite, simulate, submit, write

from yunikorn_actors import SchedulerCore
from yunikorn_actors.cli import main
from yunikorn_actors.cli.terminal import Progress
from yunikorn_actors.messages.scheduling import RunCycle

Screen = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def test_show_prints_a_trace_and_leaves_with_0(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "show", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{path}: proposing topology, driver sim, seed 0\n")
    assert out.endswith(f"\n{len(records(path)) - 2} messages; complete\n")
    assert err == ""


@pytest.mark.parametrize(
    ("options", "closing"),
    [
        (["--mailbox", "context"], "1 of 2 messages; complete"),
        (["--stimulus", "node-2"], "1 of 2 messages; complete"),
        (["--type", "RunCycle", "--about", "p"], "1 of 2 messages; complete"),
        (["--refused"], "0 of 2 messages; complete"),
        (["--limit", "1"], "stopped at the limit of 1: there may be more"),
    ],
)
def test_show_takes_what_to_show(
    path: Path, capsys: Screen, options: list[str], closing: str
) -> None:
    write(path, RunCycle(partition="p", epoch=1), RunCycle(partition="q", epoch=1))
    changed = records(path)
    changed[2]["mailbox"] = "scheduler:p#1"
    rewrite(path, changed)
    assert main(["trace", "show", str(path), *options]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == closing


def test_show_prints_payloads_in_full(path: Path, capsys: Screen) -> None:
    write(path, RunCycle(partition="p", epoch=1))
    assert main(["trace", "show", str(path), "--full"]) == 0
    assert '  "partition": "p",\n' in capsys.readouterr().out


def test_draw_draws_what_is_wanted(path: Path, capsys: Screen) -> None:
    write(path, RunCycle(partition="p", epoch=1), RunCycle(partition="q", epoch=1))
    ids = ["--about", "p", "--about", "q"]
    assert main(["trace", "draw", str(path), *ids]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]] == ["p", "q"]
    assert main(["trace", "draw", str(path), *ids, "--limit", "1"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]] == ["p"]
    assert main(["trace", "draw", str(path), "--type", "TimerArmed"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["show", "draw", "stats", "refusals"])
def test_a_name_that_nobody_has_leaves_with_1_and_those_like_it(
    path: Path, capsys: Screen, command: str
) -> None:
    write(path, RunCycle(partition="train-06", epoch=1))
    assert main(["trace", command, str(path), "--about", "train-6"]) == 1
    assert (
        f"{path}: no id 'train-6' occurs in it; did you mean train-06?\n" == capsys.readouterr().err
    )
    assert main(["trace", command, str(path), "--mailbox", "contxt"]) == 1
    assert "no mailbox 'contxt' occurs in it; did you mean context?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        (
            "--type",
            "RunCycles",
            "no message and no fact is of type 'RunCycles'; did you mean RunCycle?",
        ),
        ("--type", "xyz", "no message and no fact is of type 'xyz'; choose from Accepted, "),
        ("--limit", "0", "'0' is not a number of at least 1"),
        ("--limit", "many", "'many' is not a number of at least 1"),
    ],
)
def test_a_question_that_makes_no_sense_leaves_with_2(
    path: Path, capsys: Screen, option: str, value: str, expected: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["trace", "show", str(path), option, value])
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("run", [simulate, in_service])
def test_replay_leaves_with_0_where_the_run_is_the_same(
    path: Path, capsys: Screen, run: object
) -> None:
    assert callable(run)
    run(path)
    assert main(["trace", "replay", str(path)]) == 0
    assert ": identical" in capsys.readouterr().out


def test_replay_leaves_with_1_and_the_difference(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    recorded[-1]["states"]["context"] = "0" * 64
    rewrite(path, recorded)
    assert main(["trace", "replay", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: different at context/")
    assert f"\n-{'0' * 64}\n+" in out


@pytest.mark.parametrize("command", ["show", "replay"])
def test_a_file_that_cannot_be_read_leaves_with_2(path: Path, capsys: Screen, command: str) -> None:
    path.write_text("no trace")
    assert main(["trace", command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"{path}: record 1 is not the header of a trace: the file is text; give a file that a run with --trace wrote\n"
    )


def test_damage_in_the_middle_leaves_with_2_after_what_could_be_read(
    path: Path, capsys: Screen
) -> None:
    changed = records(write(path, RunCycle(partition="p", epoch=1)))
    rewrite(path, [*changed[:2], {"record": "delivery"}])
    assert main(["trace", "show", str(path)]) == 2
    out, err = capsys.readouterr()
    assert "RunCycle p\n" in out
    assert "record 3 is not as recorded: Object missing required field `mailbox`" in err


@pytest.mark.parametrize(
    "command", [["show"], ["show", "--full"], ["show", "--about", "x"], ["replay"]]
)
def test_a_payload_that_is_nested_too_deeply_leaves_with_2(
    path: Path, capsys: Screen, command: list[str]
) -> None:
    """MessagePack takes it; what decodes it does not, and says so."""
    changed = records(write(path, RunCycle(partition="p", epoch=1)))
    changed[1].update(type="StateDump", payload={"state": {"deep": "here"}})
    rewrite(path, changed)
    path.write_bytes(path.read_bytes().replace(b"\xa4here", b"\x81\xa1a" * 1000 + b"\xa1y"))
    assert main(["trace", command[0], str(path), *command[1:]]) == 2
    deeper = f"{path}: record 2 cannot be read: it is nested too deep; "
    assert capsys.readouterr().err.startswith(deeper)


# -- on a terminal


def on_terminal(path: Path, **variables: str) -> str:
    """Run the command with a terminal for its output, and return what that shows."""
    master, slave = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", **variables}
    command = [sys.executable, "-m", "yunikorn_actors", "trace", "show", str(path)]
    process = subprocess.Popen(command, stdout=slave, env=environment)
    os.close(slave)
    text = b""
    while chunk := read_terminal(master):
        text += chunk
    os.close(master)
    assert process.wait(timeout=30) == 0
    return text.decode()


def read_terminal(terminal: int) -> bytes:
    """A terminal that nobody writes to any more is an error on Linux."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def test_colour_is_for_terminals_that_want_it(path: Path) -> None:
    write(path, RunCycle(partition="p" * 200, epoch=1))
    coloured = on_terminal(path)
    plain = on_terminal(path, NO_COLOR="1")
    assert "\x1b[1mRunCycle\x1b[0m" in coloured
    assert "\x1b" not in plain
    lines = [line for line in plain.splitlines() if "RunCycle" in line]
    assert max(len(line) for line in lines) == 120
    assert "\x1b" not in on_terminal(path, NO_COLOR="x")
    assert "\x1b" in on_terminal(path, NO_COLOR="")


def test_a_reader_that_goes_away_does_no_harm(path: Path) -> None:
    """`trace show | head`."""
    write(path, *[RunCycle(partition="p", epoch=1)] * 5_000)
    command = [sys.executable, "-m", "yunikorn_actors", "trace", "show", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(str(path).encode())
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=30) == 0


def test_replay_goes_as_far_as_it_is_told(path: Path, capsys: Screen) -> None:
    simulate(path)
    place = next(n for n, it in enumerate(records(path), 1) if it.get("mailbox") == "context")
    assert main(["trace", "replay", str(path), "--to", "context/1", "--all"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"replayed {place - 1} messages in 2 mailboxes: identical")
    assert out.endswith("; stopped there, so no states were compared\n")
    assert err == ""


def test_replay_counts_on_a_terminal(
    path: Path, capsys: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(path)
    monkeypatch.setattr(Progress, "EACH", 50)
    assert main(["trace", "replay", str(path)]) == 0
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["trace", "replay", str(path)]) == 0
    assert terminal.getvalue() == "\r50 messages\x1b[K\r100 messages\x1b[K\r\x1b[K"


@pytest.mark.parametrize(
    ("command", "doing"),
    [
        (["view", "--why", "all"], ["drawing", "names in", "stories in", "why asks waited in"]),
        (["why", "a"], [""]),
    ],
)
def test_what_takes_long_counts_on_a_terminal_and_nowhere_else(
    path: Path, command: list[str], doing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(path)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(Progress, "EACH", 50)
    name, *options = command
    for terminal, counts in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main(["trace", name, str(path), *options]) == 0
        shown = terminal.getvalue()
        for what in doing:
            assert bool(re.search(rf"\r{what} ?\d+ messages", shown)) is counts
        assert shown.endswith("\r\x1b[K" if counts else "")
        assert counts or not shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# -- why


def test_why_tells_the_periods_and_what_ended_them(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "why", str(path), "app-1/a"]) == 0
    head, _, columns, *_, last = capsys.readouterr().out.splitlines()
    assert head == "a of app-1 (vcore 3m) in [rm-1]default waited 0.000 s"
    assert columns.split() == ["from", "to", "why", "since", *(["held", "by"])]
    assert last.split()[:4] == ["0.000", "placed", "on", "n1"]


def test_why_counts_records_where_time_stood_still(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    begin = recorded[0]["start_ns"]
    still = [it for it in recorded[:-1] if it.get("at_ns", begin) == begin]
    rewrite(path, still)
    assert main(["trace", "why", str(path), "a", "--json"]) == 0
    *_, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (last["cause"], last["to_record"]) == ("PLACED", None)
    assert main(["trace", "why", str(path), "a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "the clock stood still all the time, so these are numbers of records"
    assert lines[-1].split()[0] == str(last["from_record"])


def test_why_tells_of_an_ask_that_was_never_taken(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "why", str(path), "f"]) == 0
    assert "it was rejected: failed to find application nobody" in capsys.readouterr().out


def test_why_knows_names_that_are_near(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "why", str(path), "aa"]) == 1
    assert capsys.readouterr() == ("", f"{path}: no ask 'aa' came; did you mean a?\n")
    assert main(["trace", "why", str(path), "a", "app-2"]) == 1


def test_why_asks_whose_key_it_is(path: Path, capsys: Screen) -> None:
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        for app in ("app-1", "app-2"):
            submit(core, app)
            ask(core, app, "a")
    assert main(["trace", "why", str(path), "a"]) == 2
    problem = "say which, as several have it: app-1/a, app-2/a"
    assert capsys.readouterr() == ("", f"{path}: {problem}\n")
    assert main(["trace", "why", str(path), "app-2/a"]) == 0
    assert capsys.readouterr().out.startswith("a of app-2 ")


def test_why_answers_for_several_asks_at_once(path: Path, capsys: Screen) -> None:
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        for app in ("app-1", "app-2"):
            submit(core, app)
            ask(core, app, "a")
            ask(core, app, f"b-of-{app}")
    alone = []
    for key in ("app-1/a", "b-of-app-2"):
        assert main(["trace", "why", str(path), key]) == 0
        alone.append(capsys.readouterr().out)
    assert main(["trace", "why", str(path), "b-of-app-2", "app-1/a"]) == 0
    assert capsys.readouterr().out == "\n".join(alone), "in the order in which they came"
    assert main(["trace", "why", str(path), "b-of-app-1", "b-of-app-3"]) == 1
    said, problem = capsys.readouterr()
    assert said.startswith("b-of-app-1 of app-1 ")
    assert problem.startswith(f"{path}: no ask 'b-of-app-3' came; did you mean b-of-app-")


def test_why_stops_where_the_replay_differs(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    place = next(it for it in recorded if it.get("type") == "ProposeAllocations")
    place["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    assert main(["trace", "why", str(path), "a"]) == 1
    out, err = capsys.readouterr()
    assert "a node has been chosen" in out
    assert "the replay is not what was recorded from context/" in err


# -- at


def test_at_prints_a_dump_that_other_commands_read(
    path: Path, tmp_path: Path, capsys: Screen
) -> None:
    simulate(path)
    place = next(n for n, it in enumerate(records(path), 1) if it.get("type") == "RunCycle")
    assert main(["trace", "at", str(path), str(place)]) == 0
    dump = tmp_path / "dump.json"
    dump.write_text(capsys.readouterr().out)
    assert main(["health", str(dump)]) in {0, 1}
    assert capsys.readouterr().err == ""
    assert main(["trace", "at", str(path), "1ms", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_at_tells_what_is_different(path: Path, capsys: Screen) -> None:
    simulate(path)
    place = next(n for n, it in enumerate(records(path), 1) if it.get("type") == "RMUpdateNode")
    words = ["trace", "at", str(path), str(place - 1), "--diff", str(place)]
    assert main(words) == 0
    told = [it for it in capsys.readouterr().out.splitlines() if ".nodes.n1" in it]
    assert told[0].startswith("+ partitions.[rm-1]default.nodes.n1: {")
    assert main([*words, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(row["field"][:4] == ["partitions", "[rm-1]default", "nodes", "n1"] for row in rows)


def test_at_comes_no_further_than_the_recording(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "at", str(path), "99h"]) == 1
    out, err = capsys.readouterr()
    assert (out, err[: len(f"{path}: ")]) == ("", f"{path}: ")
    assert "the recording has no such place: its first message is record " in err


def test_at_stops_where_the_replay_differs(path: Path, capsys: Screen) -> None:
    recorded = records(simulate(path))
    place = next(it for it in recorded if it.get("type") == "ProposeAllocations")
    place["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    assert main(["trace", "at", str(path), str(len(recorded) - 1)]) == 1
    assert "the replay is not what was recorded from context/" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["stats"], ["refusals"], ["query", "select 1"], ["export", "--to", "jsonl"]],
    ids=lambda it: it[0],
)
def test_what_is_counted_in_a_damaged_recording_is_not_taken_for_the_whole(
    path: Path, capsys: Screen, command: list[str]
) -> None:
    write(path, *(RunCycle(partition="p", epoch=epoch) for epoch in range(20)))
    arguments = ["trace", command[0], str(path), *command[1:]]
    assert 0 == main(arguments)
    assert "" == capsys.readouterr().err
    data = path.read_bytes()
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    ends = [unpacker.tell() for _ in unpacker]
    middle = ends[len(ends) // 2]
    # What stands there now reads as the beginning of one huge record.
    path.write_bytes(data[:middle] + b"\xc6\x03\xff\xff\xff" + data[middle:])
    assert 0 == main(arguments)
    said = capsys.readouterr().err
    assert f"{path}: incomplete: the run is still being recorded, or was cut off; its last " in said
    assert " bytes are no whole record" in said


def test_what_is_written_to_a_pipe_does_not_take_its_place(
    path: Path, capsys: Screen, tmp_path: Path
) -> None:
    write(path, RunCycle(partition="p", epoch=1))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Held open for both, a pipe keeps nobody waiting for the other end.
    end = os.open(pipe, os.O_RDWR)
    try:
        assert 0 == main(["trace", "export", str(path), "--to", "mermaid", "-o", str(pipe)])
        assert os.read(end, 1 << 16).startswith(b"sequenceDiagram")
    finally:
        os.close(end)
    assert pipe.is_fifo()
    assert "" == capsys.readouterr().err


# -- where it comes from


@pytest.mark.parametrize(
    "question",
    [
        ["story", "app-1"], ["story", "app-1", "--json"], ["path", "a"], ["why", "a"],
        ["chain", "context/9"], ["chain", "rm_proxy/1", "--down", "--json"], ["draw"],
        ["refusals"], ["stats"], ["at", "9"], ["replay"],
    ],
)  # fmt: skip
def test_standard_input_is_asked_like_a_file(
    path: Path, capsys: Screen, monkeypatch: pytest.MonkeyPatch, question: list[str]
) -> None:
    simulate(path)
    command, *more = question
    status = main(["trace", command, str(path), *more])
    told = capsys.readouterr().out
    with path.open(encoding="latin-1") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["trace", command, "-", *more]) == status
    assert capsys.readouterr().out.replace("-:", f"{path}:", 1) == told


@pytest.mark.parametrize("question", [["story", "x"], ["path", "x"], ["why", "x"], ["stats"]])
def test_what_cannot_be_opened_is_said_with_a_remedy(
    tmp_path: Path, capsys: Screen, question: list[str]
) -> None:
    command, *more = question
    assert main(["trace", command, str(tmp_path / "none"), *more]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path / 'none'}: cannot be opened: No such file or directory; "
        "give the path of a recorded trace\n"
    )


def test_a_closed_stream_is_an_empty_one(path: Path) -> None:
    simulate(path)

    def run(words: str) -> tuple[int, str]:
        shell = f'"$0" -m yunikorn_actors trace {words}'
        ended = subprocess.run(
            ["sh", "-c", shell, sys.executable, path], capture_output=True, text=True, check=False
        )
        return ended.returncode, ended.stderr

    assert run('stats "$1" >&-') == (0, "")
    assert run('stats "$1" 2>&-') == (0, "")
    status, complaint = run("story - app-1 <&-")
    assert (status, complaint.count("\n")) == (2, 1)
    assert "has no header yet" in complaint
