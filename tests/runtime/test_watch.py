"""What a resource manager wishes of the driver: how much is logged, and how often health is checked."""

from collections.abc import Iterator
from io import StringIO

import pytest
from probes import PATIENCE_S, register, wait_until
from support import CONFIG, RM, Recorder

from yunikorn_actors import SchedulerCore, enable_logs, si
from yunikorn_actors.runtime.health_monitor import HealthWatch

HEALTHY, NOT_HEALTHY = (
    "DEBUG yunikorn_actors.runtime.health_monitor health check: healthy",
    "NOT healthy: ",
)


@pytest.fixture
def everything() -> Iterator[StringIO]:
    sink = StringIO()
    end = enable_logs(sink, "DEBUG")
    yield sink
    end()


def register_with(core: SchedulerCore, rm_id: str = RM, **extra: str) -> None:
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=rm_id,
            config=CONFIG,
            extra_config={k.replace("_", "."): v for k, v in extra.items()},
        ),
        Recorder(),
    )


def update_with(core: SchedulerCore, **extra: str) -> None:
    core.update_configuration(
        si.UpdateConfigurationRequest(
            rm_id=RM, config=CONFIG, extra_config={k.replace("_", "."): v for k, v in extra.items()}
        )
    )


def refuse_a_node(core: SchedulerCore) -> None:
    nowhere = {si.constants.NODE_PARTITION: "nowhere"}
    node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, attributes=nowhere)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))


def test_health_is_checked_as_often_as_is_wished(everything: StringIO) -> None:
    with SchedulerCore() as core:
        register_with(core, health_checkInterval="10ms", log_level="debug")
        wait_until(lambda: HEALTHY in everything.getvalue())
        refuse_a_node(core)
        wait_until(lambda: f"{NOT_HEALTHY}Failed nodes: " in everything.getvalue())


@pytest.mark.parametrize("interval", ["", "0s", "-5s"])
def test_health_is_checked_by_nobody_unless_that_is_wished(interval: str) -> None:
    with SchedulerCore() as core:
        register_with(core, health_checkInterval=interval)
        assert core._health._thread is None
        update_with(core, health_checkInterval="1h")
        assert core._health._thread.is_alive()
        assert 3600 == core._health._seconds
        register_with(core, "rm-2", health_checkInterval="1m")
        assert 60 == core._health._seconds, "the most frequent wish counts"
        core.unregister_resource_manager("rm-2")
        assert 3600 == core._health._seconds
        update_with(core, health_checkInterval=interval)
        assert core._health._seconds is None


def test_lines_below_the_level_are_dropped(everything: StringIO) -> None:
    with SchedulerCore() as core:
        register_with(core, log_level="error", rm_confirmWarning="soon")
        assert "soon" not in everything.getvalue()
        update_with(core, log_level="2", health_checkInterval="often")
        assert "often" not in everything.getvalue()
        register_with(core, "rm-2", log_level="info", rm_confirmWarning="soon")
        assert "extra configuration of rm-2: rm.confirmWarning: 'soon'" in everything.getvalue()
    assert "core stopped" in everything.getvalue()
    with SchedulerCore() as core:
        register(core, Recorder())
        update_with(core, log_level="loud")
    assert "extra configuration of rm-1: log.level: 'loud' is no value" in everything.getvalue()
    assert 2 == everything.getvalue().count("core started"), "a core that is over wishes nothing"


MISSPELT = """
partitions:
- name: default
  queues: [{name: root, submitacl: "*", properties: {aplication.sort.polcy: fair}}]
"""


def test_what_can_hardly_be_meant_in_a_configuration_is_logged(everything: StringIO) -> None:
    with SchedulerCore(config=MISSPELT) as core:
        words = "line 4: root: unknown property 'aplication.sort.polcy' has no effect"
        assert f"configuration of the administrator: {words}" in everything.getvalue()
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=MISSPELT)
        core.register_resource_manager(request, Recorder())
        assert f"configuration of rm-1: {words}" in everything.getvalue()


def test_a_watch_that_is_stopped_before_it_waits_ends() -> None:
    watch = HealthWatch(lambda: pytest.fail("nobody is to look"))
    with watch._condition:
        watch.every(3600)
        watch.stop()
    watch.join(PATIENCE_S)
    assert not watch._thread.is_alive()
