"""The command line as a whole: what it says of itself, and how it behaves towards a shell."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import yunikorn_actors
from yunikorn_actors.cli import COMMANDS, main

PROGRAM = (sys.executable, "-m", "yunikorn_actors")


def call(*arguments: str, reader: str = "cat") -> subprocess.CompletedProcess[str]:
    """Run the program in a shell pipe and return how the program itself ended."""
    script = '"$@" | ' + reader + '; exit "${PIPESTATUS[0]}"'
    shell = ["bash", "-c", script, "bash", *PROGRAM, *arguments]
    return subprocess.run(shell, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("nonsense",), "invalid choice: 'nonsense'"),
        (("demo", "--nonsense"), "unrecognized arguments: --nonsense"),
        (("demo", "--topology", "flat"), "invalid choice: 'flat'"),
        (("demo", "--seed", "lucky"), "invalid int value: 'lucky'"),
        (("config",), "the following arguments are required: COMMAND"),
    ],
)
def test_what_is_not_understood_is_said_and_answered_with_2(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    said = capsys.readouterr()
    assert (2, "") == (caught.value.code, said.out)
    assert complaint in said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])

    said = capsys.readouterr()
    assert (0, "") == (caught.value.code, said.err)
    assert f"usage: yunikorn-actors {name}" in said.out
    assert COMMANDS[name] in said.out


def test_the_program_has_help_that_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    said = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert list(COMMANDS) == [word for word in said if word in COMMANDS]


def test_python_dash_m_is_the_program() -> None:
    called = call("--version")

    assert (0, "") == (called.returncode, called.stderr)
    assert f"yunikorn-actors {yunikorn_actors.__version__}\n" == called.stdout


def test_a_command_does_not_pay_for_another() -> None:
    """Only the command that is asked for is imported."""
    code = (
        "import sys; from yunikorn_actors.cli import main; main(['config', 'check', '/dev/null']); "
        "from yunikorn_actors.cli import COMMANDS; "
        "print([it for it in COMMANDS if f'yunikorn_actors.cli.{it}' in sys.modules]); "
        "print('http.client' in sys.modules)"
    )

    called = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert ["['config']", "False"] == called.stdout.splitlines()[-2:]


@pytest.mark.parametrize("command", ["queues", "apps", "nodes", "drain"])
def test_who_asks_a_service_does_not_load_what_runs_a_core(command: str) -> None:
    """Half of the time that a table of nodes took went to imports."""
    code = (
        f"import sys; import yunikorn_actors.cli.{command}; "
        "print([it for it in sys.modules if it.startswith(('yunikorn_actors.machines.context', "
        "'yunikorn_actors.planning.', 'yunikorn_actors.trace.read'))])"
    )
    called = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert called.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "reader"),
    [
        (("config", "check", "LONG"), "head -1"),
        (("config", "check", "LONG"), "true"),
        (("--help",), "true"),
        (("demo", "--help"), "true"),
    ],
)
def test_a_reader_that_goes_away_is_no_fault(
    arguments: tuple[str, ...], reader: str, tmp_path: Path
) -> None:
    """The long output is far more than a pipe holds, so that the reader is gone before its end."""
    long = tmp_path / "long.yaml"
    queues = ", ".join(f"{{name: queue-{number}, submitacl: '*'}}" for number in range(3_000))
    long.write_text(f"partitions: [{{name: default, queues: [{queues}]}}]")

    called = call(*(str(long) if word == "LONG" else word for word in arguments), reader=reader)

    assert (0, "") == (called.returncode, called.stderr)


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]")

    full = subprocess.run(
        ["bash", "-c", '"$@" > /dev/full', "bash", *PROGRAM, "config", "check", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 2 == full.returncode
    assert "cannot go on: No space left on device\n" == full.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "workload run a.swf --nodes 4 --config {}",
        "workload compare {} policy:fcfs a.swf --nodes 4",
        "workload run a.swf --nodes 4 -o a.swf/{}",
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_command(
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.swf").write_text("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    words = arguments.format("none/x\x1b").split()
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"yunikorn-actors {words[0]} {words[1]}: ")
    assert err.endswith("; check the path, and whether you may use it\n")
    assert "Errno" not in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        "scenario run {}",
        "lab run {}",
        "lab replay {}",
        "lab shrink {}",
        "lab explain {}",
        "config check {}",
        "workload campaign {} -o report.json",
    ],
)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file or directory; name a file that exists"),
        (b"name: a\nsteps: \xff\n", "line 2 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_text_file_that_cannot_be_read_has_a_reason_and_a_remedy(
    arguments: str, text: bytes | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    if text is not None:
        file.write_bytes(text)

    assert main(arguments.format(file).split()) == 2

    said = "".join(capsys.readouterr())
    assert f"{file}: {why}" in said
    assert "Errno" not in said
    assert "codec" not in said


def test_the_modules_of_a_command_are_frozen_in_its_own_process_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    assert [] == frozen, "the process is the caller's"
    monkeypatch.setattr(sys, "argv", ["yunikorn-actors", "demo", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert [True] == frozen
