"""Where queues stand among their siblings: those with something to try, in order.

Only the path of a queue that has changed moves to its new place.
"""

from bisect import bisect_left, insort

from yunikorn_actors.planning.model.views import QueueView


def show(view: QueueView) -> None:
    """The queue has something to try again; so have its ancestors."""
    for level in view.lineage[:-1]:
        # An ancestor that is shown has ancestors that are shown: so far up and no further.
        if level.entry is not None:
            return
        level.entry = (level.key(), level)
        assert level.parent is not None
        insort(level.parent.children, level.entry)


def hide(view: QueueView) -> None:
    for level in view.lineage[:-1]:
        if level.open_lanes or level.children:
            return
        parent = level.parent
        assert parent is not None
        assert level.entry is not None
        del parent.children[bisect_left(parent.children, level.entry)]
        level.entry = None


def rekey(view: QueueView) -> None:
    """The amounts of this queue changed: it and its ancestors find their new places."""
    for level in view.lineage[:-1]:
        entry = level.entry
        if entry is None:
            continue
        parent = level.parent
        assert parent is not None
        children = parent.children
        level.entry = new = (level.key(), level)
        # It has often been the first: that is where the next ask is looked for.
        place = 0 if children[0] is entry else bisect_left(children, entry)
        del children[place]
        # Where queues take turns, who was served stands behind all others now. To search the place
        # would look at entries that nobody has touched for long, and costs more than the rest.
        if not children or children[-1] < new:
            children.append(new)
        else:
            insort(children, new)


def export_priority(view: QueueView) -> None:
    """The priority of what is below changed; each queue up the path shows it to the next."""
    for level in view.lineage:
        priority = level.exported_priority()
        # Nothing above can have changed: it sees this queue by this number alone.
        if priority == level.priority:
            return
        if level.parent is not None:
            level.parent.priorities.change(level.priority, priority)
        level.priority = priority
