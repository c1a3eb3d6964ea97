"""A recording as a database: its counts, and that questions only read."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
from yunikorn_actors.state.facts import revisions_of
from yunikorn_actors.trace.export.sqlite import QueryError, query, save
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceError, TraceReader

CYCLE = RunCycle(partition="p", epoch=1)
Rows = list[tuple[Any, ...]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def saved(path: Path, **wanted: Any) -> Path:
    out = path.with_suffix(".db")
    out.unlink(missing_ok=True)
    with TraceReader(path) as trace:
        save(trace, DeliveryFilter(FilterOptions(**wanted), trace), out)
    return out


def rows(database: Path, sql: str) -> Rows:
    with closing(sqlite3.connect(database)) as it:
        return it.execute(sql).fetchall()


@pytest.mark.parametrize("run", [simulate, in_service])
def test_the_counts_are_those_of_the_recording(path: Path, run: Any) -> None:
    database = saved(run(path))
    messages = [it for it in records(path) if it["record"] == "delivery"]
    told = Counter((it["mailbox"], it["type"]) for it in messages)
    counted = rows(database, "SELECT mailbox, type, count(*) FROM message GROUP BY 1, 2")
    assert {(mailbox, kind): count for mailbox, kind, count in counted} == told
    numbers = {(it["mailbox"], it["step"]): number for number, it in enumerate(messages, start=1)}
    edges = sorted(
        (numbers[tuple(it["cause"])], number)
        for number, it in enumerate(messages, start=1)
        if tuple(it["cause"]) in numbers
    )
    assert sorted(rows(database, "SELECT * FROM edge")) == edges
    assert rows(database, "SELECT DISTINCT json_valid(payload) FROM message") == [(1,)]
    about = sum(1 for _ in rows(database, "SELECT 1 FROM mention WHERE id = 'app-1'"))
    with TraceReader(path) as trace:
        assert about == sum(1 for _ in FilterOptions(about=("app-1",)).over(trace)) > 0


def test_every_fact_stands_there_once(path: Path) -> None:
    database = saved(simulate(path))
    lives: dict[tuple[str, int], int] = {}
    with TraceReader(path) as trace:
        for delivery in trace:
            it = delivery.message
            if isinstance(it, FactsAppended):
                last = it.first_revision + revisions_of(it.facts) - 1
                life = (it.partition, it.epoch)
                lives[life] = max(lives.get(life, 0), last)
    assert rows(database, "SELECT count(*) FROM fact") == [(sum(lives.values()),)]
    first = rows(database, "SELECT revision, type FROM fact ORDER BY message, revision LIMIT 2")
    assert first == [(1, "PartitionConfigured"), (2, "QueueAdded")]
    assert rows(database, "SELECT count(*) FROM fact WHERE type = 'AllocationCommitted'") == [(5,)]


def test_how_long_a_step_took(path: Path) -> None:
    write(path, *[CYCLE] * 5)
    changed = records(path)
    changed[2]["previous_took_ns"] = 5
    changed[3]["joined"] = True
    changed[4]["previous_took_ns"] = 7
    changed[5].update(step=9, previous_took_ns=8)
    changed[-1]["took_ns"] = {"context": 11, "nobody": 1}
    rewrite(path, changed)
    took = "SELECT id, took_ns FROM message"
    assert rows(saved(path), took) == [(1, 5), (2, None), (3, 7), (4, None), (5, 11)]
    # The last one that is wanted is not the last one of its mailbox.
    assert rows(saved(path, stimulus=("node-4",)), took) == [(4, None)]


def test_a_number_that_is_too_large_is_damage(path: Path) -> None:
    write(path, CYCLE)
    changed = records(path)
    changed[1]["at_ns"] = 2**63
    rewrite(path, changed)
    with pytest.raises(TraceError, match="record 2 has a number of more than 64 bits"):
        saved(path)


# -- questions


def test_a_question_is_answered(path: Path) -> None:
    database = saved(write(path, *[CYCLE] * 3))
    sql = "WITH it AS (SELECT id FROM message) SELECT max(id) AS last, upper('a') FROM it"
    assert list(query(database, sql, 5)) == [{"last": 3, "upper('a')": "A"}]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM message",
        "INSERT INTO edge VALUES (1, 2)",
        "UPDATE message SET step = 1",
        "DROP TABLE message",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode = WAL",
        "VACUUM INTO 'other.db'",
        "BEGIN",
        "SELECT load_extension('x')",
        "SELECT * FROM nothing",
        "SELECT zeroblob(1000000000)",
        "SELECT 1; SELECT 2",
        "nonsense",
        "SELECT '\0'",
    ],
)
def test_nothing_else_is_done(path: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.chdir(path.parent)
    database = saved(write(path, *[CYCLE] * 3))
    before = database.read_bytes()
    with pytest.raises(QueryError):
        list(query(database, sql, 60))
    assert database.read_bytes() == before
    assert sorted(path.parent.iterdir()) == [database, path]


def test_a_question_without_end_is_ended(path: Path) -> None:
    database = saved(write(path, CYCLE))
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    with pytest.raises(QueryError, match=r"interrupted after 0\.1 s"):
        list(query(database, endless, 0.1))
