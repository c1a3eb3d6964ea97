"""The thread of a journal, and its disk: what ends the one is told, the other is not waited for."""

import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from journals import begin, place, truth_in, truth_of
from probes import PATIENCE_S, wait_until
from support import Recorder

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal import Journal, compaction, writing
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.restored_state import Entry
from yunikorn_actors.runtime.scheduler_core import SchedulerCore

LATER = Entry(at_ns=1)


def no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each record begin another file."""
    monkeypatch.setattr(writing, "ROTATE_BYTES", 1)
    monkeypatch.setattr(writing, "ROTATE_SNAPSHOTS", 0)
    monkeypatch.setattr(writing, "SYNC_S", 0.001)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path)
    yield made
    made.close(PATIENCE_S)


def append_until(journal: Journal, is_over: Callable[[], object]) -> None:
    def append() -> object:
        journal.append(LATER)
        return is_over()

    wait_until(append)


@pytest.mark.usefixtures("short")
def test_where_no_thread_can_be_started_for_a_snapshot_the_journal_goes_on(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    monkeypatch.setattr(writing, "Folding", no_thread)
    append_until(journal, lambda: "no snapshot of the journal could be begun" in log.getvalue())
    first = journal._current
    append_until(journal, lambda: journal._current > first)
    assert journal._thread.is_alive()
    assert journal.failure is None


def test_a_snapshot_whose_thread_cannot_be_started_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def started_one(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(compaction.subprocess, "Popen", started_one)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        compaction.Folding(Folder(tmp_path), 1)
    (it,) = started
    assert it.returncode is not None
    assert it.stdout is not None
    assert it.stdout.closed


def test_what_ends_the_thread_is_raised_by_the_next_record(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it says that a record is kept, and nothing brings any to the disk."""

    def fail(_: Journal) -> bool:
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(Journal, "_is_long_enough", fail)
    journal.append(LATER)
    journal._thread.join(PATIENCE_S)
    assert not journal._thread.is_alive()
    with pytest.raises(JournalError, match=r"cannot be written: ZeroDivisionError\('made up'\)"):
        journal.append(LATER)


@pytest.mark.usefixtures("short")
def test_a_snapshot_that_fails_in_an_unheard_of_way_is_told(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(compaction.Folding, "_adopt", fail)
    line = "no snapshot of the journal was made, its files stay: made up"
    append_until(journal, lambda: line in log.getvalue())


def test_a_journal_whose_thread_cannot_be_started_lets_the_folder_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        Journal(tmp_path)
    monkeypatch.undo()
    Journal(tmp_path).close()


class DeadDisk:
    """Takes nothing, until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked, self.is_mended = threading.Event(), threading.Event()
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._wait)

    def _wait(self, file: int) -> None:
        self.is_asked.set()
        assert self.is_mended.wait(PATIENCE_S)
        self._sync(file)


def stopped(core: SchedulerCore) -> None:
    """Stop a core on another thread: were there no bound, the test would go on all the same."""
    stopping = threading.Thread(target=core.stop, args=(0.1,), daemon=True)
    stopping.start()
    stopping.join(PATIENCE_S / 2)
    assert not stopping.is_alive(), "it waits for a disk that does not answer"


def test_a_stop_does_not_wait_for_a_disk_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    rm = Recorder()
    core = SchedulerCore(journal=tmp_path).start()
    begin(core, rm)
    place(core, rm, "stays")
    before = truth_of(core)
    journal = core._journal
    assert journal is not None
    with monkeypatch.context() as patch:
        disk = DeadDisk(patch)
        journal.append(LATER)
        assert disk.is_asked.wait(PATIENCE_S)
        stopped(core)
        assert "has not answered in 1 s" in log.getvalue()
        assert journal._thread.is_alive()
        with pytest.raises(JournalError, match="does not answer"):
            journal.append(LATER)
        with pytest.raises(JournalError, match="belongs to a core that runs"):
            Journal(tmp_path)
        file, lock = journal._file, journal._lock
        os.fstat(file), os.fstat(lock)
        disk.is_mended.set()
        journal._thread.join(PATIENCE_S)
    for descriptor in (file, lock):
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(descriptor)
    assert before == truth_in(tmp_path)


def test_a_disk_that_is_quick_enough_has_the_end_of_the_file(tmp_path: Path) -> None:
    rm = Recorder()
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, rm)
        journal = core._journal
    assert journal is not None
    assert not journal._thread.is_alive()
    assert not journal._is_left
    with pytest.raises(JournalError, match="give the core more time to stop"):
        journal.append(LATER)
