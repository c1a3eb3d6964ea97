"""What a configuration becomes: defaults, names, checksum, and the way through a message."""

import hashlib

import msgspec
import pytest

from yunikorn_actors.config import (
    DEFAULT_TEXT,
    FilterConfig,
    LimitConfig,
    NodeSortConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
    TemplateConfig,
    checksum_of,
    name_warnings,
    parse_config,
)

FULL = """\
partitions:
  - name: DEFAULT
    placementrules:
      - name: Tag
        value: Namespace
        create: true
        filter: {type: Deny, users: [bob], groups: [dev, ops]}
        parent: {name: fixed, value: Root.Tenants}
    preemption: {enabled: false, quotapreemptionenabled: true}
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2, gpu: 0.5}}
    usergroupresolver: {type: os}
    limits: [{limit: all, users: ["*"], maxapplications: 9}]
    queues:
      - name: ROOT
        submitacl: "*"
        properties: {application.sort.policy: fair}
        queues:
          - name: Tenants
            parent: true
            childtemplate:
              maxapplications: 3
              properties: {preemption.delay: 1s, empty: ""}
              resources: {guaranteed: {memory: 0}, max: {memory: 0}}
          - name: prod
            adminacl: bob dev
            submitacl: " ops"
            maxapplications: 10
            resources: {guaranteed: {vcore: 2, memory: 10G}, max: {vcore: 2500m}}
            childtemplate: {properties: {empty: ""}, resources: {guaranteed: {memory: 0}}}
            limits: [{limit: dev, groups: [dev], maxresources: {memory: 1Gi}, maxapplications: 2}]
          - name: closed
            resources: {guaranteed: {gpu: 0}, max: {gpu: 0}}
  - name: Spare
    queues: [{name: a}, {name: b, queues: [{name: c}]}]
"""

EVERYBODY = LimitConfig(description="all", users=("*",), max_applications=9)
FULL_PARTITIONS = (
    PartitionConfig(
        name="default",
        placement_rules=(
            RuleConfig(
                name="tag",
                value="Namespace",
                create=True,
                filter=FilterConfig(type="deny", users=("bob",), groups=("dev", "ops")),
                parent=RuleConfig(name="fixed", value="root.tenants"),
            ),
        ),
        preemption_enabled=False,
        quota_preemption_enabled=True,
        node_sort=NodeSortConfig(policy="binpacking", weights={"vcore": 2.0, "gpu": 0.5}),
        user_group_resolver="os",
        root=QueueConfig(
            name="root",
            parent=True,
            submit_acl="*",
            properties={"application.sort.policy": "fair"},
            limits=(EVERYBODY,),
            children=(
                QueueConfig(
                    name="tenants",
                    parent=True,
                    template=TemplateConfig(
                        max_applications=3,
                        properties={"preemption.delay": "1s"},
                        max={"memory": 0},
                    ),
                ),
                QueueConfig(
                    name="prod",
                    admin_acl="bob dev",
                    submit_acl=" ops",
                    max_applications=10,
                    guaranteed={"vcore": 2000, "memory": 10**10},
                    max={"vcore": 2500},
                    limits=(
                        LimitConfig(
                            description="dev",
                            groups=("dev",),
                            max_resources={"memory": 2**30},
                            max_applications=2,
                        ),
                    ),
                ),
                QueueConfig(name="closed", max={"gpu": 0}),
            ),
        ),
    ),
    PartitionConfig(
        name="Spare",
        placement_rules=(RuleConfig(name="provided"),),
        root=QueueConfig(
            name="root",
            parent=True,
            children=(
                QueueConfig(name="a"),
                QueueConfig(name="b", children=(QueueConfig(name="c"),)),
            ),
        ),
    ),
)


def test_everything_that_can_be_written_arrives() -> None:
    expected = FULL_PARTITIONS
    assert expected == parse_config(FULL).partitions


def test_a_configuration_travels() -> None:
    config = parse_config(FULL)
    packed = msgspec.msgpack.encode(config)
    assert config == msgspec.msgpack.decode(packed, type=SchedulerConfig)


def test_defaults_of_a_partition() -> None:
    expected = PartitionConfig(
        name="default",
        root=QueueConfig(name="root", parent=True),
        placement_rules=(RuleConfig(name="provided"),),
        node_sort=NodeSortConfig(policy="fair", weights={"vcore": 1.0, "memory": 1.0}),
        preemption_enabled=True,
        quota_preemption_enabled=False,
        user_group_resolver="",
    )
    text = "partitions: [{queues: [], usergroupresolver: {type: mine}, nodesortpolicy: {}}]"
    assert (expected,) == parse_config(text).partitions


@pytest.mark.parametrize("text", ["", " ", "\n\n", " \t\n"])
def test_a_blank_text_stands_for_the_built_in_default(text: str) -> None:
    expected = PartitionConfig(
        name="default",
        placement_rules=(RuleConfig(name="tag", value="namespace", create=True),),
        root=QueueConfig(name="root", parent=True, submit_acl="*"),
    )
    assert (expected,) == parse_config(text).partitions
    assert checksum_of(DEFAULT_TEXT) == parse_config(text).checksum


def test_a_leaf_has_neither_children_nor_the_flag() -> None:
    root = parse_config(FULL).partitions[0].root
    expected = [False, False, True, True]
    assert expected == [queue.is_leaf for queue in (root, *root.children)]


STAMP = "checksum: " + "0aF9" * 16
BARE = "partitions: []"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (BARE, BARE),
        (BARE + "\n\n", BARE),
        (BARE + "\n" + STAMP + "\n", BARE + "\n"),
        (STAMP + "\n" + BARE, "\n" + BARE),
        (f"# {STAMP}\n{BARE}\n{STAMP}", f"# \n{BARE}\n"),
        (BARE + "\nchecksum: abc", BARE + "\nchecksum: abc"),
    ],
)
def test_the_checksum_is_that_of_the_text_without_it(text: str, bare: str) -> None:
    expected = hashlib.sha256(bare.encode()).hexdigest().upper()
    assert expected == parse_config(text).checksum


def test_a_name_in_two_places_is_pointed_out() -> None:
    text = """
partitions:
- queues: [{name: p, queues: [{name: a}, {name: Root}]}, {name: q, queues: [{name: A}, {name: b}]}]
- name: two
  queues: [{name: c}]
"""
    expected = (
        "partition default: queue name 'root' stands for root, root.p.root",
        "partition default: queue name 'a' stands for root.p.a, root.q.a",
    )
    assert expected == name_warnings(parse_config(text))


def test_without_such_names_there_is_nothing_to_point_out() -> None:
    expected = ()
    assert expected == name_warnings(parse_config(FULL))
