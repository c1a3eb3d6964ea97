"""A resource manager that hears how its containers are doing."""

from support import Recorder

from yunikorn_actors import si


class Listening(Recorder):
    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.heard.append(("container", request.allocation_key, request.state.name))
