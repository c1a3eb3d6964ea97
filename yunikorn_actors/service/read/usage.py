"""What users and groups have in use, queue by queue, as YuniKorn's REST interface shows it."""

from collections.abc import Iterator
from typing import Final

from yunikorn_actors.domain.config import LimitConfig
from yunikorn_actors.domain.queue import ROOT
from yunikorn_actors.domain.user import Usage
from yunikorn_actors.service.read.book import Book
from yunikorn_actors.service.read.values import Value, lean, most, used

_ALWAYS: Final = frozenset({"userName", "groupName", "queues", "queuePath"})


def users(book: Book) -> list[Value]:
    names = [name for name, paths in sorted(book.state.users.items()) if _shows(paths)]
    return [user(book, name) for name in names]


def groups(book: Book) -> list[Value]:
    names = [name for name, paths in sorted(book.state.groups.items()) if _shows(paths)]
    return [group(book, name) for name in names]


def _shows(paths: dict[str, Usage]) -> bool:
    return ROOT in paths


def user(book: Book, name: str) -> Value:
    own = [app for app in book.state.applications.values() if app.spec.user == name]
    value = {
        "userName": name,
        "groups": {app.id: app.group for app in own if app.group},
        "queues": _Tree(book, name, book.state.users[name], of_group=False).queue(ROOT),
    }
    return lean(value, _ALWAYS)


def group(book: Book, name: str) -> Value:
    apps = book.state.applications.values()
    value = {
        "groupName": name,
        "applications": [app.id for app in apps if app.group == name],
        "queues": _Tree(book, name, book.state.groups[name], of_group=True).queue(ROOT),
    }
    return lean(value, _ALWAYS)


class _Tree:
    def __init__(self, book: Book, owner: str, usages: dict[str, Usage], *, of_group: bool) -> None:
        self._state = book.state
        self._ids = {app.serial: app.id for app in book.state.applications.values()}
        self._owner = owner
        self._usages = usages
        self._of_group = of_group

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
            "children": [self.queue(child) for child in self._below(path)],
        }
        return lean(value, _ALWAYS)

    def _below(self, path: str) -> Iterator[str]:
        return (it for it in sorted(self._usages) if it.rpartition(".")[0] == path)

    def _limit(self, path: str) -> LimitConfig | None:
        queue = self._state.queues.get(path)
        if queue is None:
            return None
        limits = queue.limits
        return limits.for_group(self._owner) if self._of_group else limits.for_user(self._owner)
