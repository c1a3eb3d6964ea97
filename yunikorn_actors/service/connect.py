"""The front door to a scheduler in another process."""

from pathlib import Path

from yunikorn_actors import si
from yunikorn_actors.front import arguments
from yunikorn_actors.front.arguments import Queues
from yunikorn_actors.front.blocking import Scheduler
from yunikorn_actors.service.reconnecting import Reconnecting, read_give_up_after
from yunikorn_actors.service.remote import RemoteCore, Token


def connect(
    address: str = "127.0.0.1:3333",
    queues: Queues | None = None,
    *,
    token: Token = "",
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    wait: float = 0.0,
    give_up_after: float | None = None,
    grace: float = arguments.GRACE_S,
    callback: si.ResourceManagerCallback | None = None,
    rm_id: str = "rm-1",
    partition: str = "",
) -> Scheduler:
    """Make a `Scheduler` whose core is served by `yunikorn-actors serve` at this address.

    ```python
    with connect("127.0.0.1:3333") as s:
        s.add_node("node-1", vcore=16, memory="64Gi")
    ```

    - `queues`: as for `Scheduler`, for this program alone. Without it the configuration of the
      service holds (`serve --config`), or one open queue, `root.default`, if it has none.
    - `token`, `ca`: what the service wants to be shown, and the file of the certificate to trust. A
      function in place of a token is called for each connection, so that the token may change.
    - `cert`, `key`: the files of the program's own certificate and its key, where the service wants
      one.
    - `rm_id`: two programs at one service need different ones: who registers under the id of
      another takes its place.

    - `wait`: if no service answers, try for so many seconds; otherwise that is `ConnectionLost`
      at once.
    - `give_up_after`: if the connection breaks it is made again, with everything that there is, and
      leases stay meanwhile. After so many seconds without one all of it is lost; 0 is at once.
      `connection` of the scheduler has the state.

    When it is closed, its nodes and applications leave the service. `fits` has the time that the
    settings of the service give, which is a second.
    """
    core = RemoteCore(address, token=token, ca=ca, cert=cert, key=key, wait=wait)
    core.default_config = arguments.OPEN_QUEUE if queues is None else None
    patience = read_give_up_after(give_up_after)
    scheduler = Scheduler(
        queues, grace=grace, callback=callback, core=core, rm_id=rm_id, partition=partition
    )
    if patience:
        Reconnecting(core, scheduler._operations, patience)
    return scheduler
