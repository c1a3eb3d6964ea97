"""What a front reports to a core that may have forgotten all of it, or all but the last of it.

It is not known which of the last requests arrived, and which of the last answers were lost. So
everything is reported as it is in the books: applications, nodes with what runs there, and asks
that wait, in the order in which they were made. A core that resumes from its journal compares; to
any other it is new. What has ended comes first: only a core with a journal may know anything of it.
"""

from collections.abc import Iterable
from typing import TypeVar

from yunikorn_actors import si
from yunikorn_actors.front.accounts import Accounts
from yunikorn_actors.front.books import DealStage
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.nodes import Nodes
from yunikorn_actors.front.outbox import Ending, Item

L = TypeVar("L", bound=BaseLease)


def report(accounts: Accounts[L], nodes: Nodes[L], endings: Iterable[Ending]) -> list[Item]:
    """Return all that is to be sent; from now on answers are taken as answers to this."""
    due = [it for it in endings if _is_due(accounts, nodes, it)]
    # Nodes before the deals are looked at: with one that has gone its leases are lost.
    infos = nodes.again()
    asks = sorted(
        (it for it in accounts.deals if it.stage is DealStage.WAITS and it.ask is not None),
        key=lambda deal: deal.number,
    )
    return [*due, *accounts.again(), *infos, *(it.ask for it in asks if it.ask is not None)]


def _is_due(accounts: Accounts[L], nodes: Nodes[L], ending: Ending) -> bool:
    """Whether it may still be unheard, and cannot be taken for the end of what came later."""
    if isinstance(ending, si.NodeInfo):
        return ending.node_id not in nodes.ids
    account = accounts.find(ending.application_id)
    if account is None:
        return True
    if isinstance(ending, si.RemoveApplicationRequest):
        return not account.is_known
    if isinstance(ending, si.AllocationRelease) and ending.uuid:
        return True
    deal = account.by_core_key.get(ending.allocation_key)
    return deal is None or not deal.is_held
