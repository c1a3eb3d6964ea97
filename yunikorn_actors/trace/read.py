"""Reads a trace: a header, the deliveries in the order of recording, a footer.

A trace may come from anywhere and may still be growing, so it is read record by record and nothing
in it is trusted. A file that ends inside a record, or before the footer, is incomplete, not wrong:
it is read as far as it goes. Any other difference from what a recorder writes is a TraceError,
which names the file, the record (the header is record 1) and the remedy.
"""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
from msgspec import Meta, Struct

from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName, check_topology
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import (
    FORMAT_VERSION,
    DeliveryRecord,
    UnknownMessage,
    delivery_of,
)

RECORD_MAX = 64 * 1024 * 1024
ITEMS_MAX = 1_000_000
"""Of one list or map: a larger one is refused before memory is taken for it."""

_CHUNK = 64 * 1024
_DAMAGED = "the file is damaged, record the run again"
_NO_TRACE = "give a file that a run with --trace wrote"
_NOTHING = object()


class TraceError(ValueError):
    """The file is not a trace, or it is damaged."""


class Header(Struct, frozen=True, kw_only=True, tag_field="record", tag="header"):
    """What a run was started with; the record may have more keys than these."""

    format: int
    topology: TopologyName
    schedulers: int = 1
    """A trace from before there could be several does not tell."""
    driver: str
    seed: int | None
    instance: str
    settings: Settings
    start_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]

    def __post_init__(self) -> None:
        check_topology(self.topology, self.schedulers)


class Footer(Struct, frozen=True, kw_only=True, tag_field="record", tag="footer"):
    """The digest of each machine's state at the end; empty if the run failed."""

    states: dict[str, str]
    failure: str = ""


_Record = Header | DeliveryRecord | Footer


class TraceReader:
    """Opens a trace and reads its header; iterate over it once for the deliveries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        """The number of the record that is being read; the header is 1."""
        self.footer: Footer | None = None
        """Set when all deliveries have been read; None then means an incomplete trace."""
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise TraceError(
                f"{path}: cannot be opened: {error.strerror}; give the path of a recorded trace"
            ) from error
        self._raw = self._unpack()
        try:
            self.header = self._read_header()
        except TraceError:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def __iter__(self) -> Iterator[Delivery]:
        for raw in self._raw:
            record = self._record(raw)
            if self.footer is not None:
                raise self._error("follows the footer, which ends a trace", _DAMAGED)
            if isinstance(record, Header):
                raise self._error(
                    "is a second header", "two traces stand in one file: take them apart"
                )
            if isinstance(record, Footer):
                self.footer = record
            else:
                yield self._delivery(record)

    # -- one record

    def _read_header(self) -> Header:
        raw = next(self._raw, _NOTHING)
        if raw is _NOTHING:
            raise TraceError(
                f"{self.path}: has no header yet; wait until the run that writes it has begun, or "
                "record it again"
            )
        if not isinstance(raw, dict) or raw.get("record") != "header":
            raise self._error("is not the header of a trace", _NO_TRACE)
        version = raw.get("format")
        if version != FORMAT_VERSION:
            raise self._error(
                f"says format {version!r}, and this version reads format {FORMAT_VERSION}",
                "read it with the version that wrote it, or record the run again",
            )
        header = self._record(raw)
        assert isinstance(header, Header)
        return header

    def _unpack(self) -> Iterator[object]:
        """Yield every whole record of the file so far, as plain values."""
        unpacker = msgpack.Unpacker(
            max_buffer_size=RECORD_MAX + _CHUNK,
            max_array_len=ITEMS_MAX,
            max_map_len=ITEMS_MAX,
            max_ext_len=0,
            strict_map_key=True,
        )
        begin = fed = 0
        while True:
            self.number += 1
            while (raw := self._next(unpacker)) is _NOTHING:
                if fed - begin > RECORD_MAX:
                    raise self._error(f"is larger than {RECORD_MAX >> 20} MiB", _DAMAGED)
                chunk = self._chunk()
                if not chunk:
                    return
                unpacker.feed(chunk)
                fed += len(chunk)
            begin = unpacker.tell()
            yield raw

    def _next(self, unpacker: msgpack.Unpacker) -> object:
        """Return nothing if the rest of the record is not written yet."""
        try:
            raw: object = unpacker.unpack()
        except msgpack.OutOfData:
            return _NOTHING
        except (msgpack.UnpackException, ValueError) as error:
            remedy = _DAMAGED if self.number > 1 else _NO_TRACE
            what = f"cannot be read: {error or type(error).__name__}"
            raise self._error(what, remedy) from error
        return raw

    def _chunk(self) -> bytes:
        try:
            return self._file.read(_CHUNK)
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}", "try again") from error

    def _record(self, raw: object) -> _Record:
        try:
            record: _Record = msgspec.convert(raw, _Record)
        except msgspec.ValidationError as error:
            raise self._error(f"is not as recorded: {error}", _DAMAGED) from error
        return record

    def _delivery(self, record: DeliveryRecord) -> Delivery:
        try:
            return delivery_of(record)
        except (msgspec.ValidationError, UnknownMessage, RecursionError) as error:
            raise self._error(f"is not as recorded: {error}", _DAMAGED) from error

    def _error(self, what: str, remedy: str) -> TraceError:
        return TraceError(f"{self.path}: record {self.number} {what}; {remedy}")
