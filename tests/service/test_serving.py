"""A core and its parts are started together and stopped in order."""

import sys
from types import ModuleType

import pytest

from yunikorn_actors import SchedulerCore
from yunikorn_actors.service import service as serving
from yunikorn_actors.service.access_policy import Access
from yunikorn_actors.service.listener import Part, Site
from yunikorn_actors.service.service import Kind, NotInstalled, Serving

TRUSTED = Access(insecure=True)


class _Noting(Part):
    """Notes what happens to it, and whether the core ran then."""

    def __init__(self, site: Site, notes: list[str]) -> None:
        self._site = site
        self._notes = notes
        self._note("made")

    @property
    def address(self) -> str:
        return self._site.address

    def start(self) -> None:
        self._note("starts")
        if self.address == "broken:1":
            raise OSError("the address is taken")

    def stop(self, grace: float) -> None:
        assert 0 < grace <= serving.STOP_S
        self._note("stops")

    def _note(self, what: str) -> None:
        running = "with" if self._site.core.state == "running" else "without"
        self._notes.append(f"{self.address} {what} {running} core")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have two kinds of parts that note what happens."""
    notes: list[str] = []
    module = ModuleType("noting")
    module.make = lambda site: _Noting(site, notes)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "noting", module)
    for name in ("one", "two"):
        monkeypatch.setitem(serving.KINDS, name, Kind(name, "here", "noting", name))
    return notes


def test_parts_stand_between_the_start_and_the_stop_of_their_core(notes: list[str]) -> None:
    with Serving(SchedulerCore(), {"one": "a:1", "two": "b:1"}, access=TRUSTED):
        notes.append("ready")
    made = ["a:1 made without core", "b:1 made without core"]
    started = ["a:1 starts with core", "b:1 starts with core", "ready"]
    assert [*made, *started, "b:1 stops with core", "a:1 stops with core"] == notes


def test_where_a_part_cannot_start_nothing_is_left_running(notes: list[str]) -> None:
    core = SchedulerCore()
    with pytest.raises(OSError, match="the address is taken"):
        Serving(core, {"one": "a:1", "two": "broken:1"}, access=TRUSTED).start()
    assert "a:1 stops with core" == notes[-1]
    assert core.state == "stopped"


def test_what_a_part_needs_and_is_not_there_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(serving.KINDS, "air", Kind("Air", "sky:1", "no_such_module", "air"))
    expected = r"Air needs the package no_such_module, which is not installed; pip install 'yunikorn-actors\[air\]'; in a clone of the repository: pip install -e '\.\[air\]'"
    with pytest.raises(NotInstalled, match=expected):
        Serving(SchedulerCore(), {"air": "sky:1"}, access=TRUSTED)
