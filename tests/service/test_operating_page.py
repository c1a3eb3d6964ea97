"""The page about operating a service shows what its commands print, against a service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")
from pages import REPOSITORY
from probes import wait_until
from served import G, Served, serving
from transcripts import transcript_faults

from yunikorn_actors import si
from yunikorn_actors.cli import service_calls

PAGE = REPOSITORY / "docs/how-to/operate-a-service.md"
QUEUES = """\
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: batch, resources: {guaranteed: {vcore: 2}, max: {vcore: 6}}}
    - name: web
"""


@pytest.fixture
def served() -> Iterator[Served]:
    """One application has three of its five tasks; another has its only one."""
    with serving(config=QUEUES) as it:
        it.core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1"), it.rm)
        it.nodes(*(bare(name) for name in ("node-1", "node-2")))
        for name, user, queue in (("etl-1", "ann", "batch"), ("web-1", "bob", "web")):
            it.application(name, f"root.{queue}", si.UserGroupInformation(user=user))
        it.asks("etl-1", *(f"task-{n}" for n in range(1, 6)), vcore=2000)
        it.asks("web-1", "front")
        wait_until(lambda: 4 == len(it.rm.new))
        yield it


def bare(name: str) -> si.NodeInfo:
    size = si.Resource.of({"vcore": 4000, "memory": 16 * G})
    create = si.ActionFromRM.CREATE
    return si.NodeInfo(node_id=name, action=create, schedulable_resource=size)


def test_what_the_page_shows_is_printed(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service_calls, "DEFAULT", served.part.address)
    monkeypatch.setenv("LOGNAME", "ann")
    text = PAGE.read_text("utf-8")
    assert [] == transcript_faults(text, "console served")


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    commands = ("queues", "apps", "nodes", "why", "events", "drain", "undrain", "unregister")
    more = ("validate", "config show", "config load")
    assert [] == [it for it in (*commands, *more) if f"yunikorn-actors {it}" not in text]
