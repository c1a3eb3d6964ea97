"""`demo`: a whole run as a user sees it, on a terminal and elsewhere, and what can end it early."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from yunikorn_actors import CoreFailed, SchedulerCore, si
from yunikorn_actors.cli import demo, main
from yunikorn_actors.cli.demo import report
from yunikorn_actors.cli.demo.company import Day, Job, Server, Task, draw_day
from yunikorn_actors.cli.demo.display import LineDisplay, Screen, display_for
from yunikorn_actors.cli.demo.picture import ASCII, BLOCKS, Glyphs, glyphs_for, picture
from yunikorn_actors.cli.demo.play import Play
from yunikorn_actors.cli.demo.totals import Attempt, Books, NodeState, open_books
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.trace.read import TraceReader

PROGRAM = (sys.executable, "-m", "yunikorn_actors", "demo")
LONG_ENOUGH_S = 100
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
COLOUR = re.compile(r"\x1b\[[0-9]+m")
ROW = re.compile(r"( *)(\w+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ms")


# --- a whole run, anywhere ------------------------------------------------------------------------


class PlainRun:
    def __init__(self, folder: Path) -> None:
        self.trace = folder / "run.trace"
        self.ended = subprocess.run(
            [*PROGRAM, "--seed", "3", "--trace", str(self.trace)],
            capture_output=True,
            text=True,
            timeout=LONG_ENOUGH_S,
            check=False,
        )
        self.rows = [match.groups() for match in ROW.finditer(self.ended.stdout)]


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> PlainRun:
    return PlainRun(tmp_path_factory.mktemp("plain"))


def test_a_run_ends_well_and_says_so_in_plain_lines(plain_run: PlainRun) -> None:
    assert (0, "") == (plain_run.ended.returncode, plain_run.ended.stderr)
    assert "\x1b" not in plain_run.ended.stdout
    for story in ("node-04 is drained", "node-11 is lost", "node-11 is back", "takes work again"):
        assert 1 == plain_run.ended.stdout.count(story)


def test_the_table_has_the_counts_of_the_day_and_they_add_up(plain_run: PlainRun) -> None:
    day = draw_day(3)
    counts = {(len(indent) // 2, name): row for indent, name, *row in plain_run.rows}
    apps = {place: int(row[0]) for place, row in counts.items()}
    tasks = {place: int(row[1]) for place, row in counts.items()}

    assert [0, 1, 2, 2, 1, 2, 2, 1] == [depth for depth, _ in counts]
    assert len(day.applications) == apps[0, "root"]
    assert sum(len(app.tasks) for app in day.applications) == tasks[0, "root"]
    for column in (apps, tasks):
        assert column[0, "root"] == sum(n for place, n in column.items() if place[0] == 1)
        assert column[1, "engineering"] == column[2, "build"] + column[2, "ml"]
        assert column[1, "reports"] == column[2, "daily"] + column[2, "adhoc"]


def test_no_queue_was_ever_above_its_max(plain_run: PlainRun) -> None:
    peaks = [(int(peak), int(most)) for _, _, _, _, peak, most, _ in plain_run.rows]

    assert 8 == len(peaks)
    assert [] == [(peak, most) for peak, most in peaks if not 0 < peak <= most]


def test_the_trace_is_named_and_complete(plain_run: PlainRun) -> None:
    assert f"recorded in {plain_run.trace}\n" in plain_run.ended.stdout
    assert footer_is_there(plain_run.trace)


def footer_is_there(trace: Path) -> bool:
    with TraceReader(trace) as reader:
        return list(reader) != [] and reader.footer is not None


# --- a terminal -----------------------------------------------------------------------------------


class Terminal:
    """The demo on a terminal of its own, 60 columns wide."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        self.said = ""
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=folder,
            stdout=theirs,
            stderr=theirs,
            env=plain_environment() | {"TERM": "xterm"},
        )
        os.close(theirs)

    def read_until(self, mark: str) -> None:
        while mark not in self.said and self._read():
            pass

    def read_all(self) -> int:
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(LONG_ENOUGH_S)

    def _read(self) -> bool:
        """Nobody holds the other end any more: that is an error to Linux, and the end to us."""
        try:
            data = os.read(self._ours, 65536)
        except OSError:
            return False
        self.said += data.decode(errors="replace")
        return bool(data)


def plain_environment() -> dict[str, str]:
    steering = ("COLUMNS", "LINES", "NO_COLOR", "TERM")
    return {key: value for key, value in os.environ.items() if key not in steering}


def test_a_terminal_is_redrawn_in_place_and_gets_its_cursor_back(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--topology", "fused")

    assert 0 == terminal.read_all()
    assert COLOUR.search(terminal.said)
    assert re.search(r"\x1b\[\d+A", terminal.said)
    assert HIDE in terminal.said
    assert HIDE not in terminal.said.rpartition(SHOW)[2]
    assert "recorded in yunikorn-demo.trace" in terminal.said
    assert footer_is_there(tmp_path / "yunikorn-demo.trace")


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_gives_a_terminal_its_cursor_back(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.read_until(HIDE)

    terminal.process.send_signal(signal.SIGINT)

    assert 130 == terminal.read_all()
    assert HIDE in terminal.said
    assert HIDE not in terminal.said.rpartition(SHOW)[2]
    assert terminal.said.endswith("interrupted\r\n")
    assert "Traceback" not in terminal.said


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_plain_run_with_the_trace_closed(tmp_path: Path) -> None:
    trace = tmp_path / "run.trace"
    process = subprocess.Popen(
        [*PROGRAM, "--trace", str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while " s  " not in process.stdout.readline():
        pass

    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=LONG_ENOUGH_S)

    assert (130, "interrupted\n") == (process.returncode, complaints)
    assert footer_is_there(trace)


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_trace_that_cannot_be_written_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "nowhere" / "run.trace"

    status = main(["demo", "--trace", str(trace)])

    said = capsys.readouterr()
    assert (2, "") == (status, said.out)
    assert said.err.startswith(f"{trace}: ")
    assert "No such file or directory" in said.err


def one_application(queue: str) -> Day:
    task = Task(key="task-1", vcore=1000, memory=1, seconds=0.01)
    app = Job(id="app-1", queue=queue, user="eve", group="guests", submitted_s=0.0, tasks=(task,))
    machine = Server(id="node-1", vcore=1000, memory=1)
    return Day(machines=(machine,), applications=(app,), incidents=())


def test_what_no_day_gives_reason_for_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest may not submit to the engineers' queue, and a day on which one does is no demo."""
    monkeypatch.setattr(demo, "draw_day", lambda _: one_application("root.engineering.build"))
    trace = tmp_path / "run.trace"

    status = main(["demo", "--trace", str(trace)])

    said = capsys.readouterr()
    assert 1 == status
    assert said.err.startswith("the demo has failed: the core rejected app-1: ")
    assert said.err.endswith(f"all that happened until then is in {trace}\n")
    assert footer_is_there(trace)


def test_a_trace_on_a_full_disk_is_told_after_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "draw_day", lambda _: one_application("root.sandbox"))

    status = main(["demo", "--trace", "/dev/full"])

    said = capsys.readouterr()
    assert 1 == status
    assert "\nroot " in said.out
    assert "\nthe trace /dev/full is incomplete: " in said.err


def test_a_core_that_fails_ends_the_play() -> None:
    core = SchedulerCore(settings=demo.SETTINGS).start()
    play = Play(core, one_application("root.sandbox"), LineDisplay(io.StringIO()))
    core._post(CONTEXT, Accepted(), "nobody sends this to Context")
    core._go_on()

    with pytest.raises(CoreFailed):
        play.run()
    core.stop()


# --- the resource manager -------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED"])
def test_what_the_core_takes_back_is_confirmed_and_asked_for_again(type_: str) -> None:
    """Without the confirmation the first allocation would stay, beside the second."""
    with SchedulerCore(topology="fused") as core:
        play = Play(core, one_application("root.sandbox"), LineDisplay(io.StringIO()))
        play._open()
        play._say_what_is_due()
        wait_until_placed(play, 1)
        taken_back = si.AllocationRelease(
            application_id="app-1",
            uuid=play._attempts["task-1"].uuid,
            termination_type=si.TerminationType[type_],
            allocation_key="task-1",
        )
        play._take_in(0.0, si.AllocationResponse(released=(taken_back,)))
        wait_until_placed(play, 2)
        partition = core.state_dump()["partitions"]["[demo]default"]

    assert ["task-1-again-2"] == [
        item["key"] for app in partition["applications"].values() for item in app["allocations"]
    ]


def wait_until_placed(play: Play, times: int) -> None:
    while play.books.root.placed < times:
        play._listen()


# --- the day, the books, the picture --------------------------------------------------------------


def test_the_day_follows_from_the_seed() -> None:
    assert draw_day(1) == draw_day(1)
    assert draw_day(1) != draw_day(2)


@pytest.mark.parametrize("seed", range(5))
def test_a_day_names_everything_once_and_is_in_order(seed: int) -> None:
    apps = draw_day(seed).applications
    keys = [task.key for app in apps for task in app.tasks]

    assert 40 == len({app.id for app in apps})
    assert len(keys) == len(set(keys))
    assert sorted(app.submitted_s for app in apps) == [app.submitted_s for app in apps]


def midday() -> Books:
    """The first application waits but for its first task, and two nodes are away."""
    day = draw_day(1)
    books = open_books(day)
    app = day.applications[0]
    books.submitted(app)
    books.moved(app, "Running")
    attempt = Attempt(task=app.tasks[0], application=app, number=1, asked_s=1.0, node="node-01")
    books.placed(attempt, 1.25)
    books.nodes["node-02"].state = NodeState.LOST
    books.nodes["node-03"].state = NodeState.DRAINED
    return books


def test_a_task_that_was_lost_waits_again_and_one_that_ended_is_done() -> None:
    books, app = midday(), draw_day(1).applications[0]
    attempt = Attempt(task=app.tasks[0], application=app, number=1, asked_s=1.0, node="node-01")
    root, tasks = books.root, len(app.tasks)
    assert (tasks - 1, 1, 0) == (root.waiting, root.at_work, root.done)

    books.given_back(attempt)
    assert (tasks, 0, 0, 0) == (root.waiting, root.at_work, root.done, root.used)

    again = Attempt(task=app.tasks[0], application=app, number=2, asked_s=2.0, node="node-04")
    assert f"{attempt.key}-again-2" == again.key
    books.placed(again, 2.75)
    again.has_ended = True
    books.given_back(again)
    assert (tasks - 1, 0, 1, 0) == (root.waiting, root.at_work, root.done, root.used)
    assert (app.tasks[0].vcore, 500) == (root.peak, root.mean_wait_ms)


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII])
def test_no_line_of_the_picture_is_wider_than_the_terminal(glyphs: Glyphs) -> None:
    books = midday()

    for width in range(1, 200):
        lines = ["".join(text for text, _ in line) for line in picture(books, 1.5, width, glyphs)]
        assert 11 == len(lines)
        assert [] == [line for line in lines if len(line) > width]


def test_the_picture_names_the_nodes_that_are_away() -> None:
    lines = ["".join(text for text, _ in line) for line in picture(midday(), 1.5, 100, ASCII)]

    assert lines[-1].startswith("nodes 1 x 0 0 0 ")
    assert lines[-1].endswith("  node-02 lost, node-03 drained")


@pytest.mark.parametrize(
    ("encoding", "glyphs"), [("utf-8", BLOCKS), ("ascii", ASCII), ("nonsense", ASCII)]
)
def test_bars_are_drawn_with_what_can_be_written(encoding: str, glyphs: Glyphs) -> None:
    assert glyphs == glyphs_for(encoding)


class TerminalText(io.TextIOWrapper):
    """What would be written to a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "kind"),
    [({"TERM": "xterm"}, Screen), ({"TERM": "dumb"}, LineDisplay), ({}, LineDisplay)],
)
def test_a_terminal_that_can_be_steered_is(environment: dict[str, str], kind: type) -> None:
    assert kind is type(display_for(TerminalText(), environment))


@pytest.mark.parametrize(
    ("environment", "colours"), [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)]
)
def test_colour_is_left_out_where_it_is_not_wanted(
    environment: dict[str, str], colours: bool
) -> None:
    out, books = TerminalText(), midday()
    with display_for(out, environment | {"TERM": "xterm"}) as display:
        display.show(books, 1.0)
        display.note("node-02 is lost", 1.04)
        display.show(books, 1.1)
    out.seek(0)
    said = out.read()

    assert colours is bool(COLOUR.search(said))
    assert "  1.0 s  node-02 is lost\n" in said
    assert said.endswith(SHOW)


def test_the_report_of_an_empty_day_divides_by_nothing() -> None:
    assert report(open_books(draw_day(1)))[1].endswith(" 0 ms")
