"""Which configuration a program that connects has: the service's, its own, or one open queue."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from fronting import QUEUES, quick_core
from probes import wait_until

from yunikorn_actors import QueueNotFound, SchedulerCore, connect, connect_async
from yunikorn_actors.service.rpc import messages
from yunikorn_actors.service.rpc.protobuf import codec
from yunikorn_actors.service.service import Serving

ADMIN = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: dev, queues: [{name: x}]}]
"""


@pytest.fixture
def serving(serve: Callable[..., Serving]) -> Serving:
    return serve(quick_core())


@pytest.fixture
def address(serving: Serving) -> str:
    serving.core.administer(ADMIN)
    return serving.parts["grpc"].address


def test_that_of_the_service(address: str) -> None:
    with connect(address) as s:
        assert "root.dev.x" == s.application("app", queue="root.dev.x", user="ann").queue
        with pytest.raises(QueueNotFound, match=r"root\.dev\.x"):
            s.application("other", user="ann")


def test_that_of_the_service_on_a_loop(address: str) -> None:
    async def program() -> str:
        async with connect_async(address) as s:
            return (await s.application("app", queue="root.dev.x", user="ann")).queue

    assert "root.dev.x" == asyncio.run(program())


def test_a_program_that_brings_one_has_that(address: str) -> None:
    with connect(address, QUEUES) as s:
        assert "root.batch" == s.application("app", queue="root.batch", user="ann").queue


def test_one_open_queue_where_the_service_has_none(serving: Serving) -> None:
    with connect(serving.parts["grpc"].address) as s:
        assert "root.default" == s.application("app", user="ann").queue
        # Who has registered keeps what it has: what it is to run by does not change under it.
        serving.core.administer(ADMIN)
        assert "root.default" == s.application("other", user="ann").queue


def test_one_that_was_configured_holds_after_a_break(address: str, serving: Serving) -> None:
    with connect(address) as s:
        s.configure(QUEUES)
        registered = s._operations.registration
        s.core.register_resource_manager(registered, s._operations.callback)  # type: ignore[attr-defined]
        assert "root.batch" == s.application("app", queue="root.batch", user="ann").queue
    wait_until(lambda: not serving.core.state_dump()["managers"])


def test_a_core_that_starts_again_knows_that_it_has_one(tmp_path: Path) -> None:
    with SchedulerCore(journal=tmp_path / "journal") as core:
        assert not core.is_administered
        core.administer(ADMIN)
        assert core.is_administered
    with SchedulerCore(journal=tmp_path / "journal") as core:
        assert core.is_administered


def test_programs_of_before_bring_their_own() -> None:
    opening = codec(messages.Opening).decode(b"", lambda _: None)
    assert not opening.config_is_default
