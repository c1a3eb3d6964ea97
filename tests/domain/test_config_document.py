"""The text of a configuration: strict YAML, faults with their line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.config import ConfigError, SchedulerConfig, parse_config

VALID = """\
partitions:
  - name: default
    placementrules:
      - {name: provided, create: false}
      - name: tag
        value: namespace
        create: true
        filter: {type: allow, users: ["^b.*"], groups: [dev, ops]}
        parent: {name: fixed, value: root.tenants}
    preemption: {enabled: true, quotapreemptionenabled: false}
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2.0, memory: 1}}
    usergroupresolver: {type: os}
    queues:
      - name: root
        submitacl: "*"
        maxapplications: 50
        queues:
          - name: tenants
            parent: true
            maxapplications: 20
            properties: {application.sort.policy: fair, priority.offset: 5}
            childtemplate:
              maxapplications: 3
              resources: {max: {memory: 30}}
          - name: prod
            adminacl: bob dev
            maxapplications: 10
            resources: {guaranteed: {vcore: 2, memory: 10G}, max: {vcore: 2500m}}
            limits:
              - {limit: dev, groups: [dev], maxresources: {memory: 1Gi}, maxapplications: 2}
              - {limit: all, users: [bob, "*"], maxapplications: 1}
"""


def faults_of(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    return [(fault.line, fault.path, fault.what) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "line", "path", "words"),
    [
        ("partitions:\n  - nam: x\n", 2, "partitions[0]", "unknown key 'nam'"),
        ("partition: []\n", 1, "document", "unknown key 'partition'"),
        ("partitions:\n- queues:\n  - name: root\n    Parent: true\n", 4, "partitions[0].queues[0]", "unknown key 'Parent'"),
        ("partitions:\n- statedumpfilepath: x\n", 2, "partitions[0]", "unknown key 'statedumpfilepath'"),
        ("partitions:\n- name: a\n  name: b\n", 3, "partitions[0]", "duplicate key 'name'"),
        ("partitions:\n  name: a\n", 2, "partitions", "a mapping where a list is expected"),
        ("partitions: all\n", 1, "partitions", "'all' where a list is expected"),
        ("partitions:\n- default\n", 2, "partitions[0]", "'default' where a mapping is expected"),
        ("just words\n", 1, "document", "'just words' where a mapping is expected"),
        ("- 1\n", 1, "document", "a list where a mapping is expected"),
        ("partitions:\n- name: [a]\n", 2, "partitions[0].name", "a list where a text is expected"),
        ("partitions:\n- preemption: {enabled: 1}\n", 2, "partitions[0].preemption.enabled", "'1' where true or false is expected"),
        ("partitions:\n- preemption: {enabled: 'true'}\n", 2, "partitions[0].preemption.enabled", "'true' where true or false is expected"),
        ("partitions:\n- nodesortpolicy: fair\n", 2, "partitions[0].nodesortpolicy", "'fair' where a mapping is expected"),
        ("partitions:\n- nodesortpolicy:\n    resourceweights: {vcore: heavy}\n", 3, "partitions[0].nodesortpolicy.resourceweights.vcore", "'heavy' where a number is expected"),
        ("partitions:\n- nodesortpolicy: {resourceweights: {vcore: .nan}}\n", 2, "partitions[0].nodesortpolicy.resourceweights.vcore", "where a number is expected"),
        ("partitions:\n- nodesortpolicy: {resourceweights: {vcore: 1e999}}\n", 2, "partitions[0].nodesortpolicy.resourceweights.vcore", "where a number is expected"),
        ("partitions:\n- queues: [{maxapplications: -1}]\n", 2, "partitions[0].queues[0].maxapplications", "'-1' where a whole number"),
        ("partitions:\n- queues: [{maxapplications: 1.5}]\n", 2, "partitions[0].queues[0].maxapplications", "'1.5' where a whole number"),
        ("partitions:\n- queues: [{maxapplications: '5'}]\n", 2, "partitions[0].queues[0].maxapplications", "'5' where a whole number"),
        ("partitions:\n- queues: [{maxapplications: 010}]\n", 2, "partitions[0].queues[0].maxapplications", "'010' where a whole number"),
        ("partitions:\n- queues: [{maxapplications: 18446744073709551616}]\n", 2, "partitions[0].queues[0].maxapplications", "where a whole number"),
        ("partitions:\n- queues:\n  - resources: {max: 5}\n", 3, "partitions[0].queues[0].resources.max", "'5' where a mapping is expected"),
        ("partitions:\n- queues:\n  - resources: {max: {memory: [1]}}\n", 3, "partitions[0].queues[0].resources.max.memory", "a list where a text is expected"),
        ("partitions:\n- limits: [{users: bob}]\n", 2, "partitions[0].limits[0].users", "'bob' where a list is expected"),
        ("partitions:\n- {[a]: b}\n", 2, "partitions[0]", "a list where a single text as the key is expected"),
        ("partitions:\n- <<: {name: b}\n", 2, "partitions[0]", "unknown key '<<'"),
        ("partitions: &all []\n", 1, "document", "anchors and aliases are not allowed"),
        ("partitions:\n- *all\n", 2, "document", "anchors and aliases are not allowed"),
        ("partitions:\n- name: !!python/name:os.system x\n", 2, "document", "tag tag:yaml.org,2002:python/name:os.system is not allowed"),
        ("partitions: !mine []\n", 1, "document", "tag !mine is not allowed"),
        ("a: 1\nb: [\n", 3, "document", "no YAML"),
        ("a: 1\nb: c: d\n", 2, "document", "no YAML"),
        ("partitions: []\n]\n", 2, "document", "no YAML"),
        ("a: 1\nb: \x00\n", 2, "document", "no YAML"),
        ('a: 1\nb: "\\UFFFFFFFF"\n', 2, "document", "no YAML"),
        ('a: 1\nb: "\\ud800"\n', 2, "document", "half a surrogate pair"),
        ("a:\n" + "[" * 100, 2, "document", "nesting deeper than 64 levels"),
        ("- " * 100, 1, "document", "nesting deeper than 64 levels"),
    ],
)  # fmt: skip
def test_a_text_that_is_refused(text: str, line: int, path: str, words: str) -> None:
    [(found_line, found_path, what)] = faults_of(text)
    assert (line, path) == (found_line, found_path)
    assert words in what


def test_an_unknown_key_is_answered_with_the_allowed_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("partitions:\n- preemption:\n    enable: true\n")
    expected = (
        "line 3: partitions[0].preemption: unknown key 'enable' "
        "(allowed here: enabled, quotapreemptionenabled)"
    )
    assert expected == str(caught.value)


def test_all_faults_of_a_document_are_told_one_per_line() -> None:
    text = "partitions:\n- nam: x\n  queue: []\n  preemption: {enabled: maybe}\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    expected = ["line 2", "line 3", "line 4"]
    assert expected == [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert expected == [f"line {fault.line}" for fault in caught.value.faults]


@pytest.mark.parametrize(
    "text", ["{}", "? {}\n: 1", "partitions: {}", "partitions: [{{name: '{} ', queues: 7}}]"]
)
def test_a_long_value_is_not_told_whole(text: str) -> None:
    """The reason goes into answers, the log, an event and the journal."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text.format("long" * 10_000))
    assert len(str(caught.value)) < 2_000


def test_a_text_of_nothing_but_faults_gets_a_bounded_answer() -> None:
    text = "".join(f"key-{number}: x\n" for number in range(500))
    expected = 100
    assert expected == len(faults_of(text))


def test_a_text_may_have_4_mib() -> None:
    filler = "# " + "x" * (4 * 1024 * 1024 - 3) + "\n"
    assert not parse_config(filler).partitions
    expected = [(1, "document", "text larger than 4194304 bytes")]
    assert expected == faults_of(filler + "#")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "partitions: []",
        "partitions:",
        "# nothing yet",
        "~",
        "--- {}",
        "{}\n---\n[",
        "checksum: abc",
    ],
)
def test_no_partition_is_no_fault_and_only_the_first_document_counts(text: str) -> None:
    expected = ()
    assert expected == parse_config(text).partitions


def test_single_values_are_taken_as_their_text() -> None:
    text = """
partitions:
  - queues:
      - name: 12
        properties: {a: 1, b: 1.50, c: true, d: , e: 0x1F, f: 2020-01-01, g: !!str 7}
        resources: {max: {memory: 0010}}
"""
    [queue] = parse_config(text).partitions[0].root.children
    expected = {
        "a": "1",
        "b": "1.50",
        "c": "true",
        "d": "",
        "e": "0x1F",
        "f": "2020-01-01",
        "g": "7",
    }
    assert ("12", expected, {"memory": 10}) == (queue.name, queue.properties, queue.max)


def parses_or_refuses(text: str) -> bool:
    try:
        return isinstance(parse_config(text), SchedulerConfig)
    except ConfigError as error:
        return all(fault.line >= 1 and fault.what for fault in error.faults)


@given(
    st.text(alphabet=st.characters(exclude_categories=()))
    | st.text(alphabet="ab:-?[]{},&*!|>%@'\"#\\ \n\t0~<.")
)
def test_any_text_parses_or_is_refused(text: str) -> None:
    assert parses_or_refuses(text)


FRAGMENTS = ["", " ", "\n", "-", ":", "[", "]", "{", "}", "'", '"', "*", "&a ", "!x ", "|", "0", "-1", "1.5", "root", "a.b", "~", "{}", "[]", "\\U", "\t", "  - name: default\n", "true"]  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(VALID)), st.integers(0, 12), st.sampled_from(FRAGMENTS) | st.text()
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_damaged_configuration_parses_or_is_refused(damage: list[tuple[int, int, str]]) -> None:
    text = VALID
    for start, length, fragment in damage:
        text = text[:start] + fragment + text[start + length :]
    assert parses_or_refuses(text)


def test_the_undamaged_configuration_is_accepted() -> None:
    expected = ["tenants", "prod"]
    assert expected == [queue.name for queue in parse_config(VALID).partitions[0].root.children]
