"""A core in another process, with the record of what its resource manager was notified of.

The record is that of the simulator and of scenarios (`checks/rm_record.py`). What lies between the
two processes (encoding, streams, windows) is judged with the core.
"""

import threading
import time
from typing import Final

from yunikorn_actors import RemoteCore, si
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.core.entry import Update
from yunikorn_actors.core.registered_managers import overrides
from yunikorn_actors.scenario.recorded_core import Recorded
from yunikorn_actors.values.ids import partition_name

_PAUSE_S: Final = 0.02
_Running = tuple[str, str, str]
"""Application, key and node."""


class RecordedRemote(RemoteCore):
    """Serves one resource manager, which registers once."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._note = threading.Lock()
        self._faults: list[str] = []
        self._record = RmRecord("")

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        takes_states = overrides(callback, "update_container_scheduling_state")
        self._record = RmRecord(request.rm_id, takes_states=takes_states)
        return super().register_resource_manager(request, Recorded(self, callback))

    def submit_checked(self, request: Update) -> None:
        with self._note:
            self._record.requested(request)
        super().submit_checked(request)

    def notified(self, _: str, response: object) -> None:
        with self._note:
            self._faults.extend(self._record.notified(response))

    # -- the record and the truth

    def differences(self, patience_s: float) -> list[str]:
        """Say what is wrong with what came, or with what runs; wait as long for what is on its way.

        The core does not hand out its state as it is, so that is compared with its dump.
        """
        deadline = time.monotonic() + patience_s
        while not self._faults:
            found = self._compared()
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(_PAUSE_S)
        return self._faults

    def _compared(self) -> list[str]:
        core = {
            it["uuid"]: (id_, it["key"], it["node"])
            for name, partition in self.state_dump()["partitions"].items()
            if name == partition_name(self._record.rm_id, "")
            for id_, application in partition["applications"].items()
            for it in application["allocations"]
        }
        with self._note:
            record = {
                uuid: (it.application_id, it.key, it.node_id)
                for uuid, it in self._record.running.items()
            }
        return [
            self._difference(uuid, record.get(uuid), core.get(uuid))
            for uuid in {**record, **core}
            if record.get(uuid) != core.get(uuid)
        ]

    def _difference(self, uuid: str, known: _Running | None, truth: _Running | None) -> str:
        rm_id = self._record.rm_id
        if known is None:
            return f"G16: the core has {uuid} {truth}, and {rm_id} was not notified of it"
        if truth is None:
            return f"G16: for {rm_id} {uuid} {known} runs, and the core does not have it"
        return f"G16: {rm_id} was notified of {uuid} as {known}, and it is {truth}"
