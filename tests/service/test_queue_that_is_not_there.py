"""A client of a service learns the queue of its applications, too."""

from collections.abc import Callable
from pathlib import Path

import hosting
import pytest

pytest.importorskip("grpc")
from hosting import application, portal
from probes import wait_until

from yunikorn_actors import QueueNotFound, RemoteCore, SchedulerCore, connect, si
from yunikorn_actors.service.service import Serving

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: default}, {name: batch}]
"""


class Heard(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.accepted: list[si.AcceptedApplication] = []

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted += response.accepted


def request(*names: str) -> si.ApplicationRequest:
    new = tuple(
        si.AddApplicationRequest(
            application_id=name,
            queue_name=f"root.{name}",
            ugi=si.UserGroupInformation(user="ann"),
        )
        for name in names
    )
    return si.ApplicationRequest(rm_id="rm-1", new=new)


def test_a_client_learns_the_queue(serve: Callable[..., Serving]) -> None:
    rm = Heard()
    with RemoteCore(serve().parts["grpc"].address) as core:
        registration = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
        core.register_resource_manager(registration, rm)
        core.update_application(request("batch", "bach"))
        wait_until(lambda: 2 == len(rm.accepted))
    assert {
        si.AcceptedApplication(application_id="batch", queue="root.batch"),
        si.AcceptedApplication(application_id="bach", queue="root.default", by_last_resort=True),
    } == set(rm.accepted)


def test_a_front_of_a_service_refuses_it(serve: Callable[..., Serving]) -> None:
    with connect(serve().parts["grpc"].address, QUEUES) as s:
        with pytest.raises(QueueNotFound) as caught:
            s.application("etl", queue="root.bach", user="ann")
        assert ("root.batch", "root.default") == caught.value.queues
        app = s.application("etl", queue="root.bach", user="ann", fallback=True)
        assert "root.default" == app.queue


def test_a_service_that_begins_from_its_journal_names_the_queue(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    rm = Heard()
    for life in range(2):
        serving = serve(SchedulerCore(journal=tmp_path))
        with RemoteCore(serving.parts["grpc"].address) as core:
            registration = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
            core.register_resource_manager(registration, rm)
            core.update_application(request("bach"))
            wait_until(lambda life=life: life < len(rm.accepted))
            core.resource_manager_lost("rm-1")
        serving.stop()
    assert ["root.default"] * 2 == [it.queue for it in rm.accepted]


def test_a_portal_of_a_cluster_passes_the_queue_on(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = "{name: work}, {name: default}"
    monkeypatch.setattr(
        hosting, "QUEUES", f"queues: [{{name: root, submitacl: '*', queues: [{leaves}]}}]"
    )
    rm = Heard()
    with portal("default") as (core, _):
        core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1"), rm)
        core.update_application(application("default", "there"))
        core.update_application(request("bach"))
        wait_until(lambda: 2 == len(rm.accepted))
    assert {"there": "root.work", "bach": "root.default"} == {
        it.application_id: it.queue for it in rm.accepted
    }
