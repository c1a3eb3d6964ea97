"""What a cluster makes of a run: requests in parts, and what it would report to another core."""

from copy import deepcopy
from typing import Any, Final

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import RM_PROXY, Delivery, is_manager, manager_of
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.service.cluster.recovery_report import RecoveryReport
from yunikorn_actors.service.cluster.split import names_in, split

_REQUESTS: Final = (rm.AllocationsRequested, rm.ApplicationsRequested, rm.NodesRequested)
_RESPONSES: Final = (c.CallUpdateAllocation, c.CallUpdateApplication, c.CallUpdateNode)


class Reported(Oracle):
    """Keeps what it has made, for those who compare runs; what is wrong with it others judge."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self._reports: dict[str, RecoveryReport] = {}
        self._homes: dict[str, tuple[str, ...]] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message, mailbox = delivery.message, delivery.mailbox
        if mailbox == RM_PROXY and isinstance(message, rm.RegistrationRequested):
            whose = message.request.rm_id
            self._reports[whose] = RecoveryReport(whose)
            self._homes[whose] = names_in(message.request.config, simulator.topology.policies)
        elif mailbox == RM_PROXY and isinstance(message, _REQUESTS):
            self._send(message.request)
        elif isinstance(message, CoreRestored):
            self._reports.clear()
        elif isinstance(message, _RESPONSES) and is_manager(mailbox):
            report = self._reports.get(manager_of(mailbox))
            if report is not None:
                self.made.append(report.news(message.response))
        if simulator.is_at_rest:
            for report in self._reports.values():
                report.handled(report.sent_count)

    def _send(self, request: Any) -> None:  # noqa: ANN401 - of any kind
        report = self._reports.get(request.rm_id)
        if report is not None:
            self.made.append(split(request, self._homes[request.rm_id]))
            report.sent(request)

    def recoveries(self) -> dict[str, Any]:
        """Return what each resource manager's portal would report to another core now."""
        return {it: deepcopy(report).recover() for it, report in self._reports.items()}
