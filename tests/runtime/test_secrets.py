"""No secret that anybody plants in a call stands in a recording, in a log or in a dump."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from probes import wait_until
from support import Recorder as Hearing
from viewed import blocks

from yunikorn_actors import SchedulerCore, TraceSettings, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.runtime.secret_values import masked_record
from yunikorn_actors.runtime.secrets import Cover, salted, stars
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

SECRET = "hunter2"  # noqa: S105 - it is to be found nowhere
NAMES = ("si_secret", "Password", "x.token", "db-passwd", "API_KEY", "privateKey")
CONFIG = f"""
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: default
      properties: {{registry.password: {SECRET}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def planted(*more: str) -> dict[str, str]:
    told = dict.fromkeys(NAMES, SECRET)
    return {**told, "note": f"token={SECRET}", "url": f"https://bob:{SECRET}@host/", **dict(more)}  # type: ignore[arg-type]


def work(core: SchedulerCore) -> None:
    hearing = Hearing()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id="rm-1", config=CONFIG, extra_config=planted(), build_info=planted()
        ),
        hearing,
    )
    amount = si.Resource.of({"vcore": 1})
    node = si.NodeInfo(
        node_id="n1", action=si.ActionFromRM.CREATE, attributes=planted(),
        schedulable_resource=si.Resource.of({"vcore": 4}),
    )  # fmt: skip
    core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))
    application = si.AddApplicationRequest(
        application_id="app-1", queue_name="root.default", tags=planted(),
        ugi=si.UserGroupInformation(user="bob"),
    )  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(application,)))
    asks = tuple(
        si.AllocationAsk(
            application_id="app-1", allocation_key=key, resource_ask=amount, tags=planted()
        )
        for key in "abcdef"
    )
    core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=asks))
    core.update_configuration(
        si.UpdateConfigurationRequest(rm_id="rm-1", config=CONFIG, extra_config=planted())
    )
    wait_until(lambda: core.is_settled() and len(hearing.told("new")) == 4)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_nothing_that_goes_out_has_a_secret(
    path: Path, log: StringIO, topology: TopologyName, capsys: pytest.CaptureFixture[str]
) -> None:
    with SchedulerCore(topology=topology, trace=path) as core:
        work(core)
        dump = core.state_dump()
    assert path.stat().st_size > 5_000
    assert SECRET.encode() not in path.read_bytes()
    assert SECRET not in log.getvalue()
    assert SECRET not in json.dumps(dump)
    assert main(["trace", "show", str(path), "--full"]) == 0
    shown = capsys.readouterr().out
    assert SECRET not in shown
    assert '"si_secret": "masked:' in shown
    page = path.with_suffix(".html")
    assert main(["trace", "view", str(path), "-o", str(page), "--why", "all"]) == 0
    assert SECRET not in page.read_text("utf-8")
    packed = "".join(blocks(page).values())
    assert SECRET not in packed
    assert '"si_secret":"masked:' in packed


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_with_secrets_replays(path: Path, topology: TopologyName) -> None:
    """The machines get what is recorded, and come to the same: none of them decides by a secret."""
    with SchedulerCore(topology=topology, trace=path) as core:
        work(core)
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is None
    assert outcome.states > 2


def test_a_flight_recorder_has_no_secret_either(path: Path) -> None:
    settings = TraceSettings(path=path, flight_recorder_bytes=10**7)
    with SchedulerCore(trace=settings) as core:
        work(core)
        core.save_trace(path)
    assert SECRET.encode() not in path.read_bytes()


# -- what is covered


def masked_value(value: Any, cover: Cover) -> Any:
    return msgspec.msgpack.decode(masked_record(msgspec.msgpack.encode(value), cover))


def test_equal_secrets_stay_equal_and_others_differ() -> None:
    cover = salted()
    told = masked_value({"token": "one", "tokens": ["two"], "a": {"token": "one"}}, cover)
    assert told["token"] == told["a"]["token"]
    assert told["token"].startswith("masked:")
    assert told["tokens"] == ["two"], "a list under such a name is told by its own names"
    assert masked_value({"token": "two"}, cover)["token"] != told["token"]
    assert masked_value({"token": "one"}, salted())["token"] != told["token"], "another salt"


@pytest.mark.parametrize(
    "value",
    [{"vcore": 4, "token": 7}, {"token": ""}, {"application_id": "secret-agent"}, [None, 1.5]],
)
def test_what_is_no_secret_stays(value: Any) -> None:
    assert value == masked_value(value, stars)
