"""The page in a real browser: it draws, it is silent, it asks nobody for anything, and the legend works."""

import os
import re
import shutil
from pathlib import Path

import pytest

from aggbandit.experiments import claims
from aggbandit.experiments.claims.base import FAILS, HOLDS, OPEN, Chart, Finding, Outcome, Series
from aggbandit.experiments.one_episode import one_episode
from aggbandit.mdp import instances
from aggbandit.reporting import episode_text
from aggbandit.reporting.claims_page import claims_page
from aggbandit.reporting.page import report_page
from chromium import Chromium

REQUIRED = "AGGBANDIT_BROWSER_REQUIRED"  # set where a browser must be there, as in .ci/run
INSTALL = "the browser tests need a 'chromium' on PATH; on Debian or Ubuntu: apt-get install chromium"
DRAWN = "document.body.dataset.drawn === 'true'"
CHARTS = ("linear", "loglog", "root", "share")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(INSTALL)
        pytest.skip(INSTALL)
    opened = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def path(three, tmp_path_factory):
    """The page of three curves as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(three), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, path):
    """The page opened and drawn; whatever a test does with it, it must stay silent and ask nobody."""
    browser.appear()
    browser.open(path.as_uri())
    browser.wait_for(DRAWN)
    yield browser
    assert browser.complaints == []
    assert [address for address in browser.requests if not address.startswith("data:")] == [path.as_uri()]


def test_every_chart_draws_every_curve_with_its_band(page):
    for view in CHARTS:
        assert page.ask(curves_of(view)) == 3, view
        assert page.ask(f"document.querySelectorAll('[data-view={view}] svg .mark-area path').length") == 3, view
    assert page.ask("document.querySelectorAll('[data-view=time] svg .mark-symbol path').length") == 3
    heights = page.ask("[...document.querySelectorAll('.chart svg')].map((svg) => svg.getBoundingClientRect().height)")
    assert len(heights) == 5
    assert min(heights) > 100


def curves_of(view):
    """Paths of the curves themselves: the ones that are not all of one colour, as fitted lines are."""
    return (
        f"[...document.querySelectorAll('[data-view={view}] svg .mark-line path')]"
        ".filter((path) => path.getAttribute('stroke').startsWith('var(')).length"
    )


def test_a_click_on_the_legend_hides_a_curve_and_another_shows_it(page):
    labels = "[data-view=linear] svg .role-axis-label text"
    top = f"[...document.querySelectorAll('{labels}')].map((label) => label.textContent).join()"
    before = page.ask(top)
    page.ask("document.querySelector('.legend button[data-key=c0]').click()")
    page.wait_for(DRAWN)
    for view in CHARTS:
        assert page.ask(curves_of(view)) == 2, view
    assert page.ask("document.querySelectorAll('[data-view=time] svg .mark-symbol path').length") == 2
    assert page.ask("document.querySelector('.legend button[data-key=c0]').getAttribute('aria-pressed')") == "false"
    assert page.ask(top) != before  # the axis makes use of the room
    page.ask("document.querySelector('.legend button[data-key=c0]').click()")
    page.wait_for(DRAWN)
    assert page.ask(curves_of("linear")) == 3


def test_all_curves_may_be_hidden(page):
    page.ask("document.querySelectorAll('.legend button').forEach((button) => button.click())")
    page.wait_for(DRAWN)
    for view in CHARTS:
        assert page.ask(curves_of(view)) == 0


def test_hovering_tells_the_values(page):
    box = page.ask("document.querySelector('[data-view=linear] svg').getBoundingClientRect().toJSON()")
    page.move_to(box["x"] + 0.7 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for("document.querySelector('#vg-tooltip-element.visible') !== null")
    told = page.ask("document.querySelector('#vg-tooltip-element').textContent")
    assert re.search(r"learnerpo-(un)?known", told)
    assert re.search(r"seesaggregate, dynamics (un)?known", told)
    assert re.search(r"episodes\d", told)
    assert re.search(r"regret[\d\u202f.]+ ± [\d.]+", told)
    assert "%" in told
    assert "undefined" not in told


def test_colours_follow_the_scheme_and_paper_is_light(page):
    ink = "getComputedStyle(document.querySelector('[data-view=linear] svg .role-axis-title text')).fill"
    curve = "getComputedStyle(document.querySelector('[data-view=linear] svg .mark-line path')).stroke"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = [page.ask(what) for what in (ink, curve, ground)]
    page.appear(dark=True)
    dark = [page.ask(what) for what in (ink, curve, ground)]
    page.appear(dark=True, printed=True)
    paper = [page.ask(what) for what in (ink, curve, ground)]
    assert brightness(light[2]) > 200 > 100 > brightness(light[0])
    assert brightness(dark[2]) < 50 < 200 < brightness(dark[0])
    assert light[1] != dark[1]
    assert paper == ["rgb(0, 0, 0)", light[1], "rgb(255, 255, 255)"]


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_nothing_sticks_out_at_the_side(page, width):
    page.appear(width=width)
    assert page.ask("document.documentElement.scrollWidth") == width
    page.wait_for(
        "[...document.querySelectorAll('.chart svg')].every((svg) => svg.getBoundingClientRect().right <= innerWidth)"
    )


@pytest.mark.parametrize(("width", "printed"), [(820, False), (1280, False), (700, True)])  # 700: A4 less its margins
def test_the_summary_is_whole_without_scrolling(page, width, printed):
    page.appear(width=width, printed=printed)
    edges = "[document.querySelector('table.summary'), document.querySelector('main')]"
    inner, outer = page.ask(f"{edges}.map((one) => one.getBoundingClientRect().right)")
    assert inner <= outer


def test_of_many_curves_a_race_is_shown_and_hidden_at_once(browser, many, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report_page(many), encoding="utf-8")
    browser.appear()
    browser.open(path.as_uri())
    browser.wait_for(DRAWN)
    dots = "document.querySelectorAll('[data-view=time] svg .mark-symbol path').length"
    height = "document.querySelector('[data-view=time] svg').getBoundingClientRect().height"
    assert (browser.ask(curves_of("linear")), browser.ask(dots)) == (6, 6)
    low = browser.ask(height)
    for race, to, expected in ((0, "true", 16), (1, "false", 13), (0, "false", 0)):
        browser.ask(f"document.querySelectorAll('button[data-to={to}]')[{race}].click()")
        browser.wait_for(DRAWN)
        assert (browser.ask(curves_of("linear")), browser.ask(dots)) == (expected, expected)
        if race == 0 and to == "true":
            assert browser.ask(height) > low + 200  # a line for each
    assert browser.complaints == []
    # the buttons of so many would cover the charts
    assert browser.ask("getComputedStyle(document.querySelector('.legend')).position") == "static"


def test_a_race_begins_with_one_line_on_a_phone(browser, many, tmp_path):
    """Every cell of the row used to have one of its own."""
    path = tmp_path / "report.html"
    path.write_text(report_page(many), encoding="utf-8")
    browser.appear(width=390)
    browser.open(path.as_uri())
    lines = "[...document.querySelectorAll('.summary tr.race td')].map((cell) => getComputedStyle(cell).borderTopWidth)"
    assert set(browser.ask(lines)) == {"0px"}
    assert browser.ask("getComputedStyle(document.querySelector('.summary tr.race')).borderTopWidth") == "2px"


def test_long_names_break_between_arguments(browser, made_up, tmp_path):
    long = "ftrl-logbarrier:dynamics=unknown,beta_scale=0.001,radius_scale=0.03,bonus_scale=0.1"
    path = tmp_path / "report.html"
    path.write_text(report_page([made_up("uniform", 1.0), made_up(long)]), encoding="utf-8")
    browser.appear(width=1280)
    browser.open(path.as_uri())
    name = "document.querySelectorAll('.summary td.name')[1]"
    assert browser.ask(f"{name}.textContent") == long
    # where it is broken: letters one after the other at different heights
    broken = browser.ask(
        f"(() => {{ const tops = []; for (const text of {name}.childNodes) for (let i = 0; i < text.length; i++) {{"
        "const range = document.createRange(); range.setStart(text, i); range.setEnd(text, i + 1);"
        "tops.push([text.data[i], range.getBoundingClientRect().top]); }"
        "return tops.filter(([, top], i) => i + 1 < tops.length && tops[i + 1][1] > top).map(([c]) => c); })()"
    )
    assert broken
    assert set(broken) <= {":", ","}


@pytest.fixture(scope="module")
def still_pages(tmp_path_factory):
    """The pages without a script: claims with a figure of each kind and every verdict, and an episode."""
    folder = tmp_path_factory.mktemp("still")
    lines = Chart(
        x="K", y="regret", series=[Series("po-known (aggregate, dynamics known)", [1, 10], [1, 3], [0.5, 2], [2, 4])]
    )
    bars = Chart(x="", y="µs", series=[Series("a", [0], [1], [0.5], [2]), Series("b", [0], [20])], bars=True)
    told = "0.75 [0.73, 0.78], 0.74 [0.73, 0.75], 0.86 [0.86, 0.87]"
    findings = [
        Finding(f"R(po-unknown) over the order, {v}", told, "bounded as K grows", v) for v in (HOLDS, FAILS, OPEN)
    ]
    tested = [
        (claims.get("theorem-1"), Outcome(findings, lines), 61.0),
        (claims.get("table-1"), Outcome(findings, bars), 0.1),
    ]
    (folder / "claims.html").write_text(claims_page(tested, {"effort": "quick"}), encoding="utf-8")
    told = one_episode(instances.make("dialogue"), "po-unknown", number=20, episodes=200)
    (folder / "episode.html").write_text(episode_text.page(told), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["claims.html", "episode.html"])
@pytest.mark.parametrize(("width", "printed"), [(390, False), (1280, False), (700, True)])
def test_claims_and_episodes_are_silent_and_whole(browser, still_pages, name, width, printed):
    """No complaint, no request, and nothing that a reader would have to scroll sideways to see."""
    path = still_pages / name
    browser.appear(width=width, printed=printed)
    browser.open(path.as_uri())
    assert browser.complaints == []
    assert [address for address in browser.requests if not address.startswith("data:")] == [path.as_uri()]
    assert browser.ask("document.documentElement.scrollWidth") == width
    assert browser.ask("[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)")
    outside = (
        "[...document.querySelectorAll('td, svg, dd')].filter((one) => one.getBoundingClientRect().right > innerWidth)"
    )
    assert browser.ask(f"{outside}.length") == 0
    assert browser.ask("document.querySelectorAll('td').length") > 20
    assert path.stat().st_size < 2_000_000


@pytest.mark.parametrize("name", ["claims.html", "episode.html"])
def test_claims_and_episodes_follow_the_scheme(browser, still_pages, name):
    browser.open((still_pages / name).as_uri())
    seen = "['color', 'backgroundColor'].map((what) => getComputedStyle(document.body)[what])"
    for dark, printed in ((False, False), (True, False), (True, True)):
        browser.appear(dark=dark, printed=printed)
        ink, ground = (brightness(colour) for colour in browser.ask(seen))
        assert (ink > 200 > 50 > ground) if dark and not printed else (ground > 200 > 50 > ink)


def test_the_overview_leads_to_each_claim_and_counts_its_verdicts(browser, still_pages):
    browser.appear()
    browser.open((still_pages / "claims.html").as_uri())
    rows = browser.ask("[...document.querySelectorAll('.overview tbody tr')].map((row) => row.innerText.split('\\t'))")
    assert [row[1:] for row in rows] == [["1", "1", "1", "1 min 1 s"], ["1", "1", "1", "100 ms"]]
    links = (
        "[...document.querySelectorAll('.overview a')].map((a) => document.querySelector(a.getAttribute('href')).id)"
    )
    assert browser.ask(links) == ["theorem-1", "table-1"]
    assert browser.ask("document.querySelectorAll('svg').length") == 2


def test_the_watch_sees_requests_and_complaints(browser, tmp_path):
    """What the tests above rely on is itself fed a page that does all it should not."""
    other = tmp_path / "other.js"
    other.write_text("console.log('said something'); missing();")
    path = tmp_path / "bad.html"
    path.write_text(f"<script src='{other.as_uri()}'></script>")
    browser.open(path.as_uri())
    assert browser.requests == [path.as_uri(), other.as_uri()]
    assert "said something" in browser.complaints
    assert any("missing is not defined" in one for one in browser.complaints)


def test_continuous_integration_insists_on_the_browser():
    script = Path(__file__).parents[2] / ".ci" / "run"
    assert f"export {REQUIRED}=1" in script.read_text(encoding="utf-8")
