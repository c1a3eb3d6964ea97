"""A core that is given the administrator's configuration when it is made."""

import asyncio
from pathlib import Path

import pytest
from support import CONFIG, Recorder

from yunikorn_actors import AsyncSchedulerCore, ConfigError, CoreStopped, SchedulerCore, si
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

ROOT, LEAF = "root", "root.default"
JOIN = si.RegisterResourceManagerRequest(rm_id="rm-1")


def queues(core: SchedulerCore) -> list[str]:
    core.register_resource_manager(JOIN, Recorder())
    return list(core.state_dump()["partitions"]["[rm-1]default"]["queues"])


@pytest.mark.parametrize("given", ["path", "name of a file", "text"])
def test_a_file_or_its_text(tmp_path: Path, given: str) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(CONFIG, encoding="utf-8")
    config = {"path": file, "name of a file": str(file), "text": CONFIG}[given]
    core = SchedulerCore(config=config)
    file.unlink()
    with core:
        assert [ROOT, LEAF] == queues(core)


def test_a_blank_text_is_the_default() -> None:
    with SchedulerCore(config="\n") as core:
        assert [ROOT] == queues(core)


def test_a_faulty_one_makes_no_core(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        SchedulerCore(config="partitionz: []")
    with pytest.raises(FileNotFoundError):
        SchedulerCore(config=tmp_path / "nothing.yaml")


def test_a_core_that_is_over_takes_none() -> None:
    core = SchedulerCore(config=CONFIG)
    core.stop()
    with pytest.raises(CoreStopped):
        core.start()


def test_it_is_in_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    with SchedulerCore(config=CONFIG, trace=path) as core:
        queues(core)
    with TraceReader(path) as trace:
        first = next(iter(trace))
        assert "AdminConfigUpdate" == type(first.message).__name__
    with TraceReader(path) as trace:
        assert replay(trace).difference is None


def test_on_an_event_loop() -> None:
    async def run() -> list[str]:
        async with AsyncSchedulerCore(config=CONFIG) as core:
            await core.register_resource_manager(JOIN)
            return list((await core.state_dump())["partitions"]["[rm-1]default"]["queues"])

    assert [ROOT, LEAF] == asyncio.run(run())
