"""The live page in a browser: what an operator does with it, by mouse and by keys."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import Opened, browser
from served import ANN, BOB, CONFIG, Confirming, Served, live, node, register, serving

from yunikorn_actors import si
from yunikorn_actors.service.read.load_history import SAMPLE_NS, Course, Sample
from yunikorn_actors.service.rest.request_guard import Guard

pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]

MARKUP = "<img src=x onerror=alert(1)>"
BACKWARDS = "\u202eppa\u200f"
TOKEN = "a-token-of-nothing-0123456789"  # noqa: S105 - of nothing
READ = ("text", "faint", "accent", "refused", "preempted", "timeout", "lost")


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def town() -> Iterator[Served]:
    """Everything at once; no test changes it."""
    with serving() as served:
        live(served)
        yield served


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        register(it)
        yield it


Opening = Callable[..., Opened]


@pytest.fixture
def opens(started: Any) -> Iterator[Opening]:
    pages: list[Opened] = []

    def open_(it: Served, **options: Any) -> Opened:
        pages.append(Opened(started, f"http://{it.part.address}/", **options))
        return pages[-1]

    yield open_
    for it in pages:
        it.page.close()


def says(opened: Opened, selector: str, text: str) -> None:
    """Wait until it is said there."""
    opened.page.locator(selector).filter(has_text=text).first.wait_for()


def kept_quiet(opened: Opened) -> None:
    assert opened.said == []
    foreign = [it for it in opened.requests if not it.startswith((opened.url, "data:"))]
    assert foreign == [], "something else was asked"


# -- loading


def test_it_shows_a_partition(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    tiles = opened.text("#tiles")
    assert "13 of 16" in tiles
    assert "2 ended" in tiles
    rows = opened.text("#queue-rows")
    assert "6 of 6, full" in rows
    assert "6 guaranteed" in rows
    assert "1 of 10 run" in rows
    says(opened, "#trouble-rows", "no placement rule matched")
    says(opened, "#actor-rows", "context")
    says(opened, "#flow-rows", "ProposeAllocations")
    assert opened.page.title() == "2 waiting: yunikorn-actors"
    kept_quiet(opened)


def test_before_anybody_registers_it_says_so(opens: Opening) -> None:
    with serving() as served:
        opened = opens(served).ready()
        assert "No resource manager" in opened.text("#empty")
        register(served)
        says(opened, "#queue-rows", "prod")
        assert not opened.page.is_visible("#empty")
        kept_quiet(opened)


def test_the_policy_is_in_force(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    for attempt in (
        "() => fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')",
        "() => { try { document.body.innerHTML = '<b>'; return 'taken' } catch { return 'refused' } }",
        """() => new Promise((done) => { const it = document.createElement('img');
             it.onload = () => done('loaded'); it.onerror = () => done('refused');
             it.src = 'http://127.0.0.1:9/' })""",
    ):
        assert opened.page.evaluate(attempt) == "refused", attempt


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_dark(opens: Opening, town: Served, scheme: str) -> None:
    opened = opens(town, color_scheme=scheme).ready()
    assert opened.weak(*((name, on) for name in READ for on in ("page", "panel"))) == []
    shade = opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (int(shade.split("(")[1].split(",")[0]) > 128) is (scheme == "light")
    kept_quiet(opened)


def test_everything_has_a_name(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    says(opened, "#ask-rows", "etl-6")
    assert opened.nameless() == []
    label = opened.page.get_attribute("#grid", "aria-label")
    assert label.startswith("2 nodes, 0 of them drained or not ready.")


# -- what happens is seen


def test_what_is_scheduled_is_seen_without_asking(opens: Opening, served: Served) -> None:
    opened = opens(served).ready()
    served.nodes(node("n1"))
    says(opened, "#tiles li", "nodes1")
    served.application("app-1", "root.prod", ANN)
    served.asks("app-1", "a", "b", vcore=3000)
    says(opened, "#tiles", "6 of 8")
    says(opened, "#application-rows", "app-1")
    served.asks("app-1", "c", vcore=3000)
    says(opened, "#waiting-total", "1")
    says(opened, "#ask-rows", "c")
    served.release("app-1", "a")
    says(opened, "#waiting-total", "0")
    kept_quiet(opened)


def test_a_core_that_has_stopped_is_told(opens: Opening, served: Served) -> None:
    opened = opens(served).ready()
    served.core.stop()
    says(opened, "#banner", "stopped")


def test_a_resource_manager_that_is_away_is_told(opens: Opening, served: Served) -> None:
    opened = opens(served).ready()
    served.core.resource_manager_lost("rm-1")
    says(opened, "#banner", "is away: nothing is decided")
    says(opened, "#trouble-rows", "its resource manager is away")
    kept_quiet(opened)


def test_a_page_that_nobody_sees_costs_nothing(opens: Opening, served: Served) -> None:
    opened = opens(served).ready()
    hide = """(hidden) => {
      Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
      document.dispatchEvent(new Event('visibilitychange')); }"""
    opened.page.evaluate(hide, True)
    server = served.part._server
    assert server is not None
    served.nodes(node("n1"))
    opened.page.wait_for_timeout(1)
    while server._live._pages:
        opened.page.wait_for_timeout(50)
    assert opened.page.evaluate("() => app._source") is None
    opened.page.evaluate(hide, False)
    says(opened, "#tiles li", "nodes1")
    kept_quiet(opened)


def test_another_partition_is_chosen(opens: Opening, served: Served) -> None:
    other = Confirming(served.core)
    served.core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-2", version="1", config=CONFIG), other
    )
    served.nodes(node("n1"))
    opened = opens(served).ready()
    says(opened, "#tiles li", "nodes1")
    opened.page.select_option("#partition", "[rm-2]default")
    says(opened, "#tiles li", "nodes0")
    kept_quiet(opened)


# -- looking closer


def test_why_an_ask_waits(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    says(opened, "#ask-rows", "need-0")
    opened.page.click("#reasons button:has-text('a queue is at its maximum')")
    opened.page.wait_for_function(
        "() => document.getElementById('ask-rows').childElementCount === 1"
    )
    assert opened.page.get_attribute("#reasons button >> nth=0", "aria-pressed") == "true"
    opened.page.click("#ask-rows button:has-text('etl-6')")
    says(opened, "#right", "1 of the 1 that wait in its queue")
    told = opened.text("#right")
    assert "root.dev.batch" in told
    assert "Why it waits" in told
    opened.page.click("#right button:has-text('app-etl')")
    says(opened, "#right", "Asks that wait (1)")
    opened.press("Escape")
    assert not opened.page.is_visible("#right")
    kept_quiet(opened)


def test_asks_and_applications_are_searched(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    opened.press("w")
    opened.page.keyboard.type("NEED")
    opened.page.wait_for_function(
        "() => document.getElementById('ask-rows').childElementCount === 1"
    )
    opened.press("Escape", "/")
    opened.page.keyboard.type("completed")
    opened.page.wait_for_function(
        "() => document.getElementById('application-rows').childElementCount === 1"
    )
    says(opened, "#application-count", "1 application")
    opened.page.click("#application-rows button")
    says(opened, "#right", "Completed")
    opened.press("/")
    opened.page.keyboard.type("nobody")
    says(opened, "#application-count", "there is no such application")
    kept_quiet(opened)


def test_that_it_is_live_is_said_before_anything_else(opens: Opening, town: Served) -> None:
    """Nothing that is said of what somebody does is then said over."""
    opened = opens(town).ready()
    assert "The page is live." == opened.page.text_content("#announced")
    assert "live, up for" in opened.text("#standing")


def test_only_what_can_be_full_is_marked_as_full(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    widths = opened.page.evaluate(
        """() => ['#reasons', '#queue-table'].map((at) => Math.max(
          ...[...document.querySelectorAll(`${at} .bar`)].map((it) => {
            it.classList.add('is-full');
            return parseFloat(getComputedStyle(it).borderRightWidth);
          })))"""
    )
    assert [1, 4] == widths


def test_the_details_of_something_cut_no_table_off(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    opened.page.click("#ask-rows button:has-text('etl-6')")
    says(opened, "#right", "Why it waits")
    cut = opened.page.evaluate(
        """() => [...document.querySelectorAll('main .scroll')]
          .filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => it.parentNode.id)"""
    )
    assert [] == cut


def test_a_queue_leads_to_what_is_in_it(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    says(opened, "#application-count", "6 applications")
    opened.page.click("#queue-rows button:has-text('batch')")
    says(opened, "#application-count", "1 application")
    says(opened, "#ask-count", "1 ask waits")
    assert "root.dev.batch are listed" in opened.page.text_content("#announced")
    kept_quiet(opened)


def test_a_gang_is_told_of(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    opened.page.click("#application-rows button:has-text('app-gang')")
    says(opened, "#right", "task group")
    assert "tg\t3\t1\t0" in opened.text("#right table")
    kept_quiet(opened)


def test_branches_of_queues_are_folded(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    fold = opened.page.get_by_role("button", name="fold root.dev", exact=True)
    fold.focus()
    opened.press("Enter")
    assert opened.page.locator("#queue-rows tr").count() == 3
    # Whoever folds it stays on it, also when the next picture comes.
    unfold = opened.page.get_by_role("button", name="unfold root.dev", exact=True)
    assert unfold.get_attribute("aria-expanded") == "false"
    assert unfold.evaluate("(it) => it === document.activeElement")
    opened.press("Enter")
    assert opened.page.locator("#queue-rows tr").count() == 5
    kept_quiet(opened)


# -- addresses


ASK = "#partition=%5Brm-1%5Ddefault&application=app-etl&ask=etl-6"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (ASK, "Why it waits"),
        ("#partition=%5Brm-1%5Ddefault&application=app-etl", "Asks that wait (1)"),
        ("#application=app-done", "Completed"),
        ("#node=n2", "Work of others (1)"),
        ("#queue=root.prod", "takes applications"),
        ("#application=nobody-at-all", "No application of this id"),
    ],
)
def test_an_address_opens_what_it_names(
    opens: Opening, town: Served, address: str, said: str
) -> None:
    opened = opens(town)
    opened.page.goto(f"{opened.url}{address}")
    opened.page.reload()
    opened.ready()
    says(opened, "#right", said)
    assert opened.page.url == f"{opened.url}{address}"


def test_what_is_selected_is_in_the_address_and_back_goes_back(
    opens: Opening, town: Served
) -> None:
    opened = opens(town).ready()
    opened.page.click("#ask-rows button:has-text('etl-6')")
    says(opened, "#right", "Why it waits")
    assert opened.page.url == f"{opened.url}{ASK}"
    opened.page.click("#right button:has-text('app-etl')")
    says(opened, "#right", "Asks that wait (1)")
    opened.page.go_back()
    says(opened, "#right", "Why it waits")
    opened.page.go_back()
    opened.page.wait_for_selector("#right", state="hidden")
    opened.page.go_forward()
    says(opened, "#right", "Why it waits")
    opened.press("Escape")
    assert "ask=" not in opened.page.url
    kept_quiet(opened)


def test_a_link_is_copied(opens: Opening, town: Served) -> None:
    opened = opens(town, permissions=["clipboard-read", "clipboard-write"]).ready()
    opened.page.click("#ask-rows button:has-text('etl-6')")
    opened.page.click("#right .copy")
    says(opened, "#right .copy", "Copied")
    assert f"{opened.url}{ASK}" == opened.page.evaluate("() => navigator.clipboard.readText()")


def test_a_partition_that_is_not_there_is_said(opens: Opening, town: Served) -> None:
    opened = opens(town)
    opened.page.goto(f"{opened.url}#partition=nowhere")
    opened.page.reload()
    opened.ready()
    says(opened, "#empty", "There is no partition nowhere here")
    opened.page.select_option("#partition", "[rm-1]default")
    says(opened, "#queue-rows", "prod")
    assert not opened.page.is_visible("#empty")


# -- tables, the last hours


def test_tables_sort(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    says(opened, "#application-rows", "app-need")
    first = "#application-rows tr:first-child"
    head = opened.page.get_by_role("button", name="application", exact=True).last
    before = opened.text("#application-rows")
    opened.page.click("#application-head >> text=state")
    opened.page.wait_for_function(
        "() => document.querySelector('#application-rows tr').innerText.includes('Accepted')"
    )
    opened.page.click("#application-head >> text=state")
    assert "Running" in opened.text(first)
    assert "descending" == opened.page.get_attribute("#application-head [aria-sort]", "aria-sort")
    opened.page.click("#application-head >> text=state")
    assert before.split()[0] == opened.text("#application-rows").split()[0]
    head.click()
    assert "app-done" in opened.text(first)
    opened.page.click("#queue-head >> text=asks wait")
    opened.page.click("#queue-head >> text=asks wait")
    assert "root" == opened.page.locator("#queue-rows .link").first.inner_text()
    assert "root.dev.batch" in opened.text("#queue-rows")
    opened.page.click("#queue-head >> text=asks wait")
    assert "root.dev.batch" not in opened.text("#queue-rows")
    opened.page.click("#actor-head >> text=longest")
    opened.page.click("#flow-head >> text=message")
    kept_quiet(opened)


def test_the_columns_of_the_mailboxes_are_explained(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    told = opened.text("#actors .meaning")
    for name in opened.text("#actor-head").split("\t")[1:]:
        assert name in told
    assert "since the service started" in told


def test_the_last_hours_are_drawn(opens: Opening, served: Served) -> None:
    side = served.part._server._side
    now = served.core.clock.now_ns()
    course = side.courses.by_name.setdefault("[rm-1]default", Course())
    for number in range(300):
        at = now - (300 - number) * SAMPLE_NS
        course.take(Sample(at, number, number * 10**9, number % 7, number * 1000))
    opened = opens(served).ready()
    says(opened, "#course-charts", "at most 299")
    label = opened.page.get_attribute("#course-charts canvas >> nth=0", "aria-label")
    assert "asks that wait, over" in label
    drawn = """() => { const it = document.querySelector('#course-charts canvas');
      const seen = it.getContext('2d').getImageData(0, 0, it.width, it.height).data;
      return seen.filter((value, place) => place % 4 === 3 && value > 0).length }"""
    assert opened.page.evaluate(drawn) > 1000
    opened.page.click("#course-hours >> text=6 h")
    says(opened, "#course-hours [aria-pressed=true]", "6 h")
    kept_quiet(opened)


@pytest.mark.parametrize("width", [500, 360])
def test_where_there_is_little_room_no_row_is_empty(
    opens: Opening, town: Served, width: int
) -> None:
    opened = opens(town)
    opened.page.set_viewport_size({"width": width, "height": 900})
    opened.ready()
    says(opened, "#ask-rows", "need-0")
    empty = """() => [...document.querySelectorAll('main .rows td, main li, main tr')]
      .filter((it) => it.checkVisibility() && it.offsetHeight > 0)
      .filter((it) => ['', '\u2013'].includes(it.innerText.trim()))
      .map((it) => it.outerHTML.slice(0, 120))"""
    assert [] == opened.page.evaluate(empty)
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not opened.page.evaluate(wide)
    cut = """() => [...document.querySelectorAll('main .rows')]
      .filter((it) => it.parentNode.scrollWidth > it.parentNode.clientWidth + 1).map((it) => it.id)"""
    assert [] == opened.page.evaluate(cut)


# -- keys


def test_the_arrows_go_from_node_to_node(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    opened.page.wait_for_function("() => app._grid.hasNames")
    opened.press("g", "ArrowRight")
    assert opened.text("#node-under").startswith("n2: ")
    assert "kept for an ask" in opened.page.text_content("#announced")
    opened.press("Home")
    assert opened.page.text_content("#announced").startswith("n1: ")
    opened.press("Enter")
    says(opened, "#right", "Work of others (1)")
    opened.press("Escape")
    assert opened.page.evaluate("() => document.activeElement.id") == "grid"
    opened.press("n")
    opened.page.keyboard.type("N2")
    opened.page.click("#node-found button")
    says(opened, "#right h2", "n2")
    kept_quiet(opened)


def test_every_key_is_told_and_none_acts_in_a_field(opens: Opening, town: Served) -> None:
    opened = opens(town).ready()
    keys = opened.page.evaluate("() => Object.keys(app._keys)")
    opened.press("?")
    assert [it.inner_text() for it in opened.page.query_selector_all("#key-list kbd")] == keys
    opened.press("Escape")
    for key in keys:
        opened.press(key, "Escape", "Escape")
    opened.press("/")
    opened.page.keyboard.type("?wq")
    assert opened.page.input_value("#application-text") == "?wq"
    assert not opened.page.is_visible("#keys")
    kept_quiet(opened)


# -- logging in


def test_a_token_is_shown_once(opens: Opening) -> None:
    with serving(Guard(token=TOKEN)) as served:
        register(served)
        opened = opens(served)
        opened.page.wait_for_selector("#login[open]")
        kept_quiet(opened)
        opened.page.fill("#token", "wrong")
        opened.press("Enter")
        says(opened, "#login-problem", "this is not the token of this service")
        opened.page.fill("#token", TOKEN)
        opened.press("Enter")
        opened.ready()
        says(opened, "#queue-rows", "prod")
        kept = "() => document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"
        assert opened.page.evaluate(kept) == "{}"
        (cookie,) = opened.page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert TOKEN not in cookie["value"] + opened.page.content()
        opened.page.reload()
        opened.ready()
        opened.page.click("#leave")
        opened.page.wait_for_selector("#login[open]")
        assert opened.page.context.cookies() == []


# -- what comes from outside


def test_names_are_texts_whatever_they_look_like(opens: Opening, served: Served) -> None:
    names = ("n" * 200, BACKWARDS, MARKUP)
    served.nodes(*(node(it, vcore=1000) for it in names))
    for it in names:
        served.application(it, "root.prod", si.UserGroupInformation(user="ann", groups=("ops",)))
        served.asks(it, it, f"{it}-2", vcore=1000)
    opened = opens(served).ready()
    says(opened, "#ask-rows", MARKUP)
    opened.page.wait_for_function("() => app._grid.hasNames")
    opened.press("g", "End", "Enter")
    says(opened, "#right h2", MARKUP)
    opened.page.click(f"#ask-rows button:has-text('{MARKUP}') >> nth=0")
    says(opened, "#right", "Why it waits")
    for it in names:
        shown = it.encode("ascii", "backslashreplace").decode()
        opened.page.get_by_role("button", name=shown, exact=True).last.click()
        says(opened, "#right", "What it went through")
    found = "() => document.querySelectorAll('img, iframe, svg, [onerror]').length"
    assert opened.page.evaluate(found) == 0
    seen = opened.page.evaluate("() => document.body.innerText")
    assert "\\u202eppa\\u200f" in seen
    assert "\u202e" not in seen
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not opened.page.evaluate(wide)
    kept_quiet(opened)


# -- large


def test_ten_thousand_nodes(opens: Opening, served: Served) -> None:
    served.nodes(*(node(f"node-{number:05}") for number in range(10_000)))
    served.application("app-1", "root.dev.batch", BOB, tags={"namespace": "ns"})
    served.asks("app-1", *(f"a-{number}" for number in range(40)))
    opened = opens(served).ready()
    says(opened, "#node-total", "10,000")
    opened.page.wait_for_function("() => app._grid.hasNames")
    # What stands below is seen without a search for it.
    assert opened.page.locator("#grid").bounding_box()["height"] <= 420
    assert opened.page.locator("#troubles-title").bounding_box()["y"] < 900
    opened.press("g", "End")
    assert opened.text("#node-under").startswith("node-09999: ")
    opened.press("Enter")
    says(opened, "#right h2", "node-09999")
    opened.press("n")
    opened.page.keyboard.type("0123")
    assert opened.page.locator("#node-found li").count() == 11
    kept_quiet(opened)
