"""Requests about allocations as Context gets them: at once, or in pieces where they are long."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar

from yunikorn_actors import si
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.machines.rm_proxy.translation import ask_items, ask_release, reported_items
from yunikorn_actors.messages import rm_events as rm

_ItemT = TypeVar("_ItemT")


def items_of(request: si.AllocationRequest) -> int:
    items, releases = len(request.asks) + len(request.allocations), request.releases
    if releases is not None:
        items += len(releases.allocation_asks_to_release) + len(releases.allocations_to_release)
    return items


def allocation_update(
    request: si.AllocationRequest, requested_back: RequestedBack
) -> rm.RMUpdateAllocation:
    rm_id, releases = request.rm_id, request.releases
    # Most requests bring asks or releases: nothing is made of what they do not bring.
    asks = ask_items(rm_id, request.asks) if request.asks else ()
    if request.allocations:
        asks = (*asks, *reported_items(rm_id, request.allocations))
    if releases is None:
        return rm.RMUpdateAllocation(rm_id=rm_id, asks=asks)
    withdrawn, released = releases.allocation_asks_to_release, releases.allocations_to_release
    return rm.RMUpdateAllocation(
        rm_id=rm_id,
        asks=asks,
        ask_releases=tuple([ask_release(rm_id, item) for item in withdrawn]) if withdrawn else (),
        releases=(
            tuple([requested_back.release_in(rm_id, item) for item in released]) if released else ()
        ),
    )


def pieces_of(request: si.AllocationRequest, size: int) -> Iterator[si.AllocationRequest]:
    """Take a request apart, in the order in which its items are handled."""
    rm_id = request.rm_id
    releases = request.releases or si.AllocationReleasesRequest()
    for asks in _pieces(request.asks, size):
        yield si.AllocationRequest(rm_id=rm_id, asks=asks)
    for reported in _pieces(request.allocations, size):
        yield si.AllocationRequest(rm_id=rm_id, allocations=reported)
    for withdrawn in _pieces(releases.allocation_asks_to_release, size):
        piece = si.AllocationReleasesRequest(allocation_asks_to_release=withdrawn)
        yield si.AllocationRequest(rm_id=rm_id, releases=piece)
    for released in _pieces(releases.allocations_to_release, size):
        piece = si.AllocationReleasesRequest(allocations_to_release=released)
        yield si.AllocationRequest(rm_id=rm_id, releases=piece)


def _pieces(items: Sequence[_ItemT], size: int) -> Iterator[tuple[_ItemT, ...]]:
    return (tuple(items[start : start + size]) for start in range(0, len(items), size))


def joined(rm_id: str, pieces: Sequence[rm.RMUpdateAllocation]) -> rm.RMUpdateAllocation:
    return rm.RMUpdateAllocation(
        rm_id=rm_id,
        asks=tuple(chain.from_iterable(piece.asks for piece in pieces)),
        ask_releases=tuple(chain.from_iterable(piece.ask_releases for piece in pieces)),
        releases=tuple(chain.from_iterable(piece.releases for piece in pieces)),
    )
