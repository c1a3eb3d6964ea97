"""Metrics: the text that Prometheus reads, YuniKorn's names, and figures that follow the state."""

import http.client
import json
import re
import shutil
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace
from pages import REPOSITORY
from probes import wait_until
from served import RM, Served, node, serving

from yunikorn_actors import si
from yunikorn_actors.recording.meter import Meter
from yunikorn_actors.service.metrics.exposition import Family, Sample, exposition, metric_name

SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
Key = tuple[str, frozenset[tuple[str, str]]]


@pytest.fixture(scope="module")
def text(town: Served) -> str:
    response = town.ask("/ws/v1/metrics")
    assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["Content-Type"]
    return response.body.decode()


@pytest.fixture(scope="module")
def samples(text: str) -> dict[Key, float]:
    return samples_of(text)


def samples_of(text: str) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match is not None, line
            key = (match[1], frozenset(LABEL.findall(match[2] or "")))
            assert key not in found, line
            found[key] = float(match[3])
    return found


def key(name: str, **labels: str) -> Key:
    return name, frozenset(labels.items())


EXPECTED = [
    (key("yunikorn_scheduler_application_submission_total", result="rejected"), 1),
    (key("yunikorn_scheduler_application_total", state="completed"), 1),
    (key("yunikorn_scheduler_application_total", state="running"), 3),
    (key("yunikorn_scheduler_node", state="active"), 2),
    (key("yunikorn_queue_app", queue="root.prod", state="running"), 1),
    (key("yunikorn_queue_app", queue="root.prod", state="completed"), 1),
    (key("yunikorn_queue_app_total", queue="root.prod", state="completed"), 1),
    (
        key("yunikorn_queue_resource", queue="root.prod", state="maxRunningApps", resource="apps"),
        10,
    ),
    (key("yunikorn_queue_resource", queue="root.prod", state="max", resource="vcore"), 16_000),
    (key("yunikorn_root_prod_queue_container", state="allocated"), 5),
    (key("yunikorn_root_prod_queue_container", state="released"), 2),
    (key("yunikorn_actors_waiting_asks", partition="[rm-1]default", reason="QUEUE_LIMIT"), 1),
    (key("yunikorn_actors_waiting_asks", partition="[rm-1]default", reason="NODE_KEPT"), 1),
    (key("yunikorn_actors_callback_errors_total", rm="rm-1"), None),
]


@pytest.mark.parametrize(("name", "value"), EXPECTED, ids=[it[0] for it, _ in EXPECTED])
def test_a_figure_follows_the_state(
    samples: dict[Key, float], name: Key, value: float | None
) -> None:
    assert value == samples.get(name)


PARTITIONS = """
partitions:
- name: default
  queues: [{name: root, submitacl: "*", queues: [{name: a, resources: {max: {vcore: 8}}}]}]
- name: gpu
  queues: [{name: root, submitacl: "*", queues: [{name: a, resources: {max: {vcore: 4, gpu: 2}}}]}]
"""


def test_queues_of_one_path_in_several_partitions_are_added_up() -> None:
    with serving() as served:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=PARTITIONS)
        served.core.register_resource_manager(request, si.ResourceManagerCallback())
        for partition in ("default", "gpu"):
            of_partition = {"si/node-partition": partition}
            served.nodes(replace(node(f"of-{partition}"), attributes=of_partition))
            ugi = si.UserGroupInformation(user="ann")
            app = si.AddApplicationRequest(
                application_id="app", queue_name="root.a", partition_name=partition, ugi=ugi
            )
            served.core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        served.settle()
        found = samples_of(served.ask("/ws/v1/metrics").body.decode())
    of_a = {"queue": "root.a"}
    assert found[key("yunikorn_queue_app", state="new", **of_a)] == 2
    amounts = {"vcore": 12_000, "gpu": 2}
    for kind, amount in amounts.items():
        labels = {"state": "max", "resource": kind, **of_a}
        assert found[key("yunikorn_queue_resource", **labels)] == amount


def test_the_usage_of_nodes(samples: dict[Key, float]) -> None:
    name = "yunikorn_scheduler_vcore_node_usage_total"
    ranges = {dict(labels)["range"]: count for (it, labels), count in samples.items() if it == name}
    assert (10, 2) == (len(ranges), sum(ranges.values()))
    assert {"[0,10%]", "(10%,20%]", "(90%,100%]"} <= ranges.keys()


def test_actors_are_measured(samples: dict[Key, float]) -> None:
    count = samples[key("yunikorn_actors_handling_seconds_count", actor="context")]
    last = samples[key("yunikorn_actors_handling_seconds_bucket", actor="context", le="+Inf")]
    assert 0 < count == last
    assert 0 < samples[key("yunikorn_scheduler_scheduling_latency_milliseconds_count")]
    assert 0 < samples[key("yunikorn_actors_mailbox_wait_seconds_total", actor="context")]
    assert {"0.0001", "1000"} <= {
        dict(labels).get("le") for name, labels in samples if name.endswith("_bucket")
    }


def test_every_family_says_what_it_is(text: str) -> None:
    names = re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert names == re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)


def test_texts_are_escaped_and_names_are_made() -> None:
    family = Family("a", "gauge", "A.", [Sample({"b": 'x"\\\n'}, 1)])
    assert b'# HELP a A.\n# TYPE a gauge\na{b="x\\"\\\\\\n"} 1\n' == b"".join(exposition([family]))
    assert ["nvidia_com_gpu", "_1x", "a:b"] == [
        metric_name(it) for it in ("nvidia.com/gpu", "1x", "a:b")
    ]


def test_a_core_that_nobody_serves_measures_nothing() -> None:
    meter = Meter()
    assert {"actors": {}, "flows": [], "dead_letters": 0} == {
        name: it for name, it in meter.plain().items() if name != "cycles"
    }


@pytest.mark.engines
def test_promtool_reads_it(text: str) -> None:
    """It ends with 3 for YuniKorn's own names, which its rules of style do not like."""
    done = subprocess.run(
        [found("promtool"), "check", "metrics"],
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 3}, done.stderr


@pytest.mark.engines
def test_prometheus_fetches_it_and_answers_the_dashboard(town: Served, tmp_path: Path) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs: [{job_name: yunikorn, metrics_path: /ws/v1/metrics, scrape_interval: 1s, "
        f"static_configs: [{{targets: ['{town.part.address}']}}]}}]"
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        found("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: queried(address, "up{job='yunikorn'} == 1"))
            for expression in dashboard():
                assert queried(address, expression) is not None, expression
            assert queried(address, "yunikorn_scheduler_node{state='active'} == 2")
        finally:
            process.terminate()


def found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed: apt-get install prometheus")
    return path


def queried(address: str, expression: str) -> list[Any] | None:
    """Return what Prometheus finds; None while it does not answer, or where it cannot."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", f"/api/v1/query?{urlencode({'query': expression})}")
        answer = json.loads(connection.getresponse().read())
    except (OSError, json.JSONDecodeError):
        return None
    finally:
        connection.close()
    return answer["data"]["result"] if answer["status"] == "success" else None


def dashboard() -> list[str]:
    path = REPOSITORY / "docs/how-to/grafana-dashboard.json"
    panels = json.loads(path.read_text("utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_the_dashboard_asks_for_what_is_there(text: str) -> None:
    asked = {name for it in dashboard() for name in re.findall(r"yunikorn_\w+", it)}
    families = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    # Nobody has raised anything here, so that family has no sample.
    there = families | {"yunikorn_actors_callback_errors_total"}
    assert len(asked) > 10
    assert set() == {it for it in asked if re.sub(r"_(bucket|sum|count)$", "", it) not in there}


def test_the_page_names_every_metric(text: str) -> None:
    page = (REPOSITORY / "docs/reference/metrics.md").read_text("utf-8")
    families = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    general = {
        re.compile(r"_(vcore|memory|pods)_node_usage"): "_<resource>_node_usage",
        re.compile(r"yunikorn_root_\w+_queue_container"): "yunikorn_<queue>_queue_container",
        re.compile(r"event_total_\w+"): "event_total_<what>",
    }
    for pattern, name in general.items():
        families = [pattern.sub(name, family) for family in families]
    assert [] == [family for family in families if f"`{family}`" not in page]
