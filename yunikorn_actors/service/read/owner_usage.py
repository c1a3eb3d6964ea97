"""Usage by owner: what users and groups have in use, queue by queue, as YuniKorn shows it."""

from typing import Final, Self

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.service.read.incremental_answers import Each, Pauses, Steps, each
from yunikorn_actors.service.read.rendering import Value, lean, most, used
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.applications import Usage
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import ROOT

_ALWAYS: Final = frozenset({"userName", "groupName", "queues", "queuePath"})


def users(book: Book) -> Steps[list[Value] | Each]:
    shown = yield from Usages.of(book)
    return each(
        shown.user, [name for name, paths in sorted(book.state.users.items()) if _shows(paths)]
    )


def groups(book: Book) -> Steps[list[Value] | Each]:
    shown = yield from Usages.of(book)
    return each(
        shown.group, [name for name, paths in sorted(book.state.groups.items()) if _shows(paths)]
    )


def user(book: Book, name: str) -> Steps[Value]:
    shown = yield from Usages.of(book)
    return shown.user(name)


def group(book: Book, name: str) -> Steps[Value]:
    shown = yield from Usages.of(book)
    return shown.group(name)


def _shows(paths: dict[str, Usage]) -> bool:
    return ROOT in paths


class Usages:
    """What belongs to several users and groups is worked out once."""

    def __init__(self, book: Book) -> None:
        self._state = book.state
        self._ids: dict[int, str] = {}
        """Of applications, by serial."""
        self._groups: dict[str, dict[str, str]] = {}
        """By user, the group for which each application counts."""
        self._members: dict[str, list[str]] = {}
        """By group, its applications."""

    @classmethod
    def of(cls, book: Book) -> "Steps[Self]":
        self = cls(book)
        pauses = Pauses()
        for app in book.state.applications.values():
            self._ids[app.serial] = app.id
            # Only applications that a group's limit counts have a group.
            if app.group:
                self._groups.setdefault(app.spec.user, {})[app.id] = app.group
                self._members.setdefault(app.group, []).append(app.id)
            if pauses.due:
                yield
        return self

    def user(self, name: str) -> Value:
        value = {
            "userName": name,
            "groups": self._groups.get(name, {}),
            "queues": self._tree(name, self._state.users[name], of_group=False),
        }
        return lean(value, _ALWAYS)

    def group(self, name: str) -> Value:
        value = {
            "groupName": name,
            "applications": self._members.get(name, []),
            "queues": self._tree(name, self._state.groups[name], of_group=True),
        }
        return lean(value, _ALWAYS)

    def _tree(self, name: str, usages: dict[str, Usage], *, of_group: bool) -> Value:
        return _Tree(self._state, self._ids, name, usages, of_group=of_group).queue(ROOT)


class _Tree:
    def __init__(
        self,
        state: PartitionState,
        ids: dict[int, str],
        owner: str,
        usages: dict[str, Usage],
        *,
        of_group: bool,
    ) -> None:
        self._state = state
        self._ids = ids
        self._owner = owner
        self._usages = usages
        self._of_group = of_group
        self._children: dict[str, list[str]] = {}
        for path in sorted(usages):
            # Sorted, so a path comes before what stands below it.
            self._children.setdefault(path.rpartition(".")[0], []).append(path)

    def queue(self, path: str) -> Value:
        usage, limit = self._usages[path], self._limit(path)
        value = {
            "queuePath": path,
            "resourceUsage": used(usage.amounts),
            "runningApplications": [
                self._ids[serial] for serial in usage.running if serial in self._ids
            ],
            "maxResources": {} if limit is None else most(limit.max_resources),
            "maxApplications": 0 if limit is None else limit.max_applications,
            "children": each(self.queue, self._children.get(path, [])),
        }
        return lean(value, _ALWAYS)

    def _limit(self, path: str) -> LimitConfig | None:
        queue = self._state.queues.get(path)
        if queue is None:
            return None
        limits = queue.limits
        return limits.for_group(self._owner) if self._of_group else limits.for_user(self._owner)
