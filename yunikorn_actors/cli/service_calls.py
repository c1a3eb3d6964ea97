"""What the commands that ask a running service have in common: how it is reached, its errors."""

import argparse
import getpass
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.rows import Partition, read
from yunikorn_actors.cli.service_options import DEFAULT
from yunikorn_actors.cli.terminal import complain, is_terminal, tell, width
from yunikorn_actors.errors import ConnectionLost, Refused, UnknownName
from yunikorn_actors.recording.plain_text import fits, printable, table
from yunikorn_actors.service.access_policy import Unsafe, is_local, own_certificate, read_token
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.values.close_names import did_you_mean

API: Final = ("ws", "v1")
OWN: Final = (*API, "x")
_NO_NAME: Final = re.compile(r"[^\w.+@-]", re.ASCII)
_NAMES: Final = ("queue", "application", "node", "key", "partition")
"""Options that name something, which is not there where nothing is."""
Row = TypeVar("Row")
Ask = Callable[[argparse.Namespace, Client], int]


def asking(options: argparse.Namespace, ask: Ask) -> int:
    """Ask a service; each failure is one line on standard error."""
    if options.server is None:
        options.server = DEFAULT
    try:
        return ask(options, client_of(options))
    except NothingThere:
        complain(f"no resource manager is registered at {options.server}: there is nothing yet")
        return NO if any(getattr(options, it, "") for it in _NAMES) else 0
    except (UnknownName, Refused) as error:
        complain(str(error))
        return NO
    except (ConnectionLost, Unsafe) as error:
        complain(str(error))
        return FAILED
    except (msgspec.ValidationError, RecursionError) as error:
        complain(
            f"{options.server}: answers otherwise than this version understands ({error}): use the "
            "command of the version that serves there"
        )
        return FAILED


def client_of(options: argparse.Namespace) -> Client:
    token = read_token(options.token_file)
    if token and options.tls_ca is None and not options.insecure and not is_local(options.server):
        raise Unsafe(
            f"--server {options.server}: the token would be seen on the way there: give --tls-ca, "
            "or --insecure if nobody else is on that network"
        )
    own = own_certificate(options.tls_cert, options.tls_key)
    if own is not None and options.tls_ca is None:
        raise Unsafe("--tls-cert: needs --tls-ca beside it, or there is no TLS to show it in")
    return Client(options.server, token=token, ca=options.tls_ca, own=own, who=_myself())


def _myself() -> str:
    try:
        return _NO_NAME.sub("_", getpass.getuser())[:100]
    except (OSError, KeyError):
        return ""


# -- partitions


class NothingThere(Exception):
    """No resource manager is registered, so a service has nothing to show."""


class AskedPartition(NamedTuple):
    """A partition as it is asked for."""

    name: str
    """In full if several share the name."""

    def path(self, *parts: str) -> tuple[str, ...]:
        return (*API, "partition", self.name, *parts)

    def own_path(self, *parts: str) -> tuple[str, ...]:
        return (*OWN, "partition", self.name, *parts)


def asked_partitions(client: Client, wanted: str = "") -> list[AskedPartition]:
    """Return all partitions, or those of a name."""
    found = read(client.get(*API, "partitions"), list[Partition])
    if not found:
        raise NothingThere
    shorts = Counter(it.name for it in found)
    names = {f"[{it.cluster_id}]{it.name}": it.name for it in found}
    chosen = [
        AskedPartition(full if shorts[name] > 1 else name)
        for full, name in names.items()
        if wanted in {"", name, full}
    ]
    if wanted and not chosen:
        raise unknown("partition", wanted, {*names, *shorts})
    return chosen


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    return UnknownName(f"there is no {kind} {name!r:.200}{did_you_mean(name, known)}")


# -- tables


class Found(NamedTuple, Generic[Row]):
    """Something of a partition: as it came, and what is read of it."""

    place: AskedPartition
    value: dict[str, Any]
    row: Row


def found_in(place: AskedPartition, values: object, kind: type[Row]) -> list[Found[Row]]:
    return [Found(place, it, read(it, kind)) for it in read(values, list[dict[str, Any]])]


def called(
    client: Client, chosen: list[AskedPartition], kind: type[Row], *path: str
) -> list[Found[Row]]:
    """Ask each partition for something by its name."""
    found: list[Found[Row]] = []
    for place in chosen:
        with suppress(UnknownName):
            found += found_in(place, [client.get(*place.path(*path))], kind)
    return found


def only_one(kind: str, name: str, found: Sequence[Found[Row]]) -> Found[Row]:
    """Return what is to be changed; several are not meant at once."""
    if len(found) > 1:
        names = " or ".join(it.place.name for it in found)
        raise Refused(f"several partitions have a {kind} {name!r:.200}: give --partition {names}")
    return found[0]


class Columns(NamedTuple, Generic[Row]):
    """How rows are shown as a table."""

    head: tuple[str, ...]
    cells: Callable[[Row], Iterable[tuple[str, ...]]]
    left: int
    """So many are aligned at the left, and cut where there is too little room."""
    spare: tuple[str, ...] = ()
    """Those that a narrow terminal goes without, the first one first."""


def tell_found(
    options: argparse.Namespace, found: Sequence[Found[Row]], columns: Columns[Row], none: str
) -> None:
    """Print a table, or JSON; `none` says on standard error that nothing was found.

    Where there are several partitions a terminal gets a table of each, and a pipe a column for
    them: a name of a partition that is cut tells nothing.
    """
    if options.json:
        tell((it.value | {"partition": it.place.name} for it in found), ())
        return
    by_place: dict[AskedPartition, list[Row]] = {}
    for it in found:
        by_place.setdefault(it.place, []).append(it.row)
    if not found:
        complain(none)
    elif len(by_place) == 1 or not is_terminal():
        tell(None, _table(columns, by_place))
    else:
        for number, (place, rows) in enumerate(by_place.items()):
            heading = printable(f"partition {place.name}")
            tell(None, (*([""] if number else []), heading, *_table(columns, {place: rows})))


def _table(columns: Columns[Row], by_place: dict[AskedPartition, list[Row]]) -> Iterator[str]:
    head, left = columns.head, columns.left
    lines = [
        (p.name, line) for p, rows in by_place.items() for it in rows for line in columns.cells(it)
    ]
    rows = [line for _, line in lines]
    if len(by_place) > 1:
        head, left = ("partition", *head), left + 1
        rows = [(name, *line) for name, line in lines]
    for name in columns.spare:
        if fits(head, rows, left, width()):
            break
        at = head.index(name)
        left -= at < left
        head = (*head[:at], *head[at + 1 :])
        rows = [(*row[:at], *row[at + 1 :]) for row in rows]
    return table(head, rows, left, width())
