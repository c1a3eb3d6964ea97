"""Damaged logs: what can be read is played, and what is wrong has a name; nothing ends in a traceback."""

import gzip
import json
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest

from yunikorn_actors.errors import CoreError
from yunikorn_actors.workload import (
    Node,
    Options,
    Workload,
    WorkloadError,
    job_stream,
    play,
    read_nodes,
)
from yunikorn_actors.workload.lives import Lives
from yunikorn_actors.workload.yunikorn import read_yunikorn

SAMPLES = Path(job_stream.__file__).parent / "samples"
LOGS = ("cluster.swf", "openb-pods.csv", "batsim.json")
NODES = [Node(id="n", resources={"vcore": 64_000, "memory": 1 << 40, "gpu": 8_000}, devices=8)]
WORDS = (
    "", "-1", "0", "1e300", "-1e300", "nan", "inf", "1e9", "99999999999999999999", "null", "{}", "[]", '"', "'", ",",
    ";", "\t", "\r\n", "\0", "\x1c", "\u2028", "é", "-0.0", "0x10", "1_0", "true", "..", "root..a", "a" * 300, "1.5",
    "; UnixStartTime: 99999999999999999999\n", "; MaxProcs: -5\n", "[" * 2_000, "9" * 5_000,
)  # fmt: skip

VALUES = (
    None, True, -1, 0, 1.5, 1e300, 10**30, "", "x", [], {}, [[]], {"a": 1}, "root..b", "\ud800", "-5", {"value": "z"},
    [None], 1 << 62, {"resources": {"vcore": {"value": 1}}}, {"resources": 5},
)  # fmt: skip


def damaged(data: bytes, random: Random) -> bytes:
    """Return it with up to five defects of many kinds."""
    for _ in range(1 + int(random.random() * 5)):
        at, to = sorted(int(random.random() * (len(data) + 1)) for _ in range(2))
        word = WORDS[int(random.random() * len(WORDS))].encode()
        near = min(to, at + int(random.random() * 12))
        match int(random.random() * 8):
            case 0:
                data = data[:at] + word + data[near:]
            case 1:
                data = data[:at] + data[near:]
            case 2:
                data = data[:at]
            case 3:
                noise = bytes(int(random.random() * 256) for _ in range(8))
                data = data[:at] + noise + data[near:]
            case 4:
                data = data[:at] + data[at:to][:2_000] + data[at:]
            case 5:
                data = data.replace(data[at : at + 3] or b"\n", word, 3)
            case 6:
                data = data.replace(b"\n", b"\r\n")
            case 7:
                data = b"\xef\xbb\xbf" + data
    return data


def changed(data: bytes, random: Random) -> bytes:
    """Return a document of JSON in which a few values are others."""
    document = json.loads(data)
    for _ in range(1 + int(random.random() * 4)):
        place, key = document, None
        while isinstance(place, dict | list) and place and (key is None or random.random() < 0.8):
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            above, key = place, keys[int(random.random() * len(keys))]
            place = above[key]
        above[key] = deepcopy(VALUES[int(random.random() * len(VALUES))])
    return json.dumps(document).encode()


def played(file: Path, seed: int) -> str:
    """Play it with options by the seed; return what became of it."""
    stays, jobs = seed % 3 == 0, "gang" if seed % 5 == 0 else "ask"
    try:
        log = Workload.read(file, stays=stays)
        options = Options(stays=stays, jobs=jobs, seed=seed, faults=0.1 if seed % 7 == 0 else 0)  # type: ignore[arg-type]
        table = play(log, NODES, options=options)
    except WorkloadError as error:
        is_clear = str(error).startswith((str(file), "no workload of Batsim"))
        return "refused" if is_clear else f"{error}"
    assert len(table) <= len(log)
    table.summary()
    return "bad lines" if log.findings.bad else "whole"


def test_damaged_logs(tmp_path: Path) -> None:
    hunt(tmp_path, range(7))


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_a_thousand_damaged_logs(tmp_path: Path) -> None:
    hunt(tmp_path, range(7, 1_007))


def hunt(tmp_path: Path, seeds: range) -> None:
    for name in LOGS:
        # Few enough lines that a defect meets what counts, and that a thousand take no hour.
        data = (SAMPLES / name).read_bytes()
        if not name.endswith("json"):
            data = b"\n".join(data.split(b"\n")[:40])
        outcomes: set[str] = set()
        for seed in seeds:
            random = Random(f"{name}, {seed}")  # noqa: S311 - repeatable
            is_document = name.endswith("json") and random.random() < 0.8
            content = (changed if is_document else damaged)(data, random)
            if random.random() < 0.1:
                content = damaged(gzip.compress(content), random)
            (tmp_path / "log").write_bytes(content)
            outcomes.add(played(tmp_path / "log", seed))
        assert {"refused", "whole", "bad lines"} >= outcomes
        assert len(outcomes) > 1, f"{name}: nothing was damaged"


def test_damaged_nodes(tmp_path: Path) -> None:
    file, random = tmp_path / "nodes", Random(5)  # noqa: S311 - repeatable
    yaml = b"- {id: small, count: 3, resources: {vcore: 4, memory: 8Gi}}\n- {id: g, base: {gpu: 8000}, model: T4}\n"
    refused = 0
    for data in ((SAMPLES / "openb-nodes.csv").read_bytes(), yaml):
        for _ in range(40):
            file.write_bytes(damaged(data, random))
            try:
                assert read_nodes(str(file))
            except WorkloadError:
                refused += 1
    assert 0 < refused < 80


def test_damaged_answers_of_a_cluster(tmp_path: Path) -> None:
    answers(tmp_path, range(20))


@pytest.mark.slow
def test_a_thousand_damaged_answers_of_a_cluster(tmp_path: Path) -> None:
    answers(tmp_path, range(20, 1_020))


def answers(tmp_path: Path, seeds: range) -> None:
    files = [tmp_path / "dump", tmp_path / "events"]
    refused = 0
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - repeatable
        for file, name in zip(files, ("yunikorn-dump.json", "yunikorn-events.json"), strict=True):
            damage = changed if random.random() < 0.7 else damaged
            file.write_bytes(damage((SAMPLES / name).read_bytes(), random))
        try:
            lives = read_yunikorn(files)
        except WorkloadError:
            refused += 1
            continue
        assert isinstance(lives, Lives)
        lives.write(tmp_path / "out")
        try:
            nodes = read_nodes(str(tmp_path / "out" / "nodes.yaml"))
            play(Workload.read(tmp_path / "out" / "jobs.jsonl"), nodes, lives.config)
        except CoreError:
            continue
    assert 0 < refused < len(seeds)
