"""A journal of a core that runs on and on: its files give way to snapshots, whatever goes wrong."""

import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from journals import SnapshotAtOnce, add_application, begin, place, release, truth_in, truth_of
from probes import wait_until
from support import RM, Recorder

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal import Journal, compaction, headers, writing
from yunikorn_actors.journal import compaction as folding
from yunikorn_actors.journal import journaled_context as kept
from yunikorn_actors.journal import restored_state as truth
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import EARLY, ENTRIES, SNAPSHOT
from yunikorn_actors.journal.restore import read
from yunikorn_actors.journal.restored_state import Entry, Truth
from yunikorn_actors.messages.scheduling import FactsMissed
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.state.facts import Fact, NodeAdded, apply
from yunikorn_actors.state.partition import PartitionState

SHORT = 4_096
UNTRACKED = {"event.trackingEnabled": "false"}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be so short that a little work fills several of them; it is tallied all the time."""
    monkeypatch.setattr(writing, "ROTATE_BYTES", SHORT)
    monkeypatch.setattr(writing, "ROTATE_SNAPSHOTS", 0)
    monkeypatch.setattr(kept, "TALLY_EVERY", 0)


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "Folding", SnapshotAtOnce)


def snapshots(folder: Path) -> list[int]:
    return Folder(folder).numbers(SNAPSHOT)


def files(folder: Path) -> list[int]:
    return Folder(folder).numbers(ENTRIES, EARLY)


def work_until(core: SchedulerCore, rm: Recorder, is_over: Callable[[], bool]) -> None:
    """Place and release, now and then: another process needs some of the computer as well."""

    def work() -> bool:
        key = f"k{len(rm.heard)}"
        place(core, rm, key)
        release(core, rm, key)
        time.sleep(0.01)
        return is_over()

    wait_until(work)


@pytest.mark.usefixtures("short")
def test_a_journal_of_a_long_run_stays_short(tmp_path: Path) -> None:
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        place(core, rm, "stays")
        # The first snapshot leaves the files that it was made of, the second takes them away.
        work_until(core, rm, lambda: files(tmp_path)[0] > 1)
        before, told = truth_of(core), core.events()
    assert {"stays"} == set(rm.running.values())
    with SchedulerCore(journal=tmp_path) as core:
        assert before == truth_of(core)
        survived = core.events(told.lowest_id, len(told.records)).records
    assert told.records == survived, "of files that are gone, too"


@pytest.mark.usefixtures("short", "no_process")
@pytest.mark.parametrize("extra", [{}, UNTRACKED], ids=["records", "no records"])
def test_a_snapshot_makes_the_state_that_all_files_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: dict[str, str]
) -> None:
    monkeypatch.setattr(Folder, "drop_before", lambda *_: None)
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm, **extra)
        place(core, rm, "stays")
        work_until(core, rm, lambda: len(snapshots(tmp_path)) > 2)
    folder = Folder(tmp_path)
    made, place_of = read(folder, row_of(folder))
    for number in snapshots(tmp_path):
        folder.file(SNAPSHOT, number).unlink()
    row = row_of(folder)
    assert 0 == row.snapshot
    assert files(tmp_path) == [link.number for link in row.links]
    again, same_place = read(folder, row)
    assert made.digest() == again.digest()
    assert place_of == same_place


STEPS = [
    (writing.Folder, "create"),
    (writing.Folder, "settle"),
    (writing.Folder, "adopt"),
    (writing.Folder, "drop_before"),
    (writing, "header_of"),
    (writing, "Folding"),
]


@pytest.mark.usefixtures("short", "no_process")
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
def test_a_step_that_fails_harms_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO, owner: Any, step: str
) -> None:
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        place(core, rm, "stays")
        works, failed = getattr(owner, step), [0]

        def fails(*arguments: Any, **named: Any) -> Any:
            if failed[0]:
                return works(*arguments, **named)
            failed[0] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(owner, step, fails)
        work_until(core, rm, lambda: bool(failed[0]))
        before = truth_of(core)
        shutil.copytree(tmp_path, tmp_path / "copy", ignore=shutil.ignore_patterns("copy"))
        work_until(core, rm, lambda: len(snapshots(tmp_path)) > 1)
        after = truth_of(core)
    assert "No space left" in log.getvalue()
    assert before == truth_in(tmp_path / "copy"), "killed right after the step"
    assert after == truth_in(tmp_path)


@pytest.mark.usefixtures("short")
def test_a_process_that_makes_no_snapshot_leaves_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    monkeypatch.setattr(folding, "CHILD", "no.such.module")
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        work_until(core, rm, lambda: "no snapshot of the journal was made" in log.getvalue())
        work_until(core, rm, lambda: len(files(tmp_path)) > 2)
        before = truth_of(core)
    assert [] == snapshots(tmp_path)
    assert 1 == files(tmp_path)[0]
    assert before == truth_in(tmp_path)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 9))]
)
def test_a_process_that_is_killed_while_it_makes_a_snapshot_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO, seed: int
) -> None:
    random, popen = Random(seed), subprocess.Popen  # noqa: S311
    killed: list[subprocess.Popen[bytes]] = []

    def doomed(command: list[str], **named: Any) -> subprocess.Popen[bytes]:
        process = popen(command, **named)
        killed.append(process)
        if len(killed) == 1:
            # It has hardly begun, so this one does not get to its end.
            process.kill()
        elif len(killed) % 2:
            threading.Timer(random.uniform(0.0, 1.5), process.kill).start()
        return process

    monkeypatch.setattr(folding.subprocess, "Popen", doomed)
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm, vcore=1_000)
        place(core, rm, "stays")
        work_until(core, rm, lambda: len(killed) > 4 and bool(snapshots(tmp_path)))
        before = truth_of(core)
    assert -signal.SIGKILL == killed[0].returncode
    assert "no snapshot of the journal was made, its files stay" in log.getvalue()
    for _ in range(3):
        assert before == truth_in(tmp_path)
        assert not Folder(tmp_path).numbers("part")


@pytest.mark.usefixtures("short")
def test_a_core_that_stops_does_not_wait_for_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def hung(_: list[str], **named: Any) -> subprocess.Popen[bytes]:
        started.append(popen(["sleep", "600"], **named))
        return started[-1]

    monkeypatch.setattr(folding.subprocess, "Popen", hung)
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        work_until(core, rm, lambda: bool(started))
    assert started[0].returncode
    assert "snapshot" not in log.getvalue()


@pytest.mark.usefixtures("short", "no_process")
def test_whoever_is_killed_at_any_step_the_next_core_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each step the folder is copied as a killed process leaves it."""
    folder, copies = tmp_path / "journal", list[tuple[str, Path, set[str]]]()
    rm = Recorder()

    def copy(moment: str) -> None:
        told = set(rm.running)
        to = tmp_path / f"copy-{len(copies)}"
        copies.append((moment, to, told))
        shutil.copytree(folder, to)

    def copied(step: str, works: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            copy(f"before {step}")
            out = works(*arguments, **named)
            copy(f"after {step}")
            return out

        return wrapped

    with SchedulerCore(journal=folder) as core:
        begin(core, rm, vcore=1_000)
        with monkeypatch.context() as patch:
            for step in ("create", "settle", "adopt", "drop_before"):
                patch.setattr(Folder, step, copied(step, getattr(Folder, step)))
            for step in ("write_part", "check_part"):
                patch.setattr(compaction, step, copied(step, getattr(compaction, step)))
            count = 0
            while len(snapshots(folder)) < 2:
                place(core, rm, f"k{count}", size=1)
                count += 1
    assert {step for step, *_ in copies} >= {"before settle", "after write_part", "after adopt"}
    for moment, to, told in copies:
        with SchedulerCore(journal=to) as core:
            [app] = core.state_dump()["partitions"][f"[{RM}]default"]["applications"].values()
            kept_ = {it["uuid"] for it in app["allocations"]}
            assert told <= kept_, moment
            assert not Folder(to).numbers("part"), moment


# -- what a power cut leaves, and what somebody has done to the files


def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, settled: bool) -> Folder:
    """Make a journal whose second file goes on from the first, which may not be on the disk yet."""
    monkeypatch.setattr(writing, "Folding", lambda *_: None)
    rm = Recorder()
    if not settled:
        monkeypatch.setattr(Folder, "settle", lambda *_: None)
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        work_until(core, rm, lambda: 2 in files(tmp_path) and len(rm.told("new")) > 1)
        place(core, rm, "last")
    monkeypatch.undo()
    return Folder(tmp_path)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


@pytest.mark.usefixtures("short")
def test_what_follows_an_end_that_a_power_cut_took_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    folder = two_files(tmp_path, monkeypatch, settled=False)
    assert {1, 2} <= set(folder.numbers(EARLY))
    cut(folder.file(EARLY, 1))
    with SchedulerCore(journal=tmp_path) as core:
        [app] = truth_of(core)["applications"].values()
    assert "last" not in {it["key"] for it in app["allocations"]}
    assert "lost its end" in log.getvalue()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_that_is_not_whole_is_refused_if_another_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = two_files(tmp_path, monkeypatch, settled=True)
    before = {it.name for it in tmp_path.iterdir()}
    if number == 1:
        cut(folder.file(ENTRIES, 1))
        says = r"entries-00000001 is damaged at byte \d+ of \d+: restore"
    else:
        folder.file(ENTRIES, 1).unlink()
        before.discard("entries-00000001")
        says = r"entries-00000001 is missing \(byte 0\): restore it from a copy; or move the folder away"
    with pytest.raises(JournalError, match=says):
        SchedulerCore(journal=tmp_path).start()
    assert before == {it.name for it in tmp_path.iterdir()}, "nothing was changed"


def with_snapshot(tmp_path: Path) -> dict[str, Any]:
    """Make a journal with a snapshot, and one more before it."""
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        place(core, rm, "a")
    truth_in(tmp_path)
    return truth_in(tmp_path)


def test_without_a_damaged_snapshot_the_one_before_it_is_read(tmp_path: Path) -> None:
    before = with_snapshot(tmp_path)
    newest = Folder(tmp_path).file(SNAPSHOT, 3)
    data = bytearray(newest.read_bytes())
    data[-1] ^= 0xFF
    newest.write_bytes(data)
    with pytest.raises(
        JournalError, match=r"snapshot-00000003 is damaged at byte \d+ .* move it away"
    ):
        SchedulerCore(journal=tmp_path).start()
    newest.unlink()
    assert before == truth_in(tmp_path)


# -- a replay that goes wrong


def test_a_snapshot_that_makes_another_state_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Truth, "digest", lambda _: "another")
        patch.setattr(headers, "VERSION", "0.0.9")
        with_snapshot(tmp_path)
    with pytest.raises(
        JournalError, match=r"does not make the state .* start the version 0\.0\.9 .*move"
    ):
        SchedulerCore(journal=tmp_path).start()


def test_a_replay_that_comes_to_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = Recorder()
    monkeypatch.setattr(kept, "TALLY_EVERY", 0)
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        place(core, rm, "a")

    def applied(state: PartitionState, fact: Fact) -> None:
        """As if another version made more of a new node."""
        apply(state, fact)
        if isinstance(fact, NodeAdded):
            state.nodes["another"] = state.nodes[fact.node_id]

    monkeypatch.setattr(truth, "apply", applied)
    before = {it.name for it in tmp_path.iterdir()}
    with pytest.raises(
        JournalError,
        match=r"entries-00000001 .* entry \d+: .* the core .* had .* this version wrote",
    ):
        SchedulerCore(journal=tmp_path).start()
    assert before == {it.name for it in tmp_path.iterdir()}, "nothing was changed"


def test_an_entry_that_cannot_be_done_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_snapshot(tmp_path)
    monkeypatch.setattr(headers, "VERSION", "0.0.9")
    journal = Journal(tmp_path)
    journal.append(
        Entry(at_ns=1, issued=(("NoMessage", FactsMissed(partition="p", epoch=1, revision=0)),))
    )
    journal.close()
    with pytest.raises(
        JournalError, match=r"entry 1: it cannot be done again .* start the version 0\.0\.9"
    ):
        SchedulerCore(journal=tmp_path).start()


# -- history


def test_of_the_applications_that_have_ended_the_newest_survive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = Recorder()
    count = 5
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        for _ in range(count):
            # One of that name is there, so each of these is rejected.
            add_application(core)
        wait_until(lambda: len(rm.told("application")) == 1 + count)
        ended = truth_of(core)["finished"]
    assert count == len(ended)
    assert ended == truth_in(tmp_path)["finished"]
    monkeypatch.setattr(writing, "APPLICATION_BYTES_MAX", 1_000)
    survived = truth_in(tmp_path)["finished"]
    assert 0 < len(survived) < count
    assert ended[-len(survived) :] == survived
    assert survived == truth_in(tmp_path)["finished"]
