"""The administrator's file is followed; one that is refused leaves the former one in force."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yunikorn_actors import ResourceManagerCallback, SchedulerCore, si
from yunikorn_actors.service import followed_file
from yunikorn_actors.service.listener import CONFIGURATION, Standing
from yunikorn_actors.service.service import ConfigFile

CONFIG = "partitions: [{name: default, queues: [{name: root, queues: [{name: NAME}]}]}]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(CONFIG.replace("NAME", "first"))
    return path


@pytest.fixture
def core(path: Path) -> Iterator[SchedulerCore]:
    with SchedulerCore(config=path) as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1")
        core.register_resource_manager(request, ResourceManagerCallback())
        yield core


def queues(core: SchedulerCore) -> list[str]:
    known = core.state_dump()["partitions"]["[rm-1]default"]["queues"]
    return [path for path, queue in known.items() if queue["state"] == "Active"]


def loaded(file: ConfigFile) -> None:
    """Do at once what the thread does soon."""
    file.reload()
    file._look()


def test_a_file_is_loaded_again(core: SchedulerCore, path: Path) -> None:
    file = ConfigFile(path, core, Standing())
    path.write_text(CONFIG.replace("NAME", "second"))
    loaded(file)
    assert "root.second" in queues(core)


def test_a_bad_file_changes_nothing_and_that_is_said(
    core: SchedulerCore, path: Path, log: pytest.LogCaptureFixture
) -> None:
    standing, told = Standing(), list[str]()
    standing.subscribe(lambda topic, fault: told.append(fault) if topic == CONFIGURATION else None)
    file = ConfigFile(path, core, standing)
    path.write_text("partitions: 7")
    loaded(file)
    loaded(file)
    assert ["root", "root.first"] == queues(core)
    assert "partitions" in standing.configuration_fault
    warnings = [it for it in log.messages if "refused, the former one stays" in it]
    assert 1 == len(warnings)
    path.unlink()
    loaded(file)
    assert "No such file" in standing.configuration_fault
    path.write_text(CONFIG.replace("NAME", "third"))
    loaded(file)
    assert "root.third" in queues(core)
    assert ["", "partitions", "No such file", ""] == [_kind(it) for it in told]


def _kind(told: str) -> str:
    return next((it for it in ("partitions", "No such file") if it in told), told)


def test_a_change_is_seen_without_a_signal(
    core: SchedulerCore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from probes import wait_until  # noqa: PLC0415 - it waits on threads

    monkeypatch.setattr(followed_file, "LOOK_S", 0.01)
    file = ConfigFile(path, core, Standing())
    file.start()
    try:
        path.write_text(CONFIG.replace("NAME", "second"))
        wait_until(lambda: "root.second" in queues(core))
    finally:
        file.stop(60)


def test_a_file_that_is_being_written_is_not_loaded(core: SchedulerCore, path: Path) -> None:
    file = ConfigFile(path, core, Standing())
    for text in ("", CONFIG.replace("NAME", "half"), CONFIG.replace("NAME", "whole")):
        path.write_text(text)
        file._look()
        assert ["root", "root.first"] == queues(core)
    file._look()
    assert ["root", "root.whole"] == queues(core)


def test_a_file_that_has_been_away_is_good_again(core: SchedulerCore, path: Path) -> None:
    standing = Standing()
    file = ConfigFile(path, core, standing)
    path.rename(path.with_suffix(".away"))
    file._look()
    assert "No such file" in standing.configuration_fault
    path.with_suffix(".away").rename(path)
    file._look()
    file._look()
    assert not standing.configuration_fault


def test_nobody_waits_for_the_writer_of_a_pipe(core: SchedulerCore, path: Path) -> None:
    standing = Standing()
    file = ConfigFile(path, core, standing)
    path.unlink()
    os.mkfifo(path)
    loaded(file)
    assert "it is a pipe: put a file in its place" == standing.configuration_fault
    assert ["root", "root.first"] == queues(core)


def test_it_stops_in_the_middle_of_its_rest(core: SchedulerCore, path: Path) -> None:
    file = ConfigFile(path, core, Standing())
    file.start()
    file.stop(60)
    assert not file._thread.is_alive()


def test_a_fault_is_a_matter_of_health(serve: Callable[..., object]) -> None:
    pytest.importorskip("grpc")
    from calling import Caller  # noqa: PLC0415 - of the extra
    from grpc_health.v1 import health_pb2  # noqa: PLC0415 - of the extra
    from probes import wait_until  # noqa: PLC0415 - it waits on threads

    serving = serve()
    request = health_pb2.HealthCheckRequest(service="configuration").SerializeToString()

    def status() -> str:
        with Caller(serving.parts["grpc"].address) as caller:  # type: ignore[attr-defined]
            answer = caller.call("/grpc.health.v1.Health/Check", request)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(
            health_pb2.HealthCheckResponse.FromString(answer).status
        )

    wait_until(lambda: status() == "SERVING")
    serving.standing.tell("line 1: wrong")  # type: ignore[attr-defined]
    wait_until(lambda: status() == "NOT_SERVING")
    serving.standing.tell("")  # type: ignore[attr-defined]
    wait_until(lambda: status() == "SERVING")
