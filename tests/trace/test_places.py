"""Records that speak of a thing are found at once, and what is kept for that is trusted in nothing."""

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
from recordings import records, rewrite, simulate

from yunikorn_actors.trace.records import record_index as places
from yunikorn_actors.trace.records.record_index import Places
from yunikorn_actors.trace.story import story

NAMES = ("app-1", "a", "n2", "core-1", "rm-1", "nobody has this", "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


@pytest.fixture
def kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the index is, of however small a recording."""
    monkeypatch.setattr(places, "KEPT_FROM", 0)
    simulate(path)
    return path.with_name(f".{path.name}.index")


def found(path: Path, *names: str) -> list[tuple[str, int]]:
    return [(it.mailbox, it.step) for it in Places(path).speaking_of(names)]


def looked_for(path: Path, *names: str) -> list[tuple[str, int]]:
    """Look into each record by itself."""
    return [
        (it["mailbox"], it["step"])
        for it in records(path)
        if it["record"] == "delivery"
        and any(name.encode() in msgspec.msgpack.encode(it) for name in names)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at_once", [1, 1000, 2**20])
def test_all_that_hold_a_name_are_found(
    path: Path, name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_AT_ONCE", at_once)
    simulate(path)
    assert found(path, name, "app-2") == looked_for(path, name, "app-2")


def compressed(path: Path) -> Path:
    path.write_bytes(zlib.compress(path.read_bytes()))
    return path


def cut_off(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-100])
    return path


@pytest.mark.parametrize("change", [compressed, cut_off])
def test_however_it_is_written(path: Path, change: Callable[[Path], Path]) -> None:
    simulate(path)
    expected = found(path, "app-1")
    assert found(change(path), "app-1") == expected


def test_in_all_segments(path: Path) -> None:
    expected = found(simulate(path), "app-1")
    head, *rest = records(path)
    middle = len(rest) // 2
    rewrite(path.with_name(f"{path.name}.1"), [head, *rest[:middle]])
    rewrite(path, [{**head, "segment": 2}, *rest[middle:]])
    assert found(path, "app-1") == expected


# -- what is kept beside it


def test_it_is_made_once(kept: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found(path, "app-1")
    assert kept.exists()
    monkeypatch.setattr(places, "_counted", lambda _: pytest.fail("made anew"))
    assert found(path, "app-1") == before
    assert kept.stat().st_mode & 0o077 == 0


def test_of_a_small_recording_none_is_kept(path: Path) -> None:
    found(simulate(path), "app-1")
    assert [it.name for it in path.parent.iterdir()] == [path.name]


def foreign(kept: Path, path: Path) -> None:
    """Of another recording, with the same name."""
    other = path.parent / "other"
    other.mkdir()
    simulate(other / path.name, seed=3)
    found(other / path.name, "app-1")
    shutil.copy(other / kept.name, kept)


def stale(_: Path, path: Path) -> None:
    simulate(path, seed=3)


def damaged(kept: Path, _: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-3])


def no_index(kept: Path, _: Path) -> None:
    kept.write_bytes(msgpack.packb({"record": "index", "starts": 3}))


@pytest.mark.parametrize("change", [foreign, stale, damaged, no_index])
def test_one_that_is_not_of_this_recording_is_made_anew(
    kept: Path, path: Path, change: Callable[[Path, Path], None]
) -> None:
    found(path, "app-1")
    change(kept, path)
    before = kept.read_bytes()
    assert found(path, "app-1") == looked_for(path, "app-1")
    assert kept.read_bytes() != before


def test_where_nothing_can_be_written_it_is_not_kept(
    kept: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places, "NamedTemporaryFile", full)
    assert found(path, "app-1") == looked_for(path, "app-1")
    assert not kept.exists()


def test_a_folder_with_one_is_still_a_recording(kept: Path, path: Path) -> None:
    expected = found(path, "app-1")
    assert kept.exists()
    assert found(path.parent, "app-1") == expected


def test_a_life_is_told_from_it(kept: Path, path: Path) -> None:
    first = story(path, "app-1/a")
    assert kept.exists()
    assert story(path, "app-1/a") == first


def test_a_damaged_record_is_named_by_its_number(path: Path) -> None:
    recorded = records(simulate(path))
    number = next(n for n, it in enumerate(recorded, 1) if it.get("type") == "AllocationsRequested")
    recorded[number - 1]["step"] = "app-1"
    rewrite(path, recorded)
    with pytest.raises(ValueError, match=f"record {number} is not as recorded"):
        found(path, "app-1")
