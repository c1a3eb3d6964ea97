"""What a queue shows upwards is the highest priority below it, after any change."""

from hypothesis import given
from hypothesis import strategies as st
from written import Written

from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY, Priorities
from yunikorn_actors.planning.model.views import QueueView

PARENTS = ("root.a", "root.a.c", "root.b")
LEAVES = ("root.a.x", "root.a.y", "root.a.c.z", "root.b.x", "root.b.y")
PRIORITIES = st.integers(-2, 2)
OFFSETS = st.sampled_from(["0", "0", "3", "-3"])
POLICIES = st.sampled_from(["default", "default", "fence"])
MOVES = st.lists(
    st.tuples(st.just("ask"), st.sampled_from(LEAVES), PRIORITIES)
    | st.tuples(st.just("withdraw"), st.integers(0, 9))
    | st.tuples(st.just("configure"), st.sampled_from(PARENTS + LEAVES), OFFSETS, POLICIES)
    | st.tuples(st.just("plan"), st.integers(0, 3)),
    max_size=25,
)


def _shown(view: QueueView) -> int:
    """Work it out as the maximum of all that is below."""
    own = [app.priority for app in view.members.values()]
    highest = max([NO_PRIORITY, *own, *(_shown(below) for below in view.below)])
    properties = view.queue.properties
    if highest == NO_PRIORITY:
        return NO_PRIORITY
    if properties.priority_fence:
        return properties.priority_offset
    return highest + properties.priority_offset


@given(MOVES)
def test_a_queue_shows_the_highest_priority_below_it(moves: list[tuple[str, int]]) -> None:
    written = Written("root.default")
    written.node("n1", vcore=4)
    for path in (*PARENTS, *LEAVES):
        written.queue(path, leaf=path in LEAVES)
    for path in LEAVES:
        written.add(path, queue=path)
    waiting: list[tuple[str, str]] = []
    for number, (move, *arguments) in enumerate(moves):
        match move, arguments:
            case "ask", [leaf, priority]:
                written.ask(f"ask-{number}", leaf, priority=priority, vcore=1)
                waiting.append((f"ask-{number}", leaf))
            case "withdraw", [position] if waiting:
                written.withdraw(*waiting.pop(position % len(waiting)))
            case "configure", [path, offset, policy]:
                properties = {"priority.offset": offset, "priority.policy": policy}
                written.reconfigure(path, properties=properties)
                written.planner.measurer.plan(0, 0)
            case "plan", [limit]:
                for proposal in written.plan(limit):
                    written.commit(proposal)
                    waiting.remove((proposal.key, proposal.application_id))
        root = written.planner.model.tree.queues["root"]
        assert root.priority == _shown(root)


@given(st.lists(st.tuples(st.integers(0, 4), PRIORITIES | st.just(NO_PRIORITY)), max_size=30))
def test_counts_say_what_a_maximum_says(changes: list[tuple[int, int]]) -> None:
    priorities, of_each = Priorities(), dict.fromkeys(range(5), NO_PRIORITY)
    for who, priority in changes:
        priorities.change(of_each[who], priority)
        of_each[who] = priority
        assert priorities.highest == max(of_each.values())
