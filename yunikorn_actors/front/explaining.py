"""Answers the question what has become of an ask: from the books, or from the core."""

from typing import Any

from yunikorn_actors.errors import UnknownAsk
from yunikorn_actors.front.accounts import Accounts
from yunikorn_actors.front.books import Stage
from yunikorn_actors.front.life import Life
from yunikorn_actors.front.past import AskStatus, Past, status
from yunikorn_actors.front.terms import Terms


class Explainer:
    """What is in the books is answered from the books; only of what waits is the core asked."""

    def __init__(self, life: Life, terms: Terms, accounts: Accounts[Any], past: Past) -> None:
        self._life = life
        self._partition = terms.full_partition
        self._accounts = accounts
        self._past = past

    def explain(self, application: str, key: str) -> AskStatus:
        """Ask the core where an ask waits; the lock is not held meanwhile."""
        for _ in range(2):
            with self._life.books():
                known, waits_as = self._known(application, key)
            if known is not None:
                return known
            try:
                why = self._life.core.explain(application, waits_as, partition=self._partition)
            except UnknownAsk:
                continue
            if not why.waits:
                # It was placed a moment ago, as one that is not known was sent a moment ago.
                continue
            return AskStatus(
                application=application, key=key, state="waiting", text=str(why), why=why
            )
        text = f"{key} of {application}: it is on its way to the core, or back from it; ask again"
        return AskStatus(application=application, key=key, state="waiting", text=text)

    def _known(self, application: str, key: str) -> tuple[AskStatus | None, str]:
        """Return what the books say, or as what the core knows the ask that waits."""
        account = self._accounts.find(application)
        entry = None if account is None else account.by_key.get(key)
        if entry is not None and entry.stage is Stage.WAITS:
            return None, entry.core_key
        if entry is not None:
            return status(entry, "placed", f"it runs on {entry.running.node_id}"), ""
        past = self._past.find(application, key)
        if past is None:
            raise UnknownAsk(
                f"nobody asked for {key!r} of {application!r} here, or it is long over"
            )
        return past, ""
