"""Answers the question what has become of an ask: from the books, or from the core."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from yunikorn_actors.errors import ConnectionLost, UnknownAsk
from yunikorn_actors.front.accounts import Accounts
from yunikorn_actors.front.books import DealStage
from yunikorn_actors.front.callers import Callers
from yunikorn_actors.front.door import Door
from yunikorn_actors.front.past import AskStatus, Past, status
from yunikorn_actors.front.terms import Terms
from yunikorn_actors.si.form import check_names

PATIENCE_S: Final = 1.0
"""So long an error waits for the reason that it tells, and no longer."""
UNSAID: Final = "the core has not said what it waits for"


class Inquiry:
    """What is in the books is answered from the books; only of what waits is the core asked."""

    def __init__(
        self, door: Door, terms: Terms, accounts: Accounts[Any], past: Past, callers: Callers
    ) -> None:
        self._callers = callers
        self._door = door
        self._partition = terms.full_partition
        self._accounts = accounts
        self._past = past

    def explain(self, application: str, key: str) -> AskStatus:
        """Ask the core where an ask waits; the lock is not held meanwhile."""
        check_names("explain", application=application, key=key)
        for _ in range(2):
            with self._door:
                known, waits_as = self._known(application, key)
            if known is not None:
                return known
            try:
                why = self._door.core.explain(application, waits_as, partition=self._partition)
            except UnknownAsk:
                continue
            except ConnectionLost as error:
                text = f"{key} of {application}: it waits; the reason is not known: {error}"
                return AskStatus(application=application, key=key, state="waiting", text=text)
            if not why.waits:
                # It was placed a moment ago, as one that is not known was sent a moment ago.
                continue
            return AskStatus(
                application=application, key=key, state="waiting", text=str(why), why=why
            )
        text = f"{key} of {application}: it is on its way to the core, or back from it; ask again"
        return AskStatus(application=application, key=key, state="waiting", text=text)

    def reason(self, application: str, key: str, within_s: float) -> str:
        """Say what an ask waits for, for an error that must not come much later for it."""
        said: Future[str] = Future()

        def ask() -> None:
            try:
                status = self.explain(application, key)
            except Exception:  # noqa: BLE001 - the edge: whatever it is, there is no reason to tell
                said.set_result(UNSAID)
            else:
                said.set_result(status.text if status.why is None else status.why.reason)

        self._callers.call(ask)
        try:
            return said.result(within_s)
        except TimeoutError:
            return UNSAID

    def _known(self, application: str, key: str) -> tuple[AskStatus | None, str]:
        """Return what the books say, or as what the core knows the ask that waits."""
        account = self._accounts.find(application)
        deal = None if account is None else account.by_key.get(key)
        if deal is not None and deal.stage is DealStage.WAITS:
            return None, deal.core_key
        if deal is not None:
            return status(deal, "placed", f"it runs on {deal.running.node_id}"), ""
        past = self._past.find(application, key)
        if past is None:
            raise UnknownAsk(
                f"nobody asked for {key!r} of {application!r} here, or it is long over"
                f"{self._counted(application, key)}"
            )
        return past, ""

    def _counted(self, application: str, key: str) -> str:
        """Point out the keys of an ask that was made with `count`."""
        account = self._accounts.find(application)
        mine: Mapping[str, object] = {} if account is None else account.by_key
        number = 0
        while (one := f"{key}-{number + 1}") in mine or self._past.find(application, one):
            number += 1
        if not number:
            return ""
        others = f", or another of its {number} keys to '{key}-{number}'" if number > 1 else ""
        return f"; it was asked with count=: explain '{key}-1'{others}"
