"""Why no queue will do: which of the possible reasons it was is said, and about which queue."""

import pytest
from support import APP, Lab

QUEUES = """
partitions:
- name: default
  placementrules: RULES
  queues:
  - name: root
    queues:
    - name: open
      submitacl: "*"
    - name: closed
      submitacl: "ann,carl ops"
      queues:
      - {name: deep, adminacl: "zoe"}
    - {name: nobody}
    - {name: crowd, submitacl: "CROWD"}
    - {name: teams, submitacl: "*", queues: [{name: one}]}
""".replace("CROWD", ",".join(f"u{number}" for number in range(12)))
PROVIDED = "[{name: provided}]"


def _closed(queue: str, permitted: str) -> str:
    return f"user 'bob' may not submit to queue {queue}: {permitted}"


BEGIN = "failed to place application app-1: application rejected: no placement rule matched: "
CLOSED = "permitted are users ann, carl and groups ops"
MISSING_PARENT = (
    "[{name: user, create: true, parent: {name: fixed, value: root.gone}}, {name: provided}]"
)


@pytest.mark.parametrize(
    ("rules", "queue", "words"),
    [
        (PROVIDED, "root.opne", "there is no queue root.opne"),
        (PROVIDED, "root.closed.more", "there is no queue root.closed.more"),
        (PROVIDED, "root.teams", "queue root.teams is a parent, so name a leaf below it"),
        (PROVIDED, "root.closed", f"user 'bob' may not submit to queue root.closed: {CLOSED}"),
        (
            PROVIDED,
            "root.closed.deep",
            _closed("root.closed.deep", "permitted are users ann, carl, zoe and groups ops"),
        ),
        (
            PROVIDED,
            "root.nobody",
            "user 'bob' may not submit to queue root.nobody: permitted are no users and no groups",
        ),
        (
            PROVIDED,
            "root.crowd",
            _closed(
                "root.crowd",
                "permitted are users u0, u1, u10, u11, u2, u3, u4, u5, u6, u7 and 2 more",
            ),
        ),
        (
            "[{name: provided, create: true}]",
            "root.closed.new",
            f"user 'bob' may not submit to queue root.closed.new: {CLOSED}",
        ),
        (PROVIDED, "root.@recovery@", "queue root.@recovery@ takes recovered work only"),
        (
            "[{name: tag, value: namespace, create: true}]",
            "root.open",
            "no rule names a queue for it (asked for 'root.open')",
        ),
        (
            MISSING_PARENT,
            "root.opne",
            "there is no queue root.gone; there is no queue root.opne",
        ),
        ("[{name: provided}, {name: provided}]", "root.x", "there is no queue root.x"),
    ],
)
def test_a_rejection_says_what_was_the_matter(rules: str, queue: str, words: str) -> None:
    lab = Lab(config=QUEUES.replace("RULES", rules))
    lab.submit(APP, queue=queue)
    lab.settle()
    assert [(APP, BEGIN + words)] == lab.rm.told("application")


def test_a_queue_that_drains_is_said_to() -> None:
    lab = Lab(config=QUEUES.replace("RULES", PROVIDED))
    lab.submit("other", queue="root.open")
    lab.settle()
    lab.configure(QUEUES.replace("RULES", PROVIDED).replace("name: open", "name: other"))
    lab.submit(APP, queue="root.open")
    lab.settle()
    assert (APP, f"{BEGIN}queue root.open is draining") == lab.rm.told("application")[-1]


def test_the_queue_that_takes_what_no_rule_places_is_named_as_well() -> None:
    lab = Lab(config=QUEUES.replace("RULES", PROVIDED).replace("name: nobody", "name: default"))
    lab.submit(APP, queue="root.opne")
    lab.settle()
    words = (
        "there is no queue root.opne; user 'bob' may not submit to queue root.default: "
        "permitted are no users and no groups"
    )
    assert [(APP, BEGIN + words)] == lab.rm.told("application")


FILTERED = "[{name: provided, filter: FILTER}, {name: fixed, value: root.teams.one}]"
SOMEWHERE, ELSEWHERE = "root.open", "root.teams.one"


@pytest.mark.parametrize(
    ("filter_", "queue"),
    [
        ("{type: allow}", SOMEWHERE),
        ("{type: deny}", ELSEWHERE),
        ("{type: allow, users: [bob]}", SOMEWHERE),
        ("{type: allow, users: [ann, carl]}", ELSEWHERE),
        ("{type: deny, users: [ann, bob]}", ELSEWHERE),
        ("{type: deny, groups: [ops]}", SOMEWHERE),
        ('{type: allow, users: ["o"]}', ELSEWHERE),
        ('{type: allow, users: ["^b.b$"]}', SOMEWHERE),
        ('{type: allow, groups: ["d[eo]v"]}', SOMEWHERE),
        ('{type: deny, groups: ["^de"]}', ELSEWHERE),
    ],
)
def test_a_filter_lets_a_rule_serve_some_and_not_others(filter_: str, queue: str) -> None:
    """Bob is of the group dev. Only one entry by itself, with signs that say so, is a pattern."""
    lab = Lab(config=QUEUES.replace("RULES", FILTERED.replace("FILTER", filter_)))
    lab.submit(APP, queue=SOMEWHERE, groups=("dev",))
    lab.settle()
    assert queue == lab.state.applications[APP].queue.path


@pytest.mark.parametrize(
    ("rules", "queue", "words"),
    [
        (
            "[{name: user, create: true, parent: {name: provided}}]",
            "root.open",
            "parent rule returned a leaf queue: root.open",
        ),
        (
            "[{name: provided, create: true}]",
            "root.open.deeper",
            "creation of queue root.open.deeper failed parent is already a leaf: root.open",
        ),
        (
            "[{name: provided, create: true}]",
            "root.@recovery@.mine",
            "creation of queue root.@recovery@.mine failed: the recovery queue cannot be asked for",
        ),
        (
            "[{name: provided, create: true}]",
            "root.teams.@Recovery@",
            "creation of queue root.teams.@recovery@ failed: the recovery queue cannot be asked for",
        ),
        (
            "[{name: provided, create: true}]",
            "root.teams.a b",
            "rule provided gives an invalid queue name 'a b': use letters",
        ),
    ],
)
def test_a_queue_that_cannot_be_made_is_not(rules: str, queue: str, words: str) -> None:
    config = QUEUES.replace("RULES", rules).replace(
        "name: root\n", 'name: root\n    submitacl: "*"\n'
    )
    lab = Lab(config=config)
    before = set(lab.state.queues)
    lab.submit(APP, queue=queue)
    lab.settle()
    ((_, said),) = lab.rm.told("application")
    assert words in said
    assert before == set(lab.state.queues)


def test_nothing_is_made_below_a_queue_that_drains() -> None:
    rules = "[{name: provided, create: true}]"
    lab = Lab(config=QUEUES.replace("RULES", rules))
    lab.submit("other", queue="root.teams.one")
    lab.settle()
    lab.configure(QUEUES.replace("RULES", rules).replace("name: teams", "name: crews"))
    lab.submit(APP, queue="root.teams.two")
    lab.settle()
    assert "failed: root.teams is draining" in lab.rm.told("application")[-1][1]
