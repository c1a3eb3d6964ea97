"""What a core is made and stopped with is refused at once if it will not do, and by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from looping import on_a_loop
from probes import PATIENCE_S

from yunikorn_actors import (
    AsyncRemoteCore,
    AsyncScheduler,
    AsyncSchedulerCore,
    InvalidRequest,
    RemoteCore,
    ResourceManagerCallback,
    Scheduler,
    SchedulerCore,
    connect,
    si,
)

WRONG = {
    "driver": "direkt",
    "settings": {"cycle_max": 3},
    "instance": 7,
    "trace": 7,
    "journal": 7,
    "config": {"partitions": []},
    "clock": 7,
    "on_failure": "print",
    "on_callback_error": "print",
}


@pytest.mark.parametrize("core", [SchedulerCore, AsyncSchedulerCore])
@pytest.mark.parametrize("name", WRONG)
def test_a_core_is_not_made_of_what_it_cannot_use(core: type, name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name}: must be "):
        core(**{name: WRONG[name]})


def test_a_misspelt_driver_is_told_which_there_are() -> None:
    with pytest.raises(InvalidRequest, match="must be one of threads, direct, not 'direkt'"):
        SchedulerCore(driver="direkt")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_journal_without_a_name_is_not_kept_in_the_present_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match="journal: must be the name of a folder"):
        SchedulerCore(journal=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["", "garbage", ":3333", "127.0.0.1:99999", "a b:1", 7])
@pytest.mark.parametrize("core", [RemoteCore, AsyncRemoteCore, connect])
def test_what_is_no_address_is_not_waited_for(
    core: Callable[[Any], object], address: object
) -> None:
    with pytest.raises(InvalidRequest, match="address: must be HOST:PORT, not "):
        core(address)


def test_a_connection_is_not_made_of_what_it_cannot_use() -> None:
    wrong: dict[str, Any] = {"token": 7, "ca": 7, "on_callback_error": 7}
    for name, value in wrong.items():
        for core in (RemoteCore, AsyncRemoteCore):
            with pytest.raises(InvalidRequest, match=f"^{name}: must be "):
                core("127.0.0.1:1", **{name: value})


@pytest.mark.parametrize("timeout", [float("inf"), 10**30])
def test_there_may_be_any_time_to_stop(timeout: float, ours: Callable[[], list[str]]) -> None:
    core = SchedulerCore().start()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-1"), ResourceManagerCallback()
    )
    core.stop(timeout)
    Scheduler().start().close(timeout)
    assert not ours()


@pytest.mark.parametrize("timeout", [None, "5", float("nan"), []])
def test_what_is_no_time_stops_nothing(timeout: Any) -> None:
    with SchedulerCore() as core:
        with pytest.raises(InvalidRequest, match="stop: timeout: must be seconds, not "):
            core.stop(timeout)
        assert core.is_settled()
    with Scheduler() as s:
        with pytest.raises(InvalidRequest, match="close: timeout: must be seconds, not "):
            s.close(timeout)
        s.add_node("node-1", vcore=1)
        app = s.application("app", user="ann")
        assert "node-1" == app.ask("task", vcore=1).result(PATIENCE_S).node_id
    with pytest.raises(InvalidRequest, match="stop: timeout: must be seconds, not "):
        RemoteCore("127.0.0.1:1").stop(timeout)


@on_a_loop
async def test_what_is_no_time_does_not_close_a_front_on_a_loop() -> None:
    async with AsyncScheduler() as s:
        with pytest.raises(InvalidRequest, match="close: timeout: must be seconds, not '5'"):
            await s.close("5")  # type: ignore[arg-type]
        await s.add_node("node-1", vcore=1)
        assert ["node-1"] == [*s.nodes]
