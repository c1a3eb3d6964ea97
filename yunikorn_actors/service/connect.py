"""The front door to a scheduler in another process."""

from pathlib import Path

from yunikorn_actors import si
from yunikorn_actors.front import requests
from yunikorn_actors.front.scheduler import Scheduler
from yunikorn_actors.front.written import Queues
from yunikorn_actors.service.remote import RemoteCore


def connect(
    address: str = "127.0.0.1:3333",
    queues: Queues | None = None,
    *,
    token: str = "",
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    grace: float = requests.GRACE_S,
    callback: si.ResourceManagerCallback | None = None,
    rm_id: str = "rm-1",
    partition: str = "",
) -> Scheduler:
    """Make a `Scheduler` whose core is served by `yunikorn-actors serve` at this address.

    ```python
    with connect("127.0.0.1:3333") as s:
        s.add_node("node-1", vcore=16, memory="64Gi")
    ```

    - `queues`: as for `Scheduler`; an empty text takes the configuration of the service.
    - `token`, `ca`: what the service wants to be shown, and the file of the certificate to trust.
    - `cert`, `key`: the files of the program's own certificate and its key, where the service wants
      one.
    - `rm_id`: two programs at one service need different ones: who registers under the id of
      another takes its place.

    When it is closed, its nodes and applications leave the service. `fits` has the time that the
    settings of the service give, which is a second.
    """
    core = RemoteCore(address, token=token, ca=ca, cert=cert, key=key)
    return Scheduler(
        queues, grace=grace, callback=callback, core=core, rm_id=rm_id, partition=partition
    )
