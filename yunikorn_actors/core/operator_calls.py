"""Operator calls: a configuration is loaded, a node drained, a lost resource manager removed."""

from contextlib import suppress

from yunikorn_actors.config import parse_config, warnings_in
from yunikorn_actors.core.driver import Driver
from yunikorn_actors.core.registered_managers import RegisteredManagers
from yunikorn_actors.errors import ConfigError, CoreFailed, CoreStopped
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.rm_events import (
    AdminConfigRefused,
    AdminConfigUpdate,
    AdminNodeUpdate,
)
from yunikorn_actors.policies.registry import Policies

LONGEST_REASON = 2_000
"""Characters of why a configuration was refused that an event tells: the first faults."""


class OperatorCalls:
    def __init__(self, driver: Driver, managers: RegisteredManagers, policies: Policies) -> None:
        self._driver = driver
        self._managers = managers
        self._policies = policies

    def configure(self, text: str, by: str) -> None:
        """Load the administrator's configuration; what is refused changes nothing."""
        try:
            config = parse_config(text, self._policies.names_for(text))
        except ConfigError as error:
            # Refused before the core has heard of it, so it is recorded by a message of its own.
            self._tell_of_refusal(str(error))
            raise
        self._driver.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminConfigUpdate(config=config, by=by, reply_to=reply_to),
            "configuration",
        )
        # Behind the acceptance, as in `RegisteredManagers.configure`.
        self._managers.resolvers.bring_admin(config)
        warned = warnings_in(text, self._policies.names_for(text))
        self._driver.warn(f"configuration of the administrator: {it}" for it in warned)

    def _tell_of_refusal(self, reason: str) -> None:
        """Record a refusal as an event, because readers of events may be far from the caller."""
        with suppress(CoreStopped, CoreFailed), self._driver.afterwards:
            refused = AdminConfigRefused(reason=reason[:LONGEST_REASON])
            self._driver.post(CONTEXT, refused, self._driver.name("configuration"))

    def set_drained(self, partition: str, node_id: str, by: str, *, drained: bool) -> None:
        """Let a node take no new work, or take work again; raise Refused if it does so already."""
        self._driver.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminNodeUpdate(
                partition=partition, node_id=node_id, drained=drained, by=by, reply_to=reply_to
            ),
            "node",
        )

    def unregister_lost(self, rm_id: str, by: str) -> None:
        """Remove everything of a resource manager that is away; one that is not ends by itself."""
        self._managers.unregister_lost(rm_id, by)
