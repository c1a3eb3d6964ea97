"""An application that names a queue which is not there: refused, or told where it is."""

import asyncio
import pickle
from io import StringIO
from pathlib import Path

import pytest
from probes import wait_until
from support import CONFIG, Recorder

from yunikorn_actors import (
    ApplicationRejected,
    AsyncScheduler,
    ConfigWarning,
    QueueNotFound,
    Scheduler,
    SchedulerCore,
    enable_logs,
    si,
)
from yunikorn_actors.errors import anew

QUEUES = """
partitions:
- name: default
  placementrules:
  - {name: tag, value: team, create: true}
  - {name: provided}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: default}
    - {name: batch}
    - {name: web, queues: [{name: shop}]}
"""
OPEN = ("root.batch", "root.default", "root.web.shop")


def test_the_front_refuses_it_and_names_the_queues() -> None:
    with Scheduler(QUEUES) as s:
        for wrong in ("root.bach", "root.web", "bach", ""):
            with pytest.raises(QueueNotFound, match=r"queues root\.batch, root\.default") as caught:
                s.application("etl", queue=wrong, user="ann")
            assert OPEN == caught.value.queues
            assert isinstance(caught.value, ApplicationRejected)
        assert not s.core.state_dump()["partitions"]["[rm-1]default"]["applications"]
        assert "root.batch" == s.application("etl", queue="root.batch", user="ann").queue


def test_the_error_travels_whole() -> None:
    error = QueueNotFound("no queue", ("root.a",))
    for again in (anew(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - our own
        assert ("no queue", ("root.a",)) == (str(again), again.queues)


def test_with_a_fallback_the_application_says_where_it_is() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("etl", queue="root.bach", user="ann", fallback=True)
        assert "root.default" == app.queue


def test_what_a_placement_rule_places_is_not_refused() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("etl", queue="root.bach", user="ann", tags={"team": "red"})
        assert "root.red" == app.queue
        assert "root.web.shop" == s.application("a", queue="root.WEB.Shop", user="ann").queue
        assert "root.default" == s.application("b", user="ann").queue


def test_of_queues_that_the_user_may_not_use_none_is_named() -> None:
    closed = "partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]"
    with pytest.warns(ConfigWarning, match="nobody may submit"):
        made = Scheduler(closed)
    with (
        made as s,
        pytest.raises(ApplicationRejected, match=r"there is no queue root\.b") as caught,
    ):
        s.application("etl", queue="root.b", user="ann")
    assert not isinstance(caught.value, QueueNotFound)


def test_the_async_front_does_the_same() -> None:
    async def run() -> tuple[tuple[str, ...], str, str]:
        async with AsyncScheduler(QUEUES) as s:
            with pytest.raises(QueueNotFound) as caught:
                await s.application("etl", queue="root.bach", user="ann")
            placed = await s.application("etl", queue="root.bach", user="ann", fallback=True)
            ruled = await s.application("web", queue="x", user="ann", tags={"team": "red"})
            return caught.value.queues, placed.queue, ruled.queue

    assert (OPEN, "root.default", "root.red") == asyncio.run(run())


class Heard(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.accepted: list[si.AcceptedApplication] = []

    def update_application(self, response: si.ApplicationResponse) -> None:
        super().update_application(response)
        self.accepted += response.accepted


def submit(core: SchedulerCore, rm: Heard, name: str, queue: str, **tags: str) -> None:
    before = len(rm.accepted)
    new = si.AddApplicationRequest(
        application_id=name,
        queue_name=queue,
        ugi=si.UserGroupInformation(user="ann"),
        tags=tags,
    )
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
    wait_until(lambda: len(rm.accepted) > before)


def test_a_core_accepts_it_and_says_so_in_acceptance_event_and_log() -> None:
    sink, rm = StringIO(), Heard()
    end = enable_logs(sink)
    with SchedulerCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
        core.register_resource_manager(request, rm)
        submit(core, rm, "there", "root.batch")
        submit(core, rm, "lost", "root.bach")
        submit(core, rm, "ruled", "root.bach", team="red")
        wait_until(core.is_settled)
        records = {
            it.object_id: it.message
            for it in core.events().records
            if it.event_change_detail is si.ChangeDetail.APP_NEW
        }
    end()
    assert [
        si.AcceptedApplication(application_id="there", queue="root.batch"),
        si.AcceptedApplication(application_id="lost", queue="root.default", by_last_resort=True),
        si.AcceptedApplication(application_id="ruled", queue="root.red"),
    ] == rm.accepted
    asked = "it asked for queue root.bach"
    last_resort = (
        f"{asked} and is in root.default, the last resort, because no placement rule matched"
    )
    ruled = f"{asked}, and a placement rule put it into root.red"
    assert {"there": "", "lost": last_resort, "ruled": ruled} == records
    lines = sink.getvalue().splitlines()
    assert any("WARNING" in it and last_resort in it for it in lines)
    assert any("INFO" in it and ruled in it for it in lines)


def test_after_a_restart_the_acceptance_names_the_queue(tmp_path: Path) -> None:
    for _ in range(2):
        rm = Heard()
        with SchedulerCore(journal=tmp_path) as core:
            request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
            core.register_resource_manager(request, rm)
            submit(core, rm, "lost", "root.bach")
            assert ["root.default"] == [it.queue for it in rm.accepted]
            wait_until(core.is_settled)
            core.resource_manager_lost("rm-1")


def test_the_json_of_the_interface_has_no_field_that_its_readers_do_not_know() -> None:
    accepted = si.AcceptedApplication(application_id="a", queue="root.b", by_last_resort=True)
    rejected = si.RejectedApplication(application_id="b", reason="no", queues=("root.b",))
    response = si.ApplicationResponse(accepted=(accepted,), rejected=(rejected,))
    assert (
        b'{"rejected":[{"applicationID":"b","reason":"no"}],"accepted":[{"applicationID":"a"}]}'
        == (si.to_json(response))
    )
    assert b'{"applicationID":"a"}' == si.to_json(accepted)


def test_an_application_may_refuse_the_last_resort_by_a_tag() -> None:
    rm = Recorder()
    with SchedulerCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG)
        core.register_resource_manager(request, rm)
        new = si.AddApplicationRequest(
            application_id="etl",
            queue_name="root.bach",
            ugi=si.UserGroupInformation(user="ann"),
            tags={"Application.Queue.Fallback": "False"},
        )
        core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
        wait_until(lambda: bool(rm.told("application")))
        assert "there is no queue root.bach; queues root.default would take it" in str(rm.heard)
