"""What is left for an ask is too little: written down when that begins, and when it ends."""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Ask, Shortage
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.machines.context.work import Partition, Work


def record_shortage(
    work: Work,
    partition: Partition,
    app: Application,
    ask: Ask,
    shortage: Shortage,
    available: Resource,
) -> None:
    if ask.shortage is not shortage:
        work.record(
            partition,
            f.AskShortageChanged(
                application_id=app.id,
                key=ask.spec.key,
                queue=app.queue.path,
                old_shortage=ask.shortage,
                shortage=shortage,
                resource=ask.spec.resource,
                available=available,
                at_ns=work.now_ns,
            ),
        )
