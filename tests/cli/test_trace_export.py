"""`yunikorn-actors trace export`: where it writes, and its exit status."""

from pathlib import Path

import pytest
from recordings import records, rewrite, simulate, write

from yunikorn_actors.cli import main
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.formats import FORMATS

Screen = pytest.CaptureFixture[str]
CYCLES = [RunCycle(partition=name, epoch=1) for name in "pqr"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def export(path: Path, to: str, *options: str) -> int:
    return main(["trace", "export", str(path), "--to", to, *options])


@pytest.mark.parametrize("to", FORMATS)
def test_a_file_has_what_standard_output_gets(path: Path, capsys: Screen, to: str) -> None:
    write(path, *CYCLES)
    assert export(path, to) == 0
    printed = capsys.readouterr().out
    out = path.with_suffix(".out")
    assert export(path, to, "-o", str(out)) == 0
    assert capsys.readouterr() == ("", "")
    assert out.read_text() == printed
    assert sorted(path.parent.iterdir()) == [out, path]


def test_only_what_is_wanted_is_exported(path: Path, capsys: Screen) -> None:
    write(path, *CYCLES)
    assert export(path, "jsonl", "--about", "q") == 0
    assert capsys.readouterr().out.count('"record":"delivery"') == 1


@pytest.mark.parametrize("to", FORMATS)
def test_a_recording_that_is_damaged_leaves_the_former_file_as_it_was(
    path: Path, capsys: Screen, to: str
) -> None:
    write(path, *CYCLES)
    rewrite(path, [*records(path)[:3], {"record": "delivery"}])
    out = path.with_suffix(".out")
    out.write_text("former")
    assert export(path, to, "-o", str(out)) == 2
    assert "record 4 is not as recorded" in capsys.readouterr().err
    assert out.read_text() == "former"
    assert sorted(path.parent.iterdir()) == [out, path]


def test_a_format_that_there_is_not_leaves_with_2(path: Path, capsys: Screen) -> None:
    with pytest.raises(SystemExit) as caught:
        export(path, "jason")
    assert caught.value.code == 2
    assert "invalid choice: 'jason' (choose from" in capsys.readouterr().err


def test_a_folder_that_there_is_not_leaves_with_2(path: Path, capsys: Screen) -> None:
    write(path, *CYCLES)
    assert export(path, "jsonl", "-o", str(path.parent / "no" / "out")) == 2
    err = capsys.readouterr().err
    assert err.startswith("yunikorn-actors trace export: ")
    assert "No such file or directory; check the path" in err


def test_json_is_read_by_every_command(path: Path, capsys: Screen) -> None:
    simulate(path)
    out = path.with_suffix(".jsonl")
    assert export(path, "jsonl", "-o", str(out)) == 0
    assert main(["trace", "replay", str(out)]) == 0
    assert ": identical\n" in capsys.readouterr().out
    for command in (["show"], ["draw"], ["export", "--to", "markdown"]):
        printed = []
        for file in (path, out):
            assert main(["trace", command[0], str(file), *command[1:]]) == 0
            printed.append(capsys.readouterr().out.replace(file.name, "name"))
        assert printed[0] == printed[1]


# -- questions


def ask(path: Path, sql: str, *options: str) -> int:
    return main(["trace", "query", str(path), sql, *options])


def test_a_question_has_a_table_for_its_answer(path: Path, capsys: Screen) -> None:
    write(path, *CYCLES)
    assert ask(path, "SELECT id, sent_ns, says || char(10) AS says FROM message LIMIT 2") == 0
    assert capsys.readouterr().out == "id\tsent_ns\tsays\n1\t\tp\\n\n2\t\tq\\n\n"
    assert ask(path, "SELECT id, sent_ns FROM message", "--json", "--about", "q") == 0
    assert capsys.readouterr().out == '{"id":2,"sent_ns":null}\n'


def test_the_database_is_kept_where_it_is_asked_for(path: Path, capsys: Screen) -> None:
    write(path, *CYCLES)
    out, other = path.with_name("a.db"), path.with_name("b.db")
    assert ask(path, "SELECT count(*) FROM message", "--save", str(out)) == 0
    assert export(path, "sqlite", "-o", str(other)) == 0
    assert capsys.readouterr().out == "count(*)\n3\n"
    assert out.read_bytes() == other.read_bytes()
    assert sorted(path.parent.iterdir()) == [out, path, other]


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        ("SELECT x", [], "the question has no answer: no such column: x\n"),
        ("DELETE FROM message", [], "the question has no answer: not authorized\n"),
    ],
)
def test_a_question_that_is_not_understood_leaves_with_2(
    path: Path, capsys: Screen, sql: str, options: list[str], said: str
) -> None:
    write(path, *CYCLES)
    assert ask(path, sql, *options) == 2
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x"])
def test_a_time_is_above_nothing(path: Path, capsys: Screen, seconds: str) -> None:
    with pytest.raises(SystemExit) as caught:
        ask(path, "SELECT 1", f"--seconds={seconds}")
    assert caught.value.code == 2
    assert "is no number of seconds above 0" in capsys.readouterr().err


def test_a_database_needs_a_file(path: Path, capsys: Screen) -> None:
    write(path, *CYCLES)
    assert export(path, "sqlite") == 2
    assert capsys.readouterr() == ("", "a database is no text: name a file for it with -o\n")


@pytest.mark.parametrize(("to", "most"), [("mermaid", 40), ("dot", 500), ("shiviz", 2000)])
def test_a_picture_that_nobody_could_read_leaves_with_2(
    path: Path, capsys: Screen, to: str, most: int
) -> None:
    write(path, *CYCLES[:1] * (most + 1))
    out = path.with_suffix(".out")
    assert export(path, to, "-o", str(out)) == 2
    assert f"takes {most} messages, and more are wanted; narrow it down" in capsys.readouterr().err
    assert not out.exists()
    assert export(path, to, "--until", "3", "-o", str(out)) == 0
