"""A file that is no recording is named as what it is, with what to do about it."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import ranges
from recordings import CONFIG, node, register, simulate

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main

Screen = pytest.CaptureFixture[str]
WRITE_ONE = "give a file that a run with --trace wrote"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def zipped(path: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.write(path, "a.trace")
    return out.getvalue()


def in_a_tar(path: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        file.add(path, "a.trace")
    return out.getvalue()


def exported(path: Path, format_: str) -> bytes:
    out = path.with_suffix(".out")
    assert main(["trace", "export", str(path), "--to", format_, "-o", str(out)]) == 0
    return out.read_bytes()


def viewed(path: Path) -> bytes:
    out = path.with_suffix(".html")
    assert main(["trace", "view", str(path), "-o", str(out), "--why", "none"]) == 0
    return out.read_bytes()


def journal(path: Path, name: str) -> bytes:
    folder = path.with_name("journal")
    for _ in range(2):
        with SchedulerCore(driver="direct", journal=folder) as core:
            register(core)
            node(core, "n1", si.ActionFromRM.CREATE, 1)
    return max(folder.glob(f"{name}-*")).read_bytes()


def dump(_: Path) -> bytes:
    with SchedulerCore(driver="direct") as core:
        register(core)
        return json.dumps(core.state_dump(), indent=2).encode()


KINDS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "PNG": (lambda _: PNG + bytes(5000), f"a PNG image; {WRITE_ONE}"),
    "JPEG": (lambda _: b"\xff\xd8\xff\xe0" + bytes(100), f"a JPEG image; {WRITE_ONE}"),
    "PDF": (lambda _: b"%PDF-1.7\n%\xe2\xe3", f"a PDF document; {WRITE_ONE}"),
    "ELF": (lambda _: Path(sys.executable).read_bytes()[:9000], f"a program (ELF); {WRITE_ONE}"),
    "gzip": (lambda path: gzip.compress(path.read_bytes()), "a gzip file; unpack it with gunzip"),
    "bzip2": (lambda path: bz2.compress(path.read_bytes()), "a bzip2 file; unpack it with bunzip2"),
    "xz": (lambda path: lzma.compress(path.read_bytes()), "an xz file; unpack it with unxz"),
    "zip": (zipped, "a zip file; unpack it"),
    "tar": (in_a_tar, "a tar file; unpack it"),
    "SQLite": (lambda path: exported(path, "sqlite"), "an SQLite database; sqlite3 asks it"),
    "OTLP": (lambda path: exported(path, "otlp"), "spans of OpenTelemetry in JSON; a collector"),
    "Perfetto": (lambda path: exported(path, "perfetto"), "a Chrome trace in JSON; Perfetto"),
    "page": (viewed, "a page of HTML; open it in a browser"),
    "entries": (lambda path: journal(path, "entries"), "a file of a journal; a core"),
    "snapshot": (lambda path: journal(path, "snapshot"), "a file of a journal; a core"),
    "dump": (dump, "a state dump; `yunikorn-actors health`"),
    "JSON": (lambda _: b'[{"a": 1}]\n', "JSON, and its first line is no header of a recording"),
    "JSON on lines": (lambda _: b'{\n "a": 1\n}', "JSON, and its first line is no header"),
    "scenario": (
        lambda _: b"# a race\nname: a\nsteps:\n- create_node: {id: n1}\n",
        "a scenario; `yunikorn-actors scenario run`",
    ),
    "tape": (
        lambda _: b"# found\ntape 2 of a.yaml sha256 01 on fused\n",
        "a tape; `yunikorn-actors lab replay`",
    ),
    "YAML": (lambda _: CONFIG.encode(), f"YAML; {WRITE_ONE}"),
    "text": (lambda _: "x: \u00fc is no letter of it\n".encode() * 900, f"YAML; {WRITE_ONE}"),
    "log": (lambda _: "x\u00fc 12:00:01 INFO up\n".encode() * 900, f"text; {WRITE_ONE}"),
}


@pytest.mark.parametrize(
    ("kind", "command"),
    ranges.one_each([*KINDS], [["show"], ["stats"], ["view", "-o", "/dev/null"]]),
)
def test_it_is_named(tmp_path: Path, kind: str, command: list[str], capsys: Screen) -> None:
    make, expected = KINDS[kind]
    path = tmp_path / "given"
    path.write_bytes(make(simulate(tmp_path / "a.trace")))
    capsys.readouterr()
    name, *options = command
    assert main(["trace", name, str(path), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    begin = f"{path}: record 1 is not the header of a trace: the file is "
    assert line.startswith(begin + expected)


def test_an_empty_file_and_a_folder_are_named(tmp_path: Path, capsys: Screen) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"")
    assert main(["trace", "show", str(path)]) == 2
    assert f"{path}: has no header yet: the file is empty; wait until" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main(["trace", "show", str(tmp_path / "folder")]) == 2
    assert "Is a directory, with 0 files that could be a recording" in capsys.readouterr().err


@pytest.mark.parametrize("size", [30, 300])
def test_a_recording_as_json_that_has_just_begun_is_one(
    tmp_path: Path, size: int, capsys: Screen
) -> None:
    path = simulate(tmp_path / "a.trace")
    path.write_bytes(exported(path, "jsonl")[:size])
    assert main(["trace", "show", str(path)]) == 2
    assert "has no header yet; wait until" in capsys.readouterr().err
