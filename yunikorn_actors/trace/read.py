"""Reads a trace: a header, the deliveries in the order of recording, a footer.

A trace may come from anywhere and may still be growing, so it is read record by record and nothing
in it is trusted. A file that ends inside a record, or before the footer, is incomplete, not wrong:
it is read as far as it goes. Any other difference from what a recorder writes is a TraceError,
which names the file, the record (the header is record 1) and the remedy.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Self

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName, check_topology
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import (
    FORMATS_READ,
    StoredDelivery,
    delivery_of,
    has_unknown_fields,
)
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.trace.records.foreign_files import kind_of
from yunikorn_actors.trace.records.source import CHUNK, FileId, Source
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.version import VERSION

RECORD_MAX: Final = 64 * 1024 * 1024
ITEMS_MAX: Final = 4_000_000
"""Of all lists and maps of a record together: more are refused before memory is taken for them."""

_SMALL: Final = 1024 * 1024
"""A record of this size cannot have too many items."""
_DAMAGED: Final = "the file is damaged, record the run again"
_NO_TRACE: Final = "give a file that a run with --trace wrote"


class TraceError(ValueError):
    """The file is not a trace, or it is damaged."""


class Package(Struct, frozen=True):
    name: str
    version: str


class Header(Struct, frozen=True, kw_only=True, tag_field="record", tag="header"):
    """What a run was started with; the record may have more keys than these."""

    format: int
    topology: TopologyName
    schedulers: int = 1
    """A trace from before there could be several does not tell."""
    policies: dict[str, str] = {}
    """The digests of the policies that could decide beside those of the package, by name."""
    driver: str
    seed: int | None
    instance: str
    settings: Settings
    start_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    package: Package | None = None
    """What wrote it; format 1 does not tell."""
    python: str = ""
    config_digest: str = ""
    """SHA-256 of the administrator's configuration, if there was one."""
    segment: int = 1
    """Above 1 it begins in the middle of a run."""

    def __post_init__(self) -> None:
        check_topology(self.topology, self.schedulers)


class Footer(Struct, frozen=True, kw_only=True, tag_field="record", tag="footer"):
    """The digest of each machine's state at the end; empty if the run failed."""

    states: dict[str, str]
    failure: str = ""
    took_ns: dict[str, int] = {}
    """How long the last handling of each mailbox took."""


class Gap(Struct, frozen=True, kw_only=True, tag_field="record", tag="gap"):
    """Here records were dropped: because the disk was too slow, unless another cause is given."""

    messages: int
    mailboxes: dict[str, int]
    filtered: bool = False
    """Nobody wanted them: they are in the recording that this one was exported from."""


FORMER_SETTINGS: Final = {"slice_max": INT64_MAX}
"""What a core did before there was a setting for it: all of its work in one handler."""


def _with_former_settings(header: Header, raw: bytes) -> Header:
    named = msgspec.msgpack.decode(raw)["settings"]
    former = {name: value for name, value in FORMER_SETTINGS.items() if name not in named}
    return replace(header, settings=replace(header.settings, **former)) if former else header


_Record = Header | StoredDelivery | Gap | Footer
_records = msgspec.msgpack.Decoder(_Record)


_WORDS: Final = {
    msgpack.StackError: "it is nested too deep",
    RecursionError: "it is nested too deep",
    msgpack.FormatError: "it is no MessagePack",
}
"""What libraries raise without a word of use."""
_MAP_STARTS: Final = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
"""What MessagePack begins a map with."""
_KNOWN_RECORDS: Final = frozenset({"header", "delivery", "gap", "footer"})


class _Start(Struct):
    """As much of a record as tells what it is."""

    record: str = ""
    format: object = None


_starts = msgspec.msgpack.Decoder(_Start)


class _Counter:
    """Counts what is in a record while it is read, and stops where that is too much."""

    def __init__(self) -> None:
        self._items = 0

    def count(self, value: list[None] | dict[str, None]) -> None:
        self._items += 1 + len(value)
        if self._items > ITEMS_MAX:
            raise ValueError(f"more than {ITEMS_MAX} items")


def silent(messages: int, doing: str = "") -> None:
    """Tell nobody how far it is: what is given to those that count if nobody looks on."""


def not_opened(path: Path, error: OSError) -> TraceError:
    return TraceError(
        f"{path}: cannot be opened: {error.strerror}; give the path of a recorded trace"
    )


class TraceReader:
    """Opens a trace and reads its header; iterate over it once for the deliveries."""

    def __init__(
        self,
        path: Path,
        wait: Callable[[], None] | None = None,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        """With `wait` a run that goes on is followed: it is called where there is no more yet.

        `policies` decide where the messages are run again: those that the run was given.
        """
        self.path = path
        self.policies = Policies(policies)
        self.number = 0
        """The number of the record that is being read; the header is 1."""
        self.footer: Footer | None = None
        """Set when all deliveries have been read; None then means an incomplete trace."""
        self.messages = 0
        """How many messages have been read."""
        self.segment = 1
        """Which one is being read."""
        self.lost = 0
        """How many messages were handled and are not in the recording, up to here."""
        self.filtered = 0
        """How many messages an export has left out, up to here."""
        self.unknown: Counter[str] = Counter()
        """Records of kinds that this version does not know, which were passed over."""
        self.rest = 0
        """How many bytes stand behind the last whole record, when all have been read."""
        self.has_unknown_fields = False
        """Whether a payload had fields that this version does not know, up to here."""
        try:
            self._source = Source(path, wait)
        except OSError as error:
            raise not_opened(path, error) from error
        self._raw = self._cut()
        try:
            self.header = self._read_header()
        except TraceError:
            self.close()
            raise

    def close(self) -> None:
        self._source.close()

    @property
    def files(self) -> tuple[FileId, ...]:
        """Which files are read."""
        return self._source.files

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def __iter__(self) -> Iterator[Delivery]:
        return (delivery for _, delivery in self.records() if delivery is not None)

    def records(self) -> Iterator[tuple[bytes, Delivery | None]]:
        """Yield each record behind the header as it is written, and the message if it holds one."""
        for raw, head in self._heads():
            yield raw, None if head is None else self._delivery(head)

    def heads(self) -> Iterator[StoredDelivery]:
        """Yield the deliveries without reading their payloads."""
        return (head for _, head in self._heads() if head is not None)

    def _heads(self) -> Iterator[tuple[bytes, StoredDelivery | None]]:
        for raw in self._raw:
            record = self._record(raw)
            if self.footer is not None and record is not None:
                raise self._error("follows the footer, which ends a trace", _DAMAGED)
            match record:
                case StoredDelivery():
                    self.messages += 1
                    yield raw, record
                    continue
                case Gap():
                    self._count(record)
                case Footer():
                    self.footer = record
                    if self._source.is_followed:
                        return
                case Header():
                    self.segment += 1
                    self._check_next(record)
            yield raw, None

    def raw(self) -> Iterator[bytes]:
        """Yield each record behind the header as it is written, and look at none of them."""
        return self._raw

    def go_behind(self, record: int, segment: int) -> None:
        """Pass over what was read before, up to that record of that segment; look at none of it."""
        for _ in islice(self._raw, record - self.number):
            pass
        self.segment = segment

    def delivery_in(self, number: int, raw: bytes) -> Delivery | None:
        """Return the message in a record that was found elsewhere; None if it holds none."""
        self.number = number
        record = self._record(raw)
        return self._delivery(record) if isinstance(record, StoredDelivery) else None

    # -- one record

    def _count(self, gap: Gap) -> None:
        if gap.filtered:
            self.filtered += gap.messages
        else:
            self.lost += gap.messages

    def _check_next(self, header: Header) -> None:
        """The next segment of the same run may follow, and nothing else."""
        if (header.segment, header.instance) != (self.segment, self.header.instance):
            raise self._error("is a second header", "two traces stand in one file: take them apart")

    def _read_header(self) -> Header:
        raw = next(self._raw, None)
        if raw is None:
            raise self._headless()
        start = self._start_of(raw)
        if start.record != "header":
            raise self._foreign()
        if start.format not in FORMATS_READ:
            read = " and ".join(map(str, FORMATS_READ))
            raise self._error(
                f"says format {start.format!r}, and this version reads formats {read}",
                "read it with the version that wrote it, or record the run again",
            )
        self.raw_header = raw
        header = self._record(raw)
        assert isinstance(header, Header)
        self.segment = header.segment
        self._is_ours = header.package is not None and header.package.version == VERSION
        return header

    def _cut(self) -> Iterator[bytes]:
        """Yield the bytes of every whole record of the file so far."""
        unpacker = msgpack.Unpacker(max_buffer_size=RECORD_MAX + CHUNK)
        pending, at, begin = bytearray(), 0, 0
        chunks = self._chunks()
        while True:
            self.number += 1
            while not self._skip(unpacker):
                if len(pending) - at > RECORD_MAX:
                    raise self._error(f"is larger than {RECORD_MAX >> 20} MiB", _DAMAGED)
                chunk = next(chunks, b"")
                if not chunk:
                    self.rest = len(pending) - at
                    return
                if begin == 0 == len(pending) and chunk[0] not in _MAP_STARTS:
                    raise self._foreign()
                unpacker.feed(chunk)
                del pending[:at]
                at = 0
                pending += chunk
            size = unpacker.tell() - begin
            begin += size
            yield bytes(memoryview(pending)[at : at + size])
            at += size

    def _skip(self, unpacker: msgpack.Unpacker) -> bool:
        """Go behind the next record; not if the rest of it is not written yet."""
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            return False
        except (msgpack.UnpackException, ValueError) as error:
            raise self._unreadable(error) from error
        return True

    def _chunks(self) -> Iterator[bytes]:
        try:
            yield from self._source.chunks()
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}", "try again") from error
        except (zlib.error, msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._unreadable(error) from error

    def _record(self, raw: bytes) -> _Record | None:
        """Decode a record; None if it is of a kind that only a later version knows."""
        try:
            if len(raw) > _SMALL:
                self._check_items(raw)
            record: _Record = _records.decode(raw)
            if isinstance(record, Header):
                record = _with_former_settings(record, raw)
        except msgspec.ValidationError as error:
            kind = self._start_of(raw).record
            if not kind or kind in _KNOWN_RECORDS:
                raise self._error(f"is not as recorded: {error}", _DAMAGED) from error
            self.unknown[kind] += 1
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(error) from error
        return record

    @staticmethod
    def _start_of(raw: bytes) -> _Start:
        try:
            return _starts.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _Start()

    def _check_items(self, raw: bytes) -> None:
        """Refuse what is small on the disk and huge in memory."""
        counter = _Counter()
        try:
            msgpack.unpackb(
                raw, max_array_len=ITEMS_MAX, max_map_len=ITEMS_MAX,
                object_hook=counter.count, list_hook=counter.count, strict_map_key=False,
            )  # fmt: skip
        except (msgpack.UnpackException, ValueError) as error:
            raise self._unreadable(error) from error

    def _delivery(self, record: StoredDelivery) -> Delivery:
        try:
            delivery = delivery_of(record)
            if not self._is_ours and not self.has_unknown_fields:
                self.has_unknown_fields = has_unknown_fields(record, delivery.message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._error(f"is not as recorded: {error}", _DAMAGED) from error
        return delivery

    def _headless(self) -> TraceError:
        kind = kind_of(self._source.head)
        if kind is not None:
            return self._foreign()
        empty = "" if self._source.head else ": the file is empty"
        return TraceError(
            f"{self.path}: has no header yet{empty}; wait until the run that writes it has begun, "
            "or record it again"
        )

    def _foreign(self) -> TraceError:
        """Say what is there in place of a trace, if its first bytes tell that."""
        kind = kind_of(self._source.head)
        what = "is not the header of a trace"
        if kind is None:
            return self._error(what, _NO_TRACE)
        return self._error(f"{what}: the file is {kind.what}", kind.remedy or _NO_TRACE)

    def _unreadable(self, error: Exception) -> TraceError:
        if self.number == 1 and kind_of(self._source.head) is not None:
            return self._foreign()
        remedy = _DAMAGED if self.number > 1 else _NO_TRACE
        why = _WORDS.get(type(error)) or str(error) or type(error).__name__
        return self._error(f"cannot be read: {why}", remedy)

    def _error(self, what: str, remedy: str) -> TraceError:
        return TraceError(f"{self.path}: record {self.number} {what}; {remedy}")
