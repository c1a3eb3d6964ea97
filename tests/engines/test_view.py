"""The page of a recording in a browser: what a person does with it, by mouse and by keys."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import EDGE_CONTRAST_MIN, Opened, browser
from recordings import in_service, records, rewrite, simulate, write
from viewed import data, speaking, texts

from yunikorn_actors.cli import main
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.view.run_data import Role

pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]

MARKUP = "<img src=x onerror=alert(1)>"
BACKWARDS = "\u202eppa\u200f"
RACE = """
name: two applications, room for one
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1, queue: root.default}
- add_app: {id: app-2, queue: root.default}
- together:
  - ask: {app: app-1, key: a, resource: {vcore: 1}}
  - ask: {app: app-2, key: b, resource: {vcore: 1}}
"""
CYCLE = RunCycle(partition="p", epoch=1)
SECOND = 1_000_000_000
READ = ("text", "faint", "accent", "refused", "timeout", "lost", "different")


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


Opening = Callable[..., Opened]


@pytest.fixture
def opens(started: Any) -> Iterator[Opening]:
    """Open pages, one after the other: what is drawn waits for a page to be in front."""
    pages: list[Opened] = []

    def open_(file: Path, **options: Any) -> Opened:
        pages.append(Opened(started, file.absolute().as_uri(), **options))
        return pages[-1].ready()

    yield open_
    for it in pages:
        it.page.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def viewed(*paths: Path, options: tuple[str, ...] = ()) -> Path:
    out = paths[0].with_suffix(".html")
    files = [str(it) for it in paths]
    assert main(["trace", "view", *files, "-o", str(out), *options]) == 0
    return out


def kept_quiet(opened: Opened) -> None:
    assert opened.said == []
    assert opened.requests == [opened.url], "something was loaded or sent"


# -- loading


@pytest.mark.parametrize(("run", "view"), [(simulate, "order"), (in_service, "time")])
def test_it_loads_and_asks_nobody_for_anything(
    opens: Opening, path: Path, run: Any, view: str
) -> None:
    page = viewed(run(path), options=("--why", "none"))
    count = len(texts(data(page)["runs"][0]["run"], "kind"))
    opened = opens(page)
    assert opened.page.title() == "a.trace"
    assert opened.text("#count") == f"{count} of {count} messages"
    assert opened.page.evaluate("() => app.axis.name") == view
    assert opened.page.is_disabled("input[value=time]") is (view == "order")
    kept_quiet(opened)


def test_the_policy_is_in_force(opens: Opening, path: Path) -> None:
    opened = opens(viewed(simulate(path)))
    for attempt in (
        "() => fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')",
        "() => { try { document.body.innerHTML = '<b>'; return 'taken' } catch { return 'refused' } }",
        """() => { const it = document.createElement('script');
             try { it.src = 'http://127.0.0.1:9/'; return 'taken' } catch { return 'refused' } }""",
        """() => new Promise((done) => { const it = document.createElement('img');
             it.onload = () => done('loaded'); it.onerror = () => done('refused');
             it.src = 'http://127.0.0.1:9/' })""",
    ):
        assert opened.page.evaluate(attempt) == "refused", attempt


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_dark(opens: Opening, path: Path, scheme: str) -> None:
    opened = opens(viewed(simulate(path)), color_scheme=scheme)
    pairs = [(name, on) for name in READ for on in ("page", "panel")]
    assert opened.weak(*pairs, ("box-text", "box")) == []
    words = [("box-text", role) for role in (*Role, "chain")]
    edges = [(f"{role}-edge", on) for role in Role for on in ("page", "panel", role)]
    assert opened.weak(*words) == []
    assert opened.weak(*edges, least=EDGE_CONTRAST_MIN) == []
    shade = opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (int(shade.split("(")[1].split(",")[0]) > 128) is (scheme == "light")
    kept_quiet(opened)


def test_twenty_thousand_messages_are_shown(opens: Opening, path: Path) -> None:
    opened = opens(viewed(write(path, *[CYCLE] * 20_000, driver="threads")))
    assert opened.text("#count") == "20000 of 20000 messages"
    opened.press("+", "+", "]", "o", "0", "t", "j", "f")
    opened.drawn()
    assert opened.selected == [0, 0]
    kept_quiet(opened)


def test_idle_times_are_squeezed_and_labelled(opens: Opening, path: Path) -> None:
    write(path, *[CYCLE] * 40, driver="threads")
    changed = records(path)
    for record in changed[21:-1]:
        record["at_ns"] += 2 * SECOND + 100_000_000
    rewrite(path, changed)
    opened = opens(viewed(path))
    gaps = opened.page.evaluate(
        "() => app.axis.gaps.map((it) => [it.label, (it.to - it.from) / app.axis.total])"
    )
    ((label, part),) = gaps
    assert label == "// 2.1 s //"
    assert part < 0.05
    opened.press("o")
    assert opened.page.evaluate("() => app.axis.gaps.length") == 0
    kept_quiet(opened)


def test_idle_time_is_hatched_as_far_as_it_is_seen(opens: Opening, path: Path) -> None:
    """Zoomed in, all of it would be millions of lines for each picture."""
    write(path, *[CYCLE] * 40, driver="threads")
    changed = records(path)
    for record in changed[21:-1]:
        record["at_ns"] += 20_000_000
    rewrite(path, changed)
    opened = opens(viewed(path))
    lines = opened.page.evaluate(
        """() => new Promise((done) => {
          let lines = 0;
          const draw = CanvasRenderingContext2D.prototype.lineTo;
          CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
            lines++;
            draw.call(this, x, y);
          };
          const [gap] = app.axis.gaps;
          const [middle, span] = [(gap.from + gap.to) / 2, app.axis.total / 1e6];
          app.look(middle - span, middle + span);
          requestAnimationFrame(() => requestAnimationFrame(() => done(lines)));
        })"""
    )
    assert 0 < lines < 2_000
    assert opened.page.evaluate("() => app.axis.gaps[0].label").endswith(" ms //")
    kept_quiet(opened)


# -- looking


def test_a_click_on_a_box_tells_of_its_message(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    run = data(page)["runs"][0]["run"]
    message = texts(run, "kind").index("ProposeAllocations")
    opened = opens(page)
    opened.page.evaluate(f"() => app.look({message} - 10, {message} + 10)")
    opened.drawn()
    x, y = opened.page.evaluate(
        f"""() => {{
          const {{left, top}} = document.getElementById('lane-canvas').getBoundingClientRect();
          const run = app.runs[0], lanes = app._lanes;
          return [left + lanes._x({message} + 0.4), top + lanes._middle(run, {message})];
        }}"""
    )
    opened.page.mouse.click(x, y)
    assert opened.selected == [0, message]
    told = opened.text("#right")
    assert texts(run, "place")[message] in told
    assert texts(run, "says")[message] in told
    assert '"proposal_id"' in told
    assert texts(run, "place")[message] in opened.page.text_content("#announced")
    cause = run["messages"]["cause"][message]
    opened.page.click(f"#right dd button:has-text('{texts(run, 'place')[cause]}')")
    assert opened.selected == [0, cause]
    kept_quiet(opened)


def test_names_in_a_payload_lead_to_stories_and_reasons(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path), options=("--why", "all"))
    about, run = data(page)["runs"][0]["about"], data(page)["runs"][0]["run"]
    ask = next(it for it in about["objects"] if it["name"] == "app-1/c")
    opened = opens(page)
    committed = next(
        it for it in speaking(page, ask) if "AllocationCommitted" in texts(run, "says")[it]
    )
    opened.page.evaluate(f"() => app.selectMessage(app.runs[0], {committed})")
    opened.page.click("#right pre button:has-text('\"c\"')")
    told = opened.text("#right")
    for line in (about["lines"]["text"][number] for number in ask["story"]):
        assert line in told
    assert ask["why"]
    for wait in ask["why"]:
        assert wait["text"] in told
    opened.page.click("#right button:has-text('Only what speaks of it')")
    assert opened.text("#count").startswith(f"{len(speaking(page, ask))} of ")
    # A line of the story opens its message, and follows this ask and not the first one there.
    opened.page.click("#right tr:has-text('AskAdded') button")
    assert opened.page.text_content("#right li strong") == "c"
    kept_quiet(opened)


def test_filters_leave_what_is_asked_for(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    found = data(page)["runs"][0]
    run = found["run"]
    opened = opens(page)

    def count() -> int:
        return int(opened.text("#count").split(" ")[0])

    opened.press("/")
    opened.page.keyboard.type("nobody")
    speaking = sum(
        1 for it in records(path) if it["record"] == "delivery" and "nobody" in json.dumps(it)
    )
    assert count() == speaking > 0
    opened.press("Escape")
    opened.page.click("#clear")
    assert count() == len(texts(run, "kind"))
    opened.page.select_option("#kind", "RunCycle")
    assert count() == texts(run, "kind").count("RunCycle") > 0
    opened.page.select_option("#kind", "")
    opened.page.select_option("#lane", "context")
    assert count() == sum(1 for it in texts(run, "place") if it.startswith("context/")) > 0
    opened.page.click("#clear")
    stimulus = texts(run, "stimulus")[texts(run, "kind").index("ProposeAllocations")]
    opened.page.focus("#stimulus")
    opened.page.keyboard.type(stimulus)
    assert count() == texts(run, "stimulus").count(stimulus) > 0
    opened.page.click("#clear")
    opened.page.check("#refused")
    assert count() == len({it["message"] for it in run["marks"] if it["kind"] == "refused"}) > 0
    kept_quiet(opened)


def test_the_slider_tells_how_full_the_queues_were(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    series = data(page)["runs"][0]["run"]["series"][0]
    opened = opens(page)
    fullest, _, permille = max(series["points"], key=lambda point: point[2])
    opened.page.evaluate(f"() => app.moveCursor({fullest})")
    opened.drawn()
    row = opened.text(f"#level-names div:has-text('{series['name']}') >> nth=0")
    assert f"{round(permille / 10)} %" in row
    opened.page.focus("#cursor")
    opened.press("Home")
    opened.drawn()
    assert opened.page.get_attribute("#cursor", "aria-valuetext") == "message 1"
    assert "0 %" in opened.text(f"#level-names div:has-text('{series['name']}') >> nth=0")
    kept_quiet(opened)


WRITTEN = """() => new Promise((done) => {
  const found = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (this.canvas.id === "lane-canvas") found.push([text, x, y, this.measureText(text).width]);
    write.call(this, text, x, y);
  };
  app.look(ARGUMENTS);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    CanvasRenderingContext2D.prototype.fillText = write;
    done(found);
  }));
})"""


def test_words_stand_where_there_is_room_and_cross_no_other_box(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    run = data(page)["runs"][0]["run"]
    opened = opens(page)
    near = opened.page.evaluate(WRITTEN.replace("ARGUMENTS", "0, 3"))
    words = [text for text, *_ in near]
    assert {texts(run, "kind")[it] for it in range(3)} <= set(words), "a type in each box"
    assert any(says in words for says in texts(run, "says")[:3] if says)
    far = opened.page.evaluate(WRITTEN.replace("ARGUMENTS", "0, 50"))
    kinds = {it[:7] for it in texts(run, "kind")}
    beside = [it for it in far if it[0][:7] in kinds]
    assert len(beside) > 5, "beside narrow boxes as well"
    boxes = opened.page.evaluate(
        """() => app._lanes._rows.flatMap((row) => row.messages.map((it) =>
             [app._lanes._x(app.axis.begin(row.run, it)), row.y, row.y + app._lanes._lane]))"""
    )
    for _, x, y, wide in beside:
        crossed = [it for it in boxes if x + 1 < it[0] < x + wide - 8 and it[1] < y < it[2]]
        assert crossed == []
    kept_quiet(opened)


def test_each_role_has_a_colour_and_a_place_in_the_legend(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    assert set(texts(data(page)["runs"][0]["run"], "role")) == set(Role)
    opened = opens(page)
    swatches = opened.page.evaluate(
        """() => [...document.querySelectorAll('#legend .role')].map((it) =>
             [it.textContent, getComputedStyle(it, '::before').backgroundColor])"""
    )
    assert [name.split(",")[0] for name, _ in swatches] == list(Role)
    assert len({colour for _, colour in swatches}) == len(Role)
    opened.press("b")
    opened.drawn()
    roles = opened.page.evaluate(
        "() => [...document.querySelectorAll('#table .role')].map((it) => it.className)"
    )
    of_page = texts(data(page)["runs"][0]["run"], "role")[: len(roles)]
    assert roles == [f"role {role}" for role in of_page]
    kept_quiet(opened)


@pytest.mark.parametrize("zoomed_out", [False, True])
def test_a_click_on_an_object_marks_its_messages(
    opens: Opening, path: Path, zoomed_out: bool
) -> None:
    if zoomed_out:
        in_service(path)
    else:
        simulate(path)
    page = viewed(path, options=("--why", "none"))
    about = data(page)["runs"][0]["about"]
    spoken = speaking(page, next(it for it in about["objects"] if it["kind"] == "application"))
    opened = opens(page)

    def marked() -> list[int]:
        found: list[int] = opened.page.evaluate(
            "() => [...app._lanes.flags[0].keys()].filter((it) => app._lanes.flags[0][it] & SPEAKS)"
        )
        return found

    assert marked() == []
    opened.page.click("#objects button >> nth=0")
    opened.drawn()
    assert marked() == spoken != []
    assert opened.page.get_attribute("#objects button >> nth=0", "aria-pressed") == "true"
    said = opened.page.text_content("#announced")
    assert said.endswith(f"{len(spoken)} messages are marked")
    assert f"{len(spoken)} speak of it" in opened.text("#right")
    blue = opened.page.evaluate(
        """() => { const it = document.getElementById('lane-canvas');
          const {data} = it.getContext('2d').getImageData(0, 0, it.width, it.height);
          const hex = app.colours.accent.slice(1);
          const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
          let count = 0;
          for (let at = 0; at < data.length; at += 4)
            count += data[at] === r && data[at + 1] === g && data[at + 2] === b;
          return count; }"""
    )
    assert blue > 10
    # They stay marked while one of them is looked at, and each of them is a key away.
    opened.press("g")
    assert opened.selected[1] in spoken
    assert marked() == spoken
    opened.press("Escape")
    assert marked() == []
    opened.page.click("#objects button >> nth=0")
    opened.page.click("#objects button >> nth=0")
    assert marked() == []
    kept_quiet(opened)


def test_an_object_is_marked_in_both_runs(opens: Opening, path: Path) -> None:
    page = viewed(*parted(path))
    opened = opens(page)
    opened.page.click("#objects button >> nth=0")
    for side, run in enumerate(data(page)["runs"]):
        app = next(it for it in run["about"]["objects"] if it["name"] == "app-1")
        found = opened.page.evaluate(
            f"""() => [...app._lanes.flags[{side}].keys()]
                 .filter((it) => app._lanes.flags[{side}][it] & SPEAKS)"""
        )
        assert found == speaking(page, app, side) != []
    kept_quiet(opened)


@pytest.mark.parametrize("wide", [1400, 900, 500])
def test_nothing_is_wider_than_the_window(opens: Opening, path: Path, wide: int) -> None:
    opened = opens(viewed(in_service(path, schedulers=2), options=("--why", "none")))
    opened.page.set_viewport_size({"width": wide, "height": 900})
    opened.page.click("#objects button >> nth=0")
    opened.drawn()
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= wide
    kept_quiet(opened)


# -- keys


def test_the_arrows_go_along_the_chain(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    causes = data(page)["runs"][0]["run"]["messages"]["cause"]
    opened = opens(page)
    deepest = max(range(len(causes)), key=lambda it: (depth_of(it, causes), -it))
    opened.page.evaluate(f"() => app.selectMessage(app.runs[0], {deepest})")
    opened.press("ArrowLeft")
    cause = causes[deepest]
    assert opened.selected == [0, cause]
    effects = [it for it, by in enumerate(causes) if by == cause]
    opened.press("ArrowRight")
    assert opened.selected == [0, effects[0]]
    for effect in [*effects[1:], effects[-1]]:
        opened.press("ArrowDown")
        assert opened.selected == [0, effect]
    for effect in [*effects[-2::-1], effects[0]]:
        opened.press("ArrowUp")
        assert opened.selected == [0, effect]
    opened.press("Escape")
    assert opened.selected == []
    kept_quiet(opened)


def depth_of(message: int, causes: list[int]) -> int:
    depth = 0
    while message >= 0:
        message, depth = causes[message], depth + 1
    return depth


def test_every_key_is_told_and_none_acts_in_a_field(opens: Opening, path: Path) -> None:
    opened = opens(viewed(in_service(path), options=("--why", "none")))
    keys = opened.page.evaluate("() => Object.keys(app._keys)")
    opened.press("?")
    assert opened.page.is_visible("#keys")
    assert [it.inner_text() for it in opened.page.query_selector_all("#key-list kbd")] == keys
    opened.press("Escape")
    assert not opened.page.is_visible("#keys")
    for key in keys:
        opened.press(key, "Escape", "Escape")
        opened.drawn()
    opened.press("0", "/")
    whole = opened.page.evaluate("() => [app.from, app.to]")
    opened.page.keyboard.type("+n]")
    assert opened.page.input_value("#text") == "+n]"
    assert opened.page.evaluate("() => [app.from, app.to]") == whole
    kept_quiet(opened)


# -- two runs


def parted(path: Path) -> tuple[Path, Path]:
    """There is room for one of two asks, and the seed decides for which."""
    scenario = path.with_suffix(".yaml")
    scenario.write_text(RACE)
    found = path, path.with_name("b.trace")
    for seed, file in enumerate(found, start=1):
        command = ["scenario", "run", str(scenario), "--seed", str(seed), "--trace", str(file)]
        assert main(command) == 0
    return found


def test_differences_are_visited_in_their_order(opens: Opening, path: Path) -> None:
    page = viewed(*parted(path))
    sides = data(page)["comparison"]["sides"]
    expected = sorted(
        (column, side, message)
        for side, it in enumerate(sides)
        for message, (column, what) in enumerate(zip(it["column"], it["difference"], strict=True))
        if what
    )
    assert expected
    opened = opens(page)
    for _, side, message in expected:
        opened.press("n")
        assert opened.selected == [side, message]
    opened.press("n")
    assert opened.selected == list(expected[0][1:])
    opened.press("N")
    assert opened.selected == list(expected[-1][1:])
    assert opened.page.evaluate("() => app.divergence") == expected[0][0]
    assert "happened" in opened.text("#right")
    opened.press("Escape")
    assert data(page)["comparison"]["lines"][0] in opened.text("#right")
    kept_quiet(opened)


def test_what_happened_in_both_runs_leads_from_one_to_the_other(opens: Opening, path: Path) -> None:
    page = viewed(*parted(path))
    partners = data(page)["comparison"]["sides"][0]["partner"]
    message = next(it for it, partner in enumerate(partners) if partner >= 0)
    opened = opens(page)
    opened.page.evaluate(f"() => app.selectMessage(app.runs[0], {message})")
    opened.page.click("#right dt:has-text('other run') + dd button")
    assert opened.selected == [1, partners[message]]
    kept_quiet(opened)


# -- for those who do not see it


def test_the_table_says_the_same(opens: Opening, path: Path) -> None:
    page = viewed(simulate(path))
    run = data(page)["runs"][0]["run"]
    opened = opens(page)
    opened.press("b")
    places: list[str] = []
    while True:
        opened.drawn()
        places += [
            it.inner_text() for it in opened.page.query_selector_all("#table tbody td:first-child")
        ]
        later = opened.page.locator("#table caption button:has-text('Later')")
        if later.is_disabled():
            break
        later.click()
    assert places == texts(run, "place")
    first = opened.text("#table tbody button >> nth=0")
    opened.page.click("#table tbody button >> nth=0")
    opened.drawn()
    assert opened.page.locator("#table tr[aria-selected=true]").count() == 1
    assert first in opened.page.text_content("#announced")
    kept_quiet(opened)


def test_everything_has_a_name(opens: Opening, path: Path) -> None:
    """Every field, button and picture says what it is, also without being seen."""
    opened = opens(viewed(in_service(path), options=("--why", "none")))
    assert opened.nameless() == []
    kept_quiet(opened)


# -- what comes from outside


def test_names_are_texts_whatever_they_look_like(opens: Opening, path: Path) -> None:
    simulate(path)
    text = json.dumps(records(path)).replace("app-1", MARKUP).replace("app-2", BACKWARDS)
    rewrite(path, json.loads(text))
    opened = opens(viewed(path))
    listed = opened.text("#objects")
    assert MARKUP in listed
    assert "\\u202eppa\\u200f" in listed
    for name in ("\\u202eppa\\u200f", MARKUP):
        opened.page.get_by_role("button", name=name, exact=True).first.click()
        assert name in opened.text("#right h2")
    opened.press("b", "m", "n", "j")
    opened.drawn()
    assert (
        opened.page.evaluate(
            "() => document.querySelectorAll('img, iframe, svg, [onerror]').length"
        )
        == 0
    )
    seen = opened.page.evaluate("() => document.body.innerText")
    assert "\u202e" not in seen
    assert "\u200f" not in seen
    kept_quiet(opened)
