"""The recording as a database of SQLite, and questions to it.

message  one row each, numbered as in the recording
fact     one row each, with the first message that brought it
mention  which text stands in which message: ids, and words as well
edge     which message led to which
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, Final

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.export.timeline import FactsOnce
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.text.summary import fact_summary, in_json, message_summary

_SCHEMA: Final = """
CREATE TABLE message (
    id INTEGER PRIMARY KEY, mailbox TEXT, step INTEGER, sender TEXT, stimulus TEXT, at_ns INTEGER,
    sent_ns INTEGER, took_ns INTEGER, joined INTEGER, type TEXT, says TEXT, payload TEXT
);
CREATE TABLE fact (
    message INTEGER, partition TEXT, revision INTEGER, type TEXT, says TEXT, payload TEXT
);
CREATE TABLE mention (id TEXT, message INTEGER);
CREATE TABLE edge (cause INTEGER, effect INTEGER);
"""
_INDEXES: Final = """
CREATE INDEX mentioned ON mention (id);
CREATE INDEX effects ON edge (cause);
CREATE INDEX causes ON edge (effect);
"""
_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_VALUE_BYTES_MAX: Final = 64 * 1024 * 1024
_STEPS: Final = 10_000
"""So many steps of its machine are between two looks at the clock."""


class QueryError(ValueError):
    """The question is not understood, not allowed, or takes too long."""


def save(trace: TraceReader, sieve: DeliveryFilter, path: Path) -> None:
    """Write the database to a file that is empty, or not there."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        try:
            database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_SCHEMA}")
            database.execute("BEGIN")
            _write(trace, sieve, _Writer(database))
            database.execute("COMMIT")
            database.executescript(_INDEXES)
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from error


def _write(trace: TraceReader, sieve: DeliveryFilter, writer: "_Writer") -> None:
    try:
        for number, delivery in enumerate(trace, start=1):
            writer.ends(delivery)
            if sieve(delivery):
                writer.write(number, delivery)
    except OverflowError as error:
        raise TraceError(
            f"{trace.path}: record {trace.number} has a number of more than 64 bits; the file is "
            "damaged, record the run again"
        ) from error
    if trace.footer is not None:
        writer.end(trace.footer.took_ns)


class _Writer:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._facts = FactsOnce()
        self._numbers: dict[Cause, int] = {}
        self._last: dict[str, tuple[int, int]] = {}
        """Number and step of what each mailbox handled last, if it is wanted."""

    def write(self, number: int, it: Delivery) -> None:
        message = it.message
        self._database.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, it.mailbox, it.step, it.sender, it.stimulus, it.at_ns, it.sent_ns, None,
                it.joined, type_name(message), message_summary(message), in_json(message).decode(),
            ),
        )  # fmt: skip
        if isinstance(message, FactsAppended):
            self._database.executemany(
                "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?)", self._new_facts(number, message)
            )
        self._database.executemany(
            "INSERT INTO mention VALUES (?, ?)",
            ((text, number) for text in dict.fromkeys(texts_in(message))),
        )
        cause = self._numbers.get(it.cause)
        if cause is not None:
            self._database.execute("INSERT INTO edge VALUES (?, ?)", (cause, number))
        self._numbers[Cause(it.mailbox, it.step)] = number
        self._last[it.mailbox] = (number, it.step)

    def _new_facts(self, number: int, message: FactsAppended) -> Iterator[tuple[Any, ...]]:
        for revision, fact in enumerate(self._facts.of(message), start=message.first_revision):
            said = (type(fact).__name__, fact_summary(fact), in_json(fact).decode())
            yield (number, message.partition, revision, *said)

    def ends(self, following: Delivery) -> None:
        """Note how long the step before this one took; the recording tells it there."""
        if following.joined:
            return
        number, step = self._last.pop(following.mailbox, (0, 0))
        took_ns = following.previous_took_ns
        if took_ns is not None and step == following.step - 1:
            self._took(number, took_ns)

    def end(self, took_ns: dict[str, int]) -> None:
        for mailbox, took in took_ns.items():
            number, _ = self._last.get(mailbox, (0, 0))
            self._took(number, took)

    def _took(self, number: int, took_ns: int) -> None:
        self._database.execute("UPDATE message SET took_ns = ? WHERE id = ?", (took_ns, number))


def query(path: Path, sql: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of an answer; nothing but reading is allowed, for so long."""
    deadline = monotonic() + seconds
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
        database.set_authorizer(_authorize)
        database.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        try:
            cursor = database.execute(sql)
            names = [name for name, *_ in cursor.description or ()]
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            late = f" after {seconds:g} s" if monotonic() > deadline else ""
            raise QueryError(f"{error}{late}") from error


def _authorize(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    allowed = action in _ALLOWED and name != "load_extension"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
