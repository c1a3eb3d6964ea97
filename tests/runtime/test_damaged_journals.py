"""Journals that are damaged at random: a start refuses them, or makes the state of a beginning.

A refusal names file, byte and remedy and changes nothing, and the remedy leads to a start. A start
from a beginning of what was recorded says so, and no later start loses more.
"""

import errno
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest
from journals import begin, place, release, truth_of
from probes import wait_until
from support import CONFIG, Recorder

from yunikorn_actors import si
from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal import Journal, writing
from yunikorn_actors.journal import journaled_context as kept
from yunikorn_actors.journal.compaction import fold
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, framed, frames_in
from yunikorn_actors.journal.headers import COUNTED, ENTRIES, PART, SNAPSHOT
from yunikorn_actors.journal.restored_state import Truth, stored_entry
from yunikorn_actors.runtime.scheduler_core import SchedulerCore

pytestmark = pytest.mark.timeout(1800)
ROUNDS_MAX: Final = 8
"""So many remedies one after the other lead to a start, or to the last one."""


class AtOnce:
    """A snapshot made in this process."""

    is_at_work = False

    def __init__(self, folder: Folder, number: int) -> None:
        fold(folder.path, number)
        folder.adopt(number)

    def stop(self, _: float | None) -> bool:
        return True


@dataclass(frozen=True)
class Recorded:
    """A journal as its core left it, and the digest of each state that it went through."""

    path: Path
    digests: list[str]


class Recording:
    """Cores that run one after the other, and files that end when this says so."""

    def __init__(self, work: Path, patch: pytest.MonkeyPatch, *, snapshots: bool = True) -> None:
        self.work = work
        self._snapshots = snapshots
        self._wanted: list[str] = []
        patch.setattr(
            Journal, "_is_long_enough", lambda _: bool(self._wanted and self._wanted.pop())
        )
        patch.setattr(writing, "Folding", AtOnce if snapshots else lambda *_: None)
        patch.setattr(kept, "TALLY_EVERY", 3)
        patch.setattr(Folder, "drop_before", lambda *_: None)

    def live(self, life: int, count: int) -> SchedulerCore:
        rm = Recorder()
        core = SchedulerCore(journal=self.work).start()
        begin(core, rm, vcore=1_000)
        for number in range(count):
            key = f"{life}-{number}"
            place(core, rm, key, size=1)
            if number % 3 == 0:
                release(core, rm, key)
            if number % 4 == 3:
                self._rotate(lambda key=key: register_another(core, f"rm-{key}"))
            if number % 4 == 1:
                for which in "ab":
                    register_another(core, f"rm-{key}-{which}")
        return core

    def _rotate(self, writes: Callable[[], None]) -> None:
        files = self._latest(ENTRIES)
        self._wanted.append("another file")
        writes()
        wait_until(lambda: self._latest(ENTRIES) > files)
        if self._snapshots:
            wait_until(lambda: self._latest(SNAPSHOT) == self._latest(ENTRIES))

    def _latest(self, kind: str) -> int:
        return max(Folder(self.work).numbers(kind), default=0)


def register_another(core: SchedulerCore, name: str) -> None:
    """Change what no revision of the partition's facts tells of."""
    request = si.RegisterResourceManagerRequest(rm_id=name, config=CONFIG, policy_group=name)
    core.register_resource_manager(request, Recorder())


def record(
    path: Path,
    *lives: int,
    killed: bool = False,
    snapshots: bool = True,
    after: Path | None = None,
) -> Recorded:
    """Run core after core, each for so many placements, and keep what a core keeps."""
    work = path.with_name(f"{path.name}-work")
    if after is not None:
        shutil.copytree(after.with_name(f"{after.name}-work"), work)
    with pytest.MonkeyPatch.context() as patch:
        recording = Recording(work, patch, snapshots=snapshots)
        for life, count in enumerate(lives):
            core = recording.live(life, count)
            if killed and life == len(lives) - 1:
                shutil.copytree(work, path)
            core.stop()
    if not killed:
        shutil.copytree(work, path)
    folder = Folder(path)
    digests = digests_of(folder)
    for former in folder.numbers(SNAPSHOT)[-2:-1]:
        folder.drop_before(former)
    return Recorded(path, digests)


def digests_of(folder: Folder) -> list[str]:
    truth = Truth()
    out = [truth.digest()]
    for number in folder.numbers(ENTRIES):
        for frame in [*frames_in(folder.file(ENTRIES, number).read_bytes(), None)][1:]:
            truth.take(stored_entry(frame.payload))
            out.append(truth.digest())
    return out


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    path = tmp_path_factory.mktemp("journals")
    return [
        record(path / "one", 3),
        record(path / "killed", 3, killed=True),
        record(path / "rotated", 6, snapshots=False),
        record(path / "rotated-killed", 7, snapshots=False, killed=True),
        record(path / "compacted", 6),
        record(path / "two", 3, 7),
        record(path / "three", 4, 12, 9, killed=True),
        record(path / "idle", 5, 0, 0),
        record(path / "two-again", 6, after=path / "two"),
        record(path / "two-once-more", 7, after=path / "two"),
    ]


@pytest.fixture
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is not waited for: nothing here ends by a power cut."""
    for module in ("folder", "compaction", "writing"):
        for call in ("fsync", "fdatasync"):
            name = f"yunikorn_actors.journal.{module}.os.{call}"
            monkeypatch.setattr(name, lambda _: None)


# -- damage

Damage = Callable[[Random, list[Path], list[Path]], str]


def _records(path: Path) -> list[bytes]:
    data = path.read_bytes()
    out, last = [], 0
    try:
        for frame in frames_in(data, None):
            out.append(data[last : frame.end])
            last = frame.end
    except Damaged:
        pass
    if last < len(data):
        out.append(data[last:])
    return out


def _file(random: Random, files: list[Path]) -> Path:
    plain = [it for it in files if it.is_file()]
    return random.choice(plain)


def cut(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data) or 1)])
    return f"cut {path.name}"


def cut_between_records(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    records = _records(path)
    path.write_bytes(b"".join(records[: random.randrange(len(records) or 1)]))
    return f"cut {path.name} between records"


def flip(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    data = bytearray(path.read_bytes())
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return f"flip a bit of {path.name}"


def zero(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    data = bytearray(path.read_bytes())
    start = random.randrange(len(data) or 1)
    end = min(len(data), start + random.choice([16, 512, 4_096]))
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    return f"zeros in {path.name}"


def append(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    data = path.read_bytes()
    garbage = random.choice([random.randbytes(random.randrange(1, 200)), data[-300:], bytes(700)])
    path.write_bytes(data + garbage)
    return f"append to {path.name}"


def empty(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    path.write_bytes(b"")
    return f"empty {path.name}"


def remove(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    path.unlink()
    return f"remove {path.name}"


def remove_a_tail(random: Random, files: list[Path], _: list[Path]) -> str:
    numbers = sorted({it.name.rpartition("-")[2] for it in files if it.exists()})
    first = random.choice(numbers)
    for path in files:
        if path.name.rpartition("-")[2] >= first:
            path.unlink(missing_ok=True)
    return f"remove all from {first} on"


def folder_instead(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    path.unlink()
    path.mkdir()
    return f"a folder instead of {path.name}"


def rename(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    kind, number = random.choice(COUNTED), random.randrange(1, 9)
    new = path.with_name(f"{kind}-{number:08}")
    if not new.is_dir():
        path.replace(new)
    return f"{path.name} becomes {new.name}"


def double(random: Random, files: list[Path], _: list[Path]) -> str:
    path = _file(random, files)
    new = path.with_name(f"{random.choice(COUNTED)}-{random.randrange(1, 9):08}")
    if new != path and not new.is_dir():
        shutil.copyfile(path, new)
    return f"{path.name} twice, as {new.name}"


def exchange(random: Random, files: list[Path], _: list[Path]) -> str:
    one, other = _file(random, files), _file(random, files)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name} and {other.name} exchanged"


def foreign(random: Random, files: list[Path], others: list[Path]) -> str:
    path = _file(random, files)
    alike = [it for it in others if it.name == path.name] or others
    other = random.choice(alike)
    shutil.copyfile(other, path)
    return f"{path.name} is {other}"


def records(random: Random, files: list[Path], _: list[Path]) -> str:
    """Remove, double or move records of a file."""
    path = _file(random, files)
    found = _records(path)
    if not found:
        return "nothing"
    one, other = random.randrange(len(found)), random.randrange(len(found))
    act = random.choice(["remove", "double", "double at the end", "swap", "next", "repeat"])
    match act:
        case "remove":
            del found[one]
        case "double":
            found.insert(one, found[one])
        case "double at the end":
            found.append(found[one])
        case "swap":
            found[one], found[other] = found[other], found[one]
        case "next":
            found[one : one + 2] = found[one : one + 2][::-1]
        case _:
            found[one:one] = found[min(one, other) : max(one, other) + 1]
    path.write_bytes(b"".join(found))
    return f"{act} records of {path.name}"


def records_of_another(random: Random, files: list[Path], others: list[Path]) -> str:
    path, other = _file(random, files), random.choice(others)
    found, strange = _records(path), _records(other)
    at = random.randrange(len(found) + 1)
    found[at : at + random.randrange(2)] = [random.choice(strange)]
    path.write_bytes(b"".join(found))
    return f"a record of {other} in {path.name}"


DAMAGES: Final[tuple[Damage, ...]] = (
    cut,
    cut_between_records,
    flip,
    zero,
    append,
    empty,
    remove,
    remove_a_tail,
    folder_instead,
    rename,
    double,
    exchange,
    foreign,
    records,
    records_of_another,
)


# -- what a start makes of it


def contents(path: Path) -> dict[str, bytes | None]:
    return {
        it.name: it.read_bytes() if it.is_file() else None
        for it in path.iterdir()
        if it.name != "lock"
    }


def start(path: Path) -> str:
    """Start from it, and return the digest of the state that is gone on with."""
    journal = Journal(path)
    journal.close()
    truth = Truth()
    if journal.restored is not None:
        truth.begin_with(journal.restored)
    return truth.digest()


class Outcomes:
    def __init__(self) -> None:
        self.refused = 0
        self.whole = 0
        self.beginnings = 0

    def of(self, path: Path, digests: list[str], log: StringIO) -> None:
        before = contents(path)
        log.seek(0)
        log.truncate()
        try:
            made = start(path)
        except JournalError as error:
            self.refused += 1
            check_refusal(str(error), path)
            unchanged = before == contents(path)
        else:
            self._went_on(path, made, digests, log)
            return
        assert unchanged, "nothing is changed"
        carry_out(path, refusal_of(path), digests)

    def _went_on(self, path: Path, made: str, digests: list[str], log: StringIO) -> None:
        assert made in digests, "the state of a beginning"
        if made == digests[-1]:
            self.whole += 1
        else:
            self.beginnings += 1
            said = log.getvalue()
            assert str(path) in said, "it says so"
            assert re.search(r"byte \d+|does not say which file was the last", said)
        for _ in range(3):
            assert made == start(path), "no later start loses more"


def check_refusal(text: str, path: Path) -> None:
    assert re.search(r"byte \d+", text), text
    assert re.search(rf"{path}/(entries|early|snapshot)-\d{{8}}", text), text
    assert re.search(r"restore|move|truncate|give it its name back", text), text


def refusal_of(path: Path) -> str:
    with pytest.raises(JournalError) as refused:
        start(path)
    return str(refused.value)


def carry_out(path: Path, text: str, digests: list[str]) -> None:
    """Do what the texts say, one after the other, until a core starts."""
    for _ in range(ROUNDS_MAX):
        before = contents(path)
        do(path, text)
        if "move the folder away" in text:
            assert before == contents(path), "there is no other remedy"
            return
        assert before != contents(path), text
        try:
            made = start(path)
        except JournalError as again:
            text = str(again)
            continue
        assert made in digests, text
        return
    pytest.fail(f"the remedies lead nowhere: {text}")


def do(path: Path, text: str) -> None:
    remedy = text.partition("byte ")[2]
    away = path.with_name(f"{path.name}-away")
    away.mkdir(exist_ok=True)
    for size, name in re.findall(r"truncate -s (\d+) (\S+?)\)", remedy):
        with Path(name).open("r+b") as file:
            file.truncate(int(size))
    for name, new in re.findall(r"\(mv (\S+) (\S+?)\)", remedy):
        Path(name).replace(new)
    snapshot = re.match(r"(\S+)", text)
    assert snapshot is not None
    if "move it away" in remedy:
        shutil.move(snapshot[1], away / f"{len([*away.iterdir()])}")
    for names in re.findall(r"move (/\S+(?: and /\S+)*) away", remedy):
        for name in names.split(" and "):
            shutil.move(name, away / f"{len([*away.iterdir()])}")


def damaged(recorded: list[Recorded], number: int, to: Path) -> tuple[Recorded, list[str]]:
    random = Random(number)  # noqa: S311
    which = random.randrange(len(recorded))
    shutil.copytree(recorded[which].path, to)
    others = [
        it
        for other in (*recorded[:which], *recorded[which + 1 :])
        for it in sorted(other.path.iterdir())
        if it.name != "lock"
    ]
    done = []
    for _ in range(random.choice([1, 1, 2])):
        files = sorted(it for it in to.iterdir() if it.name != "lock" and it.is_file())
        if files:
            done.append(random.choice(DAMAGES)(random, files, others))
    return recorded[which], done


@pytest.mark.usefixtures("no_disk")
@pytest.mark.parametrize(
    "numbers",
    [
        range(40),
        *(pytest.param(range(n, n + 392), marks=pytest.mark.slow) for n in range(40, 2_000, 392)),
    ],
)
def test_a_damaged_journal_is_refused_or_makes_a_beginning(
    recorded: list[Recorded], numbers: range, tmp_path: Path, log: StringIO
) -> None:
    outcomes = Outcomes()
    for number in numbers:
        path = tmp_path / f"{number}"
        of, done = damaged(recorded, number, path)
        try:
            outcomes.of(path, of.digests, log)
        except BaseException as error:
            error.add_note(f"case {number}, of {of.path.name}: {'; '.join(done)}")
            raise
        shutil.rmtree(path)
    assert min(outcomes.refused, outcomes.whole, outcomes.beginnings) > len(numbers) // 20, vars(
        outcomes
    )


# -- single kinds of damage


def recording_of(tmp_path: Path, *lives: int, **how: bool) -> Recorded:
    return record(tmp_path / "journal", *lives, **how)


@pytest.mark.parametrize("act", ["empty", "remove"])
def test_without_what_stands_beside_it_a_snapshot_is_gone_on_from(
    tmp_path: Path, log: StringIO, act: str
) -> None:
    it = recording_of(tmp_path, 3, 3)
    folder = Folder(it.path)
    number = folder.last_snapshot
    entries, snapshot = folder.file(ENTRIES, number), folder.file(SNAPSHOT, number)
    if act == "empty":
        entries.write_bytes(b"")
    else:
        entries.unlink()
    good = snapshot.read_bytes()
    made = start(it.path)
    assert made in it.digests[1:-1]
    assert f"{entries} is {'empty' if act == 'empty' else 'missing'}" in log.getvalue()
    assert good == snapshot.read_bytes(), "it stays until a newer one was read"
    assert [made] * 3 == [start(it.path) for _ in range(3)]


def test_damage_behind_a_snapshot_is_cut_off_as_the_text_says(tmp_path: Path) -> None:
    it = recording_of(tmp_path, 3, 3)
    folder = Folder(it.path)
    entries = folder.file(ENTRIES, folder.last_snapshot)
    data = bytearray(entries.read_bytes())
    data[5] ^= 1
    entries.write_bytes(data)
    text = refusal_of(it.path)
    assert f"move {entries} away, which gives up" in text
    carry_out(it.path, text, it.digests[1:])


def test_repeated_records_are_named_as_such(tmp_path: Path) -> None:
    it = recording_of(tmp_path, 3)
    [entries] = it.path.glob(f"{ENTRIES}-*")
    found = _records(entries)
    entries.write_bytes(b"".join([*found[:4], *found[2:]]))
    at, former = sum(map(len, found[:4])), sum(map(len, found[:2]))
    text = refusal_of(it.path)
    assert f"{entries} repeats at byte {at} the record of byte {former}: records are" in text
    assert f"truncate -s {at} {entries}" in text
    assert "version" not in text
    carry_out(it.path, text, it.digests)


def test_a_file_that_the_next_one_does_not_go_on_from_is_refused(tmp_path: Path) -> None:
    it = recording_of(tmp_path, 6, snapshots=False)
    entries = Folder(it.path).file(ENTRIES, 1)
    *former, last = _records(entries)
    entry = msgspec.msgpack.decode(last[12:])
    entry["at_ns"] += 1
    entries.write_bytes(b"".join([*former, framed(msgspec.msgpack.encode(entry))]))
    assert "is not the file that the next one goes on from" in refusal_of(it.path)


def test_a_folder_that_cannot_be_listed_is_not_taken_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = recording_of(tmp_path, 3)

    def unlisted(path: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", unlisted)
        with pytest.raises(JournalError, match="cannot be read: Permission denied: let user"):
            start(it.path)


def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = recording_of(tmp_path, 3)
    opened = Path.open

    def unreadable(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name.startswith(ENTRIES):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", unreadable)
        with pytest.raises(JournalError, match=r"entries-00000001 cannot be read \(byte 0\): P"):
            start(it.path)


def test_a_new_journal_says_of_nothing_that_it_is_lost(tmp_path: Path, log: StringIO) -> None:
    start(tmp_path / "journal")
    assert not log.getvalue()


def test_a_refusal_leaves_no_lock_where_there_was_none(tmp_path: Path) -> None:
    it = recording_of(tmp_path, 3)
    [entries] = it.path.glob(f"{ENTRIES}-*")
    data = bytearray(entries.read_bytes())
    data[len(data) // 2] ^= 1
    entries.write_bytes(data)
    (it.path / "lock").unlink()
    refusal_of(it.path)
    assert [entries] == [*it.path.iterdir()]
    entries.write_bytes(b"")
    (it.path / "lock").write_bytes(b"")
    refusal_of(it.path)
    assert {entries, it.path / "lock"} == {*it.path.iterdir()}


@pytest.mark.parametrize("left", [b"garbage", bytes(60)])
def test_a_folder_whose_files_are_gone_is_no_new_journal_though_its_lock_is_damaged(
    tmp_path: Path, left: bytes
) -> None:
    it = recording_of(tmp_path, 3)
    [entries] = it.path.glob(f"{ENTRIES}-*")
    entries.unlink()
    (it.path / "lock").write_bytes(left)
    assert f"{entries} is missing (byte 0), and nothing else is left" in refusal_of(it.path)


def test_what_is_no_file_but_has_the_name_of_a_part_is_named(tmp_path: Path) -> None:
    it = recording_of(tmp_path, 3)
    folder = Folder(it.path)
    file, part = folder.file(PART, 2), folder.file(PART, 3)
    file.write_bytes(b"half")
    part.mkdir()
    text = refusal_of(it.path)
    assert text.startswith(f"{part} is no file (byte 0): move it away")
    assert file.exists(), "nothing is changed"
    do(it.path, text)
    assert it.digests[-1] == start(it.path)


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [ENTRIES, SNAPSHOT, "lock"])
@pytest.mark.parametrize("put", [_folder, _pipe, _link_to_nothing, _link_to_itself, _device])
def test_what_is_no_file_is_named_and_can_be_moved_away(
    tmp_path: Path, kind: str, put: Callable[[Path], None]
) -> None:
    it = recording_of(tmp_path, 3, 3)
    folder = Folder(it.path)
    path = it.path / "lock" if kind == "lock" else folder.file(kind, folder.last_snapshot)
    path.unlink()
    put(path)
    before = contents(it.path)
    text = refusal_of(it.path)
    assert re.match(rf"{path} (is|leads to) no file \(byte 0\): move it away", text), text
    assert before == contents(it.path)
    do(it.path, text)
    assert start(it.path) in it.digests[1:]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.04, 0.3, 0.6])
def test_a_start_on_a_full_disk_leaves_what_there_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    it = recording_of(tmp_path, 3, 3)
    copy = tmp_path / "copy"
    shutil.copytree(it.path, copy)
    start(copy)
    new = [
        len(data or b"") for name, data in contents(copy).items() if name not in contents(it.path)
    ]
    before, left, write = contents(it.path), [int(share * sum(new))], os.write

    def short(file: int, data: memoryview) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = write(file, data[: min(left[0], 64)])
        left[0] -= size
        return size

    with monkeypatch.context() as patch:
        patch.setattr("yunikorn_actors.journal.folder.os.write", short)
        with pytest.raises(JournalError, match="make room on that disk"):
            start(it.path)
        assert before == contents(it.path), "a full disk gets no fuller"
    assert it.digests[-1] == start(it.path)


# -- a power cut


class Disk:
    """What is on the disk, by what was asked to be brought there."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._content: dict[int, bytes] = {}
        self._names: dict[str, int] = {}
        self.cuts: list[dict[str, bytes]] = []
        """What a power cut would have left, before and after each of these calls."""
        for call in ("fsync", "fdatasync"):
            patch.setattr(os, call, self._noted(getattr(os, call)))

    def _noted(self, works: Callable[[int], None]) -> Callable[[int], None]:
        def wrapped(file: int) -> None:
            self._cut()
            works(file)
            path = Path(f"/proc/self/fd/{file}").resolve()
            if path.parent == self._folder:
                self._content[os.fstat(file).st_ino] = path.read_bytes()
            elif path == self._folder:
                self._names = self._names_now()
            self._cut()

        return wrapped

    def _names_now(self) -> dict[str, int]:
        return {it.name: it.stat().st_ino for it in self._folder.iterdir()}

    def _cut(self) -> None:
        # Names may get to the disk sooner than they have to, contents as well; the worst is neither.
        for names in (self._names, self._names_now()):
            left = {name: self._content.get(inode, b"") for name, inode in names.items()}
            if left not in self.cuts[-2:]:
                self.cuts.append(left)


def test_a_power_cut_at_any_moment_leaves_a_beginning_that_never_gets_shorter(
    tmp_path: Path,
) -> None:
    work, order = tmp_path / "work", threading.Lock()
    with pytest.MonkeyPatch.context() as patch:
        recording = Recording(work, patch)
        disk = Disk(work, patch)
        patch.setattr(disk, "_cut", serialized(disk._cut, order))
        for life, count in enumerate((5, 4)):
            recording.live(life, count).stop()
    digests = digests_of(Folder(work))
    assert len(disk.cuts) > 25
    reached = 0
    for number, left in enumerate(disk.cuts):
        copy = tmp_path / f"cut-{number}"
        copy.mkdir()
        for name, data in left.items():
            (copy / name).write_bytes(data)
        made = start(copy)
        assert made in digests, number
        last = len(digests) - 1 - digests[::-1].index(made)
        assert last >= reached, number
        reached = max(reached, digests.index(made))
    assert reached > len(digests) // 2


def serialized(works: Callable[[], None], lock: threading.Lock) -> Callable[[], None]:
    def wrapped() -> None:
        with lock:
            works()

    return wrapped


# -- journals of versions before this, whose records do not name what they follow

BEFORE: Final = Path(__file__).parents[1] / "formats" / "journal-1"


def of_before(tmp_path: Path) -> Folder:
    path = tmp_path / "before"
    shutil.copytree(BEFORE, path)
    return Folder(path)


def running_in(path: Path) -> set[str]:
    with SchedulerCore(journal=path) as core:
        [app] = truth_of(core)["applications"].values()
        return {it["key"] for it in app["allocations"]}


def test_a_journal_of_before_is_read_on(tmp_path: Path, log: StringIO) -> None:
    folder = of_before(tmp_path)
    for _ in range(4):
        assert {"0-b", "0-c", "1-b", "1-c", "2-b", "2-c"} == running_in(folder.path)
    assert "WARNING" not in log.getvalue()


@pytest.mark.parametrize("act", ["empty", "remove"])
def test_a_journal_of_before_goes_on_from_its_snapshot(
    tmp_path: Path, log: StringIO, act: str
) -> None:
    folder = of_before(tmp_path)
    entries = folder.file(ENTRIES, 3)
    if act == "empty":
        entries.write_bytes(b"")
    else:
        entries.unlink()
    for _ in range(4):
        assert {"0-b", "0-c", "1-b", "1-c"} == running_in(folder.path)
    assert f"{entries} is {'empty' if act == 'empty' else 'missing'}" in log.getvalue()


def test_a_repeated_record_of_before_is_named_as_such(tmp_path: Path) -> None:
    folder = of_before(tmp_path)
    entries = folder.file(ENTRIES, 3)
    found = _records(entries)
    entries.write_bytes(b"".join([*found[:4], *found[2:]]))
    text = refusal_of(folder.path)
    assert "records are repeated" in text
    assert "version" not in text
    start_after(folder.path, text)


def start_after(path: Path, text: str) -> str:
    do(path, text)
    return start(path)


def test_a_missing_record_of_before_is_named_as_such(tmp_path: Path) -> None:
    folder = of_before(tmp_path)
    entries = folder.file(ENTRIES, 3)
    found = _records(entries)
    entries.write_bytes(b"".join([*found[:5], *found[6:]]))
    text = refusal_of(folder.path)
    assert "records are missing" in text
    start_after(folder.path, text)
