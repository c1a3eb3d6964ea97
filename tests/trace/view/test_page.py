"""The page of a recording has what the recording has, as data, and nothing that acts."""

import base64
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from recordings import (
    ask,
    header,
    in_service,
    node,
    records,
    register,
    rewrite,
    simulate,
    submit,
    write,
)
from viewed import data, payloads, policy, speaking, texts

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.pages.html_page import SCRIPT
from yunikorn_actors.trace import open as open_recording
from yunikorn_actors.trace.refused import grouped
from yunikorn_actors.trace.text.show import place
from yunikorn_actors.trace.view.run_page import SCRIPTS

Screen = pytest.CaptureFixture[str]
MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
BACKWARDS = "\u202eppa\u200f"
CYCLE = RunCycle(partition="p", epoch=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def viewed(path: Path, *options: str, status: int = 0) -> Path:
    out = path.with_suffix(".html")
    assert main(["trace", "view", str(path), "-o", str(out), *options]) == status
    return out


def run_of(page: Path, side: int = 0) -> dict[str, Any]:
    run: dict[str, Any] = data(page)["runs"][side]["run"]
    return run


def messages(path: Path) -> list[dict[str, Any]]:
    return [it for it in records(path) if it["record"] == "delivery"]


# -- what is in it


@pytest.mark.parametrize("make", [simulate, in_service])
def test_every_message_is_there_as_it_was_recorded(
    path: Path, make: Callable[[Path], Path]
) -> None:
    page = viewed(make(path), "--why", "none")
    run, recorded = run_of(page), messages(path)
    assert texts(run, "place") == [f"{it['mailbox']}/{it['step']}" for it in recorded]
    assert texts(run, "kind") == [it["type"] for it in recorded]
    assert texts(run, "stimulus") == [it["stimulus"] for it in recorded]
    assert payloads(page) == [it["payload"] for it in recorded]
    assert {len(column) for column in run["messages"].values()} == {len(recorded)}


@pytest.mark.parametrize("make", [simulate, in_service])
def test_causes_are_those_of_the_recording(path: Path, make: Callable[[Path], Path]) -> None:
    run = run_of(viewed(make(path), "--why", "none"))
    places = texts(run, "place")
    steps = {(it["mailbox"], it["step"]) for it in messages(path)}
    joined = {(it["mailbox"], it["step"]) for it in messages(path) if it.get("joined")}
    causes = [tuple(it["cause"]) for it in messages(path)]
    for number, (mailbox, step) in zip(run["messages"]["cause"], causes, strict=True):
        together = {f"{mailbox}/{step}"} if (mailbox, step) in steps else {None}
        while (mailbox, step) in joined:
            step -= 1  # noqa: PLW2901 - back to the first that was handled together with it
            together.add(f"{mailbox}/{step}")
        assert (None if number < 0 else places[number]) in together


def test_times_are_those_of_the_recording(path: Path) -> None:
    run, recorded = run_of(viewed(in_service(path), "--why", "none")), messages(path)
    start_ns = records(path)[0]["start_ns"]
    assert run["messages"]["begin_ns"] == [it["at_ns"] - start_ns for it in recorded]
    assert run["messages"]["sent_ns"] == [
        it["sent_ns"] - start_ns if "sent_ns" in it else -1 for it in recorded
    ]
    told = [it["previous_took_ns"] for it in recorded if it.get("previous_took_ns") is not None]
    last = list(records(path)[-1]["took_ns"].values())
    took = [it for it in run["messages"]["took_ns"] if it >= 0]
    assert sorted(took) == sorted(told + last)
    assert not run["is_simulated"]


def test_handling_together_takes_its_time_once(path: Path) -> None:
    write(path, *[CYCLE] * 4)
    changed = records(path)
    changed[2]["joined"] = True
    changed[3]["previous_took_ns"] = 70
    changed[5]["took_ns"] = {"context": 90}
    rewrite(path, changed)
    run = run_of(viewed(path))
    assert run["messages"]["took_ns"] == [-1, 70, -1, 90]
    assert run["messages"]["joined"] == [0, 1, 0, 0]


def test_refusals_and_losses_are_marked(path: Path) -> None:
    run = run_of(viewed(simulate(path)))
    refused = [it for it in run["marks"] if it["kind"] == "refused"]
    assert len(refused) == sum(it.count for it in grouped(iter(open_recording(path)))) > 0
    first = grouped(iter(open_recording(path)))[0]
    places = texts(run, "place")
    assert place(first.first_at) in [places[it["message"]] for it in refused]
    lost = [it["text"] for it in run["marks"] if it["kind"] == "lost"]
    assert lost[0] == "NodeRemoved n2"


def test_queues_are_as_full_as_the_facts_say(path: Path) -> None:
    run = run_of(viewed(simulate(path)))
    levels = {it["name"]: [permille for *_, permille in it["points"]] for it in run["series"]}
    assert levels["[rm-1]default root"] == levels["[rm-1]default root.default"]
    # Of 12 vcore three asks take three each, and two take one; n2 goes with its four.
    assert max(levels["[rm-1]default root"]) >= 900
    assert levels["[rm-1]default root"][-1] == 0


def test_what_a_filter_leaves_out_is_not_there_and_queues_are_whole(path: Path) -> None:
    simulate(path)
    whole, part = run_of(viewed(path)), run_of(viewed(path, "--type", "RMUpdateAllocation"))
    assert set(texts(part, "kind")) == {"RMUpdateAllocation"}
    assert [it["points"][0][1:] for it in part["series"]] == [
        it["points"][0][1:] for it in whole["series"]
    ]
    assert len(part["marks"]) == len(whole["marks"])
    assert all(it["message"] == -1 for it in part["marks"])


def test_a_page_is_the_same_each_time(path: Path) -> None:
    page = viewed(simulate(path))
    once = page.read_bytes()
    assert viewed(path).read_bytes() == once


def test_a_name_that_occurs_nowhere_is_told(path: Path, capsys: Screen) -> None:
    viewed(simulate(path), "--about", "app-11", status=1)
    assert "no id 'app-11' occurs in it; did you mean app-1" in capsys.readouterr().err


def test_the_file_is_named_after_the_recording(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Screen
) -> None:
    monkeypatch.chdir(simulate(path).parent)
    assert main(["trace", "view", "a.trace"]) == 0
    assert run_of(path.with_suffix(".html"))["name"] == "a.trace"
    count = len(messages(path))
    said = f"a.html shows {count} messages of a.trace: open it in a browser\n"
    assert capsys.readouterr().out == said


def test_it_is_a_method_as_well(path: Path) -> None:
    page = viewed(simulate(path))
    out = path.with_name("other.html")
    open_recording(path).view(out)
    assert out.read_bytes() == page.read_bytes()


# -- objects


def test_objects_have_their_messages_and_their_lives(path: Path) -> None:
    page = viewed(simulate(path))
    about = data(page)["runs"][0]["about"]
    objects = {(it["kind"], it["name"]): it for it in about["objects"]}
    recording = open_recording(path)
    for name in ("app-1", "app-1/a", "n2", "root.default"):
        (found,) = [it for (_, known), it in objects.items() if known == name]
        lines = [about["lines"]["text"][number] for number in found["story"]]
        assert lines == [f"{it.what} {it.text}".rstrip() for it in recording.story(name)]
    speaks = [number for number, it in enumerate(messages(path)) if '"n2"' in json.dumps(it)]
    assert speaking(page, objects["node", "n2"]) == speaks
    uuid = next(it for it in objects["ask", "app-1/a"]["names"] if it != "a")
    assert recording.story(uuid)


def test_one_key_in_two_applications_is_two_asks(path: Path) -> None:
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, 4)
        for name in ("app-1", "app-2"):
            submit(core, name)
            ask(core, name, "a")
    page = viewed(path)
    about = data(page)["runs"][0]["about"]
    one, other = (speaking(page, it) for it in about["objects"] if it["kind"] == "ask")
    assert min(len(one), len(other)) > 3
    assert set(one).isdisjoint(other)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        (["--why", "all"], {"app-1/a", "app-1/b", "app-1/c", "app-2/d", "app-2/e"}),
        (["--why", "none"], set()),
        (["--about", "d"], {"app-2/d"}),
    ],
)
def test_why_is_told_of_those_that_were_asked_for(
    path: Path, options: list[str], known: set[str]
) -> None:
    about = data(viewed(simulate(path), *options))["runs"][0]["about"]
    told = {it["name"]: it["why"] for it in about["objects"] if it["why"] is not None}
    if "--about" in options:
        told = {name: it for name, it in told.items() if name in known}
    assert set(told) == known
    recording = open_recording(path)
    for name, waits in told.items():
        periods = [it for wait in recording.why(name) for it in wait.periods]
        assert [it["text"] for it in waits] == [it.text for it in periods]


def test_of_a_part_of_a_run_the_page_says_that_there_is_no_why(path: Path) -> None:
    simulate(path)
    changed = records(path)
    rewrite(path, [changed[0] | {"segment": 2}, *changed[1:]])
    about = data(viewed(path))["runs"][0]["about"]
    assert about["problem"]
    assert {it["why"] for it in about["objects"]} == {None}


# -- nothing in it acts


def test_names_are_data_and_never_markup(path: Path) -> None:
    simulate(path)
    text = json.dumps(records(path)).replace("app-1", json.dumps(MARKUP)[1:-1])
    rewrite(path, json.loads(text.replace("app-2", BACKWARDS)))
    hostile = path.rename(path.with_name("<b>&amp;\u202e.trace"))
    page = viewed(hostile)
    written = page.read_text("utf-8")
    assert "<title>&lt;b&gt;&amp;amp;\\u202e.trace</title>" in written
    for text in ("onerror", "alert(", BACKWARDS, "\u202e", "<b>"):
        assert text not in written
    assert {MARKUP, BACKWARDS} <= {it["name"] for it in data(page)["runs"][0]["about"]["objects"]}


def test_the_policy_lets_the_scripts_of_the_page_run_and_nothing_else(path: Path) -> None:
    page = viewed(write(path, CYCLE))
    written, rules = page.read_text("utf-8"), dict(it.partition(" ")[::2] for it in policy(page))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    scripts = re.findall(r"<script>(.*?)</script>", written, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", written, re.DOTALL)
    for kind, found in (("script-src", scripts), ("style-src", styles)):
        digests = (base64.b64encode(sha256(it.encode()).digest()).decode() for it in found)
        assert rules[kind] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert len(scripts) == len((SCRIPT, *SCRIPTS))
    assert written.count("<script") == len(scripts) + len(data(page)["runs"]) + 1
    markup = re.sub(r"<(script|style).*?</\1>", "", written, flags=re.DOTALL)
    assert not re.search(r"\s(src|href|style|on\w+)\s*=", markup)
    assert "://" not in written


def test_only_the_owner_may_read_it(path: Path) -> None:
    assert viewed(simulate(path)).stat().st_mode & 0o777 == 0o600


def test_an_unknown_message_is_shown_by_its_name(path: Path) -> None:
    write(path, CYCLE)
    changed = records(path)
    changed[1].update(type="Later", payload={"of": "a later version"})
    rewrite(path, changed)
    page = viewed(path)
    assert texts(run_of(page), "kind") == ["Later"]
    assert payloads(page) == [{"of": "a later version"}]


def test_an_empty_recording_has_a_page(path: Path) -> None:
    write(path)
    assert header()["driver"] == "sim"
    page = viewed(path)
    assert run_of(page)["messages"]["record"] == []
    assert data(page)["runs"][0]["about"]["objects"] == []
