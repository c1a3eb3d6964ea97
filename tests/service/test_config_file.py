"""The administrator's file is followed; one that is refused leaves the former one in force."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yunikorn_actors import ResourceManagerCallback, SchedulerCore, si
from yunikorn_actors.service import config_file
from yunikorn_actors.service.config_file import ConfigFile
from yunikorn_actors.service.part import CONFIGURATION, Standing

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


def test_a_file_is_loaded_again(core: SchedulerCore, path: Path) -> None:
    file = ConfigFile(path, core, Standing())
    path.write_text(CONFIG.replace("NAME", "second"))
    file.reload()
    assert "root.second" in queues(core)


def test_a_bad_file_changes_nothing_and_that_is_said(
    core: SchedulerCore, path: Path, log: pytest.LogCaptureFixture
) -> None:
    standing, told = Standing(), list[str]()
    standing.hear(lambda topic, fault: told.append(fault) if topic == CONFIGURATION else None)
    file = ConfigFile(path, core, standing)
    path.write_text("partitions: 7")
    file.reload()
    file.reload()
    assert ["root", "root.first"] == queues(core)
    assert "partitions" in standing.configuration_fault
    warnings = [it for it in log.messages if "refused, the former one stays" in it]
    assert 1 == len(warnings)
    path.unlink()
    file.reload()
    assert "No such file" in standing.configuration_fault
    path.write_text(CONFIG.replace("NAME", "third"))
    file.reload()
    assert "root.third" in queues(core)
    assert ["", "partitions", "No such file", ""] == [_kind(it) for it in told]


def _kind(told: str) -> str:
    return next((it for it in ("partitions", "No such file") if it in told), told)


def test_a_change_is_seen_without_a_signal(
    core: SchedulerCore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from probes import wait_until  # noqa: PLC0415 - it waits on threads

    monkeypatch.setattr(config_file, "LOOK_S", 0.01)
    file = ConfigFile(path, core, Standing())
    file.start()
    try:
        path.write_text(CONFIG.replace("NAME", "second"))
        wait_until(lambda: "root.second" in queues(core))
    finally:
        file.stop(60)


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
