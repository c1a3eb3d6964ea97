"""Resource managers, and which configuration holds for each of them.

The members of a policy group share one configuration: the one that any of them brought, else the
administrator's, else the built-in default. A member that brings another one than its group has is
refused.
"""

from typing import Any

from yunikorn_actors.config import SchedulerConfig, parse_config
from yunikorn_actors.messages.restart import KnownManager, Registered
from yunikorn_actors.messages.rm_events import RMRegistration
from yunikorn_actors.state.facts import SchedulingHeld


class ResourceManager:
    """What Context knows of a registered resource manager."""

    __slots__ = (
        "build_info",
        "callback",
        "capabilities",
        "checksum",
        "extra",
        "extra_config",
        "generation",
        "is_backpressured",
        "is_leaving",
        "is_lost",
        "is_missing",
        "partitions",
        "policy_group",
        "rm_id",
        "version",
    )

    def __init__(self, message: RMRegistration, generation: int) -> None:
        self.rm_id = message.rm_id
        self.version = message.version
        self.policy_group = message.policy_group
        self.build_info = message.build_info | {"rmId": message.rm_id}
        self.extra_config = message.extra_config
        self.extra = message.extra
        self.callback = message.callback
        self.generation = generation
        self.capabilities = message.capabilities
        # Empty until the first reload has reached its partitions.
        self.checksum = ""
        """Of the configuration that is in force."""
        self.partitions: list[str] = []
        self.is_lost = False
        """It was lost, and a timer runs."""
        self.is_backpressured = False
        """Its callback is too far behind with its calls; this ends by itself."""
        self.is_leaving = False
        """Everything of it is being removed: it is a member of no group any more."""
        self.is_missing = False
        """It was registered with a core before this one, and has not come back."""

    @property
    def is_suspended(self) -> bool:
        return self.is_lost or self.is_backpressured

    def suspension(self, at_ns: int) -> SchedulingHeld:
        """Whether anything is decided for it, and if not, why."""
        behind = self.is_backpressured and not self.is_lost
        return SchedulingHeld(held=self.is_suspended, behind=behind, at_ns=at_ns)

    @property
    def _state(self) -> str:
        if self.is_leaving:
            return "Leaving"
        return "Paused" if self.is_lost else "Running"

    def known(self, epochs: dict[str, int]) -> KnownManager:
        """Give what another core needs to know of it."""
        registration = RMRegistration(
            rm_id=self.rm_id,
            version=self.version,
            policy_group=self.policy_group,
            build_info=self.build_info,
            config=None,
            extra_config=self.extra_config,
            extra=self.extra,
            callback=self.callback,
            # No configuration: `Registered.brought` has that of the group, once.
            capabilities=self.capabilities,
            reply_to="",
        )
        return KnownManager(registration=registration, checksum=self.checksum, epochs=epochs)

    def canonical(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "policy_group": self.policy_group,
            "build_info": dict(sorted(self.build_info.items())),
            "extra_config": dict(sorted(self.extra_config.items())),
            "checksum": self.checksum,
            "state": self._state,
            "held_back": self.is_backpressured,
            "partitions": list(self.partitions),
        }


class Registry:
    def __init__(self) -> None:
        self.managers: dict[str, ResourceManager] = {}
        self.admin: SchedulerConfig | None = None
        self.configured: dict[str, SchedulerConfig] = {}
        self._default = parse_config("")
        self._generation = 0
        self.changes = 0
        """How often anything has changed that another core would have to know."""
        self._coming: dict[str, str] = {}
        """Who registers anew, with its group, while its former life is removed."""

    def config_of(self, group: str) -> SchedulerConfig:
        # `or`: a configuration is a Struct and always true.
        return self.configured.get(group) or self.admin or self._default

    def members(self, group: str) -> list[ResourceManager]:
        return [
            manager
            for manager in self.managers.values()
            # One that leaves is in no group: its own reload would bring back what is being removed.
            if manager.policy_group == group and not manager.is_leaving
        ]

    def conflict(self, message: RMRegistration) -> str | None:
        """Say why this registration cannot join its group."""
        brought = self.configured.get(message.policy_group)
        group = message.policy_group
        # Those that register anew are members while their former life goes.
        coming = [rm_id for rm_id, its_group in self._coming.items() if its_group == group]
        others = dict.fromkeys([*(it.rm_id for it in self.members(group)), *coming])
        others.pop(message.rm_id, None)
        # Alone it may bring whatever it likes, and one that brings none takes what the group has.
        if message.config is None or brought is None or not others:
            return None
        if message.config.checksum == brought.checksum:
            return None
        names = ", ".join(others)
        return (
            f"policy group {message.policy_group!r} has another configuration (members: {names}): "
            "bring the same one, bring none, or use another group"
        )

    def expect(self, message: RMRegistration) -> None:
        """Let nobody bring its group another configuration before it is registered."""
        # Its former life is removed in slices, and others may register in between: they must not
        # bring the group a configuration that would refuse this one at the end.
        self._coming[message.rm_id] = message.policy_group
        if message.config is not None:
            self.configured[message.policy_group] = message.config
        self.changes += 1

    def add(self, message: RMRegistration) -> ResourceManager:
        self.changes += 1
        self._coming.pop(message.rm_id, None)
        self._generation += 1
        manager = ResourceManager(message, self._generation)
        self.managers[manager.rm_id] = manager
        if message.config is not None:
            self.configured[manager.policy_group] = message.config
        return manager

    def come_back(self, message: RMRegistration) -> ResourceManager:
        """Register a manager that was missing: with its new words, and its former partitions."""
        # As in any registration `add` gives a new generation, so timers of the former one are
        # stale.
        former = self.managers[message.rm_id]
        self.leave(message.rm_id)
        self.forget(message.rm_id)
        manager = self.add(message)
        manager.partitions, manager.checksum = former.partitions, former.checksum
        return manager

    def forget_queues_of(self, manager: ResourceManager) -> None:
        """Have a manager reloaded, even if its configuration is the same."""
        manager.checksum = ""
        self.changes += 1

    def leave(self, rm_id: str) -> ResourceManager | None:
        """Let it go: its partitions are still there, and it is in no group any more."""
        manager = self.managers.get(rm_id)
        if manager is None:
            return None
        manager.is_leaving = True
        self.changes += 1
        group = manager.policy_group
        # With its last member the configuration goes as well: the next one to use the name starts
        # afresh.
        if not self.members(group) and group not in self._coming.values():
            self.configured.pop(group, None)
        return manager

    def forget(self, rm_id: str) -> None:
        del self.managers[rm_id]
        self.changes += 1

    def registered(self, epochs: dict[str, int], last_epoch: int) -> Registered:
        return Registered(
            managers=tuple(
                [
                    it.known({name: epochs[name] for name in it.partitions})
                    for it in self.managers.values()
                ]
            ),
            admin=self.admin,
            brought=dict(self.configured),
            last_epoch=last_epoch,
            last_generation=self._generation,
        )

    def restore(self, registered: Registered) -> None:
        """Know what the core before this one knew; every resource manager is missing."""
        self.admin, self.configured = registered.admin, dict(registered.brought)
        self._generation = registered.last_generation
        for known in registered.managers:
            # `add` counts generations, and goes on behind the last one of the former core.
            manager = self.add(known.registration)
            manager.checksum, manager.partitions = known.checksum, list(known.epochs)
            # Lost: nothing is decided. Missing: its registration is a return, and no clean slate.
            manager.is_lost = manager.is_missing = True

    def bring_all(self, config: SchedulerConfig) -> None:
        """Bring every group under it that has none of its own."""
        self.changes += 1
        self.admin = config

    def bring(self, group: str, config: SchedulerConfig | None) -> None:
        self.changes += 1
        if config is None:
            self.configured.pop(group, None)
        else:
            self.configured[group] = config
