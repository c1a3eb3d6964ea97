"""A program whose calls depend on what it has heard; kept as it was when the tapes were written."""

from yunikorn_actors import ResourceManagerCallback, si
from yunikorn_actors.lab.user_program import Trial


class Jobs(ResourceManagerCallback):
    def __init__(self, core: si.SchedulerAPI) -> None:
        self.core = core
        self.running: dict[str, si.Allocation] = {}

    def start(self) -> None:
        self.core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="jobs"), self)
        node = si.NodeInfo(
            node_id="n1",
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.parse(vcore=4),
        )
        self.core.update_node(si.NodeRequest(rm_id="jobs", nodes=(node,)))
        app = si.AddApplicationRequest(
            application_id="app", ugi=si.UserGroupInformation(user="u"), tags={"namespace": "q"}
        )
        self.core.update_application(si.ApplicationRequest(rm_id="jobs", new=(app,)))

    def ask(self, key: str) -> None:
        ask = si.AllocationAsk(
            application_id="app", allocation_key=key, resource_ask=si.Resource.parse(vcore=1)
        )
        self.core.update_allocation(si.AllocationRequest(rm_id="jobs", asks=(ask,)))

    def end(self, key: str) -> None:
        runs = self.running.pop(key, None)
        if runs is None:
            gone = si.AllocationAskRelease(application_id="app", allocation_key=key)
            releases = si.AllocationReleasesRequest(allocation_asks_to_release=(gone,))
        else:
            end = si.AllocationRelease(application_id="app", allocation_key=key, uuid=runs.uuid)
            releases = si.AllocationReleasesRequest(allocations_to_release=(end,))
        self.core.update_allocation(si.AllocationRequest(rm_id="jobs", releases=releases))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            self.running[new.allocation_key] = new


def jobs(trial: Trial) -> None:
    """Only what `end` has ended is taken from what runs, which is wrong when it was withdrawn."""
    manager = Jobs(trial.core)
    trial.compare(lambda: {item.uuid: item.node_id for item in manager.running.values()})
    manager.start()
    for key in ("a", "b", "c"):
        manager.ask(key)
    trial.advance(2)
    manager.end("a")
    manager.end("b")
    trial.advance(3)
    assert "c" in manager.running, "c does not run"
