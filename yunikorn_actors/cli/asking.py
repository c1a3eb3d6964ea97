"""What the commands that ask a running service have in common: how it is reached, its errors."""

import argparse
import getpass
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from yunikorn_actors.cli.rows import Partition, read
from yunikorn_actors.cli.terminal import complain, is_terminal, tell, width
from yunikorn_actors.errors import ConnectionLost, Refused, UnknownName
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.service.safety import Unsafe, is_local, read_token
from yunikorn_actors.trace.tables import table
from yunikorn_actors.trace.wanted import did_you_mean

NO: Final = 1
MISUNDERSTOOD: Final = 2
INTERRUPTED: Final = 130
API: Final = ("ws", "v1")
OWN: Final = (*API, "x")
_NO_NAME: Final = re.compile(r"[^\w.+@-]", re.ASCII)
Row = TypeVar("Row")
Ask = Callable[[argparse.Namespace, Client], int]


def asking(options: argparse.Namespace, ask: Ask) -> int:
    """Ask a service; each failure is one line on standard error."""
    try:
        return ask(options, client_of(options))
    except (UnknownName, Refused) as error:
        complain(str(error))
        return NO
    except (ConnectionLost, Unsafe) as error:
        complain(str(error))
        return MISUNDERSTOOD
    except (msgspec.ValidationError, RecursionError) as error:
        complain(
            f"{options.server}: answers otherwise than this version understands ({error}): use the "
            "command of the version that serves there"
        )
        return MISUNDERSTOOD


def client_of(options: argparse.Namespace) -> Client:
    token = read_token(options.token_file)
    if token and options.tls_ca is None and not options.insecure and not is_local(options.server):
        raise Unsafe(
            f"--server {options.server}: the token would be seen on the way there: give --tls-ca, "
            "or --insecure if nobody else is on that network"
        )
    return Client(options.server, token=token, ca=options.tls_ca, who=_myself())


def _myself() -> str:
    try:
        return _NO_NAME.sub("_", getpass.getuser())[:100]
    except (OSError, KeyError):
        return ""


# -- partitions


class Place(NamedTuple):
    """A partition as it is asked for."""

    name: str
    """In full if several share the name."""

    def path(self, *parts: str) -> tuple[str, ...]:
        return (*API, "partition", self.name, *parts)

    def own_path(self, *parts: str) -> tuple[str, ...]:
        return (*OWN, "partition", self.name, *parts)


def places(client: Client, wanted: str = "") -> list[Place]:
    """Return all partitions, or those of a name."""
    found = read(client.get(*API, "partitions"), list[Partition])
    shorts = Counter(it.name for it in found)
    names = {f"[{it.cluster_id}]{it.name}": it.name for it in found}
    chosen = [
        Place(full if shorts[name] > 1 else name)
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

    place: Place
    value: dict[str, Any]
    row: Row


def found_in(place: Place, values: object, kind: type[Row]) -> list[Found[Row]]:
    return [Found(place, it, read(it, kind)) for it in read(values, list[dict[str, Any]])]


def called(client: Client, chosen: list[Place], kind: type[Row], *path: str) -> list[Found[Row]]:
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


def tell_found(
    options: argparse.Namespace,
    found: Sequence[Found[Row]],
    head: tuple[str, ...],
    cells: Callable[[Row], Iterable[tuple[str, ...]]],
    left: int,
) -> None:
    """Print a table, with a column for the partition where there are several; or JSON."""
    if options.json:
        tell((it.value | {"partition": it.place.name} for it in found), ())
        return
    if len({it.place for it in found}) <= 1:
        rows = (line for it in found for line in cells(it.row))
    else:
        head, left = ("partition", *head), left + 1
        rows = ((it.place.name, *line) for it in found for line in cells(it.row))
    if found:
        tell(None, table(head, rows, left, width()))
    elif is_terminal():
        tell(None, ("there is nothing",))
