"""The page as text: all inside, nothing from outside, readable without its scripts."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.reporting import numbers
from aggbandit.reporting.page import report_page, write_page

TWO_MEGABYTES = 2_000_000
LOADING = {"src", "href", "srcset", "poster", "action", "formaction", "background", "data"}


class Reader(HTMLParser):
    """Every tag with its attributes, and the text outside scripts and styles."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.scripts, self._inside = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = tag

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
        elif not self._inside:
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def outside(reader):
    """Every address that a browser would load while opening the page."""
    found = [value for _, attributes in reader.tags for name, value in attributes.items() if name in LOADING and value]
    return [value for value in found if not value.startswith(("data:", "#"))]


def data_of(reader):
    return json.loads(reader.scripts[0])["sections"]


@pytest.fixture(scope="module")
def page(three):
    return report_page(three, title="A title", about={"seed": "7"}, warnings=["Stopped <here>."])


@pytest.fixture(scope="module")
def reader(page):
    return read(page)


def test_nothing_is_loaded_from_outside(page, reader):
    assert outside(reader) == []
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert not re.search(r"url\(|@import|https?:", styles)
    (policy,) = [a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "*" not in policy


def test_the_check_for_outside_sees_one():
    assert outside(read('<img src="https://example.org/x.png"><a href="data:,">')) == ["https://example.org/x.png"]


def test_it_is_small(page):
    assert len(page.encode()) < TWO_MEGABYTES


def test_hundreds_of_curves_are_thinned_to_stay_small(made_up):
    curves = [made_up(f"x{i}", setting=f"setting {i // 10}") for i in range(200)]
    page = report_page(curves)
    assert len(page.encode()) < TWO_MEGABYTES
    drawn = data_of(read(page))[0]["curves"][0]
    assert len(drawn["k"]) < len(curves[0].episodes)
    assert (drawn["k"][0], drawn["k"][-1]) == (1, 20_000)


def test_it_fits_phones_and_both_colour_schemes(reader):
    metas = {a["name"]: a["content"] for tag, a in reader.tags if tag == "meta" and "name" in a}
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert metas["color-scheme"] == "light dark"


def test_the_tables_read_without_scripts(reader, three):
    text = numbers.simple(" ".join(reader.text))
    assert "A title" in text
    assert "Stopped <here>." in text
    assert "regret after 20 000 episodes" in text
    for one in three:
        mean, half = one.band()
        assert numbers.simple(numbers.with_band(mean[-1], half[-1])) in text
        assert one.text in text
        assert one.race in text
    assert "± is a 95 % t-interval for the mean over 8 replicas." in text
    assert "the step was lowered" in text


def test_a_legend_button_per_curve_and_a_chart_per_view(reader):
    buttons = [a for tag, a in reader.tags if tag == "button"]
    assert [(a["data-key"], a["aria-pressed"]) for a in buttons] == [("c0", "true"), ("c1", "true"), ("c2", "true")]
    views = [a["data-view"] for tag, a in reader.tags if tag == "figure"]
    assert views == ["linear", "loglog", "root", "share", "time"] == list(data_of(reader)[0]["specs"])


def test_what_is_tuned_or_reconstructed_is_marked_beside_its_name(made_up):
    marked = read(report_page([made_up("repo:step_scale=3", tuned=True, reconstructed=True), made_up("dlb")]))
    assert "aggregate, dynamics unknown, tuned, reconstructed" in marked.text
    assert "aggregate, dynamics unknown" in marked.text
    assert data_of(marked)[0]["curves"][0]["race"] == "aggregate, dynamics unknown, tuned, reconstructed"


def test_the_data_are_the_curves(reader, three):
    for one, drawn in zip(three, data_of(reader)[0]["curves"], strict=True):
        mean, half = one.band()
        assert drawn["k"] == one.episodes.tolist()
        np.testing.assert_allclose(drawn["mean"], mean, rtol=1e-5)
        np.testing.assert_allclose(drawn["half"], half, rtol=1e-5)
        np.testing.assert_allclose(drawn["base"], three[0].regret.mean(axis=0), rtol=1e-5)
        first, last = drawn["fit"]
        slope = np.log(last[1] / first[1]) / np.log(last[0] / first[0])
        assert slope == pytest.approx(one.slope().value)


def test_some_checkpoints_stand_as_numbers(reader, three):
    text = numbers.simple(" ".join(reader.text))
    one = three[1]
    at = int(np.argmin(np.abs(one.episodes - 1000)))
    mean, half = one.band()
    assert numbers.simple(numbers.with_band(mean[at], half[at])) in text


def test_one_replica_is_drawn_without_a_band_and_says_so(made_up):
    found = read(report_page([made_up("x", replicas=1)]))
    assert data_of(found)[0]["curves"][0]["half"] is None
    assert "One replica: no bands." in " ".join(found.text)


def test_without_the_uniform_policy_there_is_no_share(made_up):
    found = data_of(read(report_page([made_up("x"), made_up("y")])))[0]
    assert "share" not in found["specs"]
    assert found["curves"][0]["base"] is None


def test_names_cannot_break_out(made_up):
    name = "</script><script>alert(1)</script><b title='\"&"
    reader = read(report_page([made_up("uniform"), made_up(name, setting="random · switching losses")], title=name))
    assert data_of(reader)[0]["curves"][1]["label"] == name
    assert name in "".join(reader.text)
    assert len([tag for tag, _ in reader.tags if tag == "script"]) == 3
    assert not [tag for tag, _ in reader.tags if tag == "b"]


def test_several_settings_are_sections_of_their_own(made_up):
    curves = [made_up("uniform", setting="one"), made_up("x", setting="two"), made_up("y", setting="two")]
    reader = read(report_page(curves))
    assert [a["id"] for tag, a in reader.tags if tag == "section"] == ["section-0", "section-1"]
    assert [len(part["curves"]) for part in data_of(reader)] == [1, 2]

    links = [a["href"] for tag, a in reader.tags if tag == "a"]
    assert links == ["#section-0", "#section-1"]
    assert not [a for tag, a in read(report_page(curves[:1])).tags if tag == "a"]


def test_of_many_curves_the_best_of_each_race_are_shown_at_first(many):
    reader = read(report_page(many))
    pressed = [a["data-key"] for tag, a in reader.tags if tag == "button" and a.get("aria-pressed") == "true"]
    expected = ["uniform", "unknown-10:step_scale=10", "unknown-11:step_scale=11", "po-known", "known-8", "known-9"]
    assert [many[int(key[1:])].label for key in pressed] == expected
    for spec in data_of(reader)[0]["specs"].values():
        (shown,) = [one["value"] for one in spec["params"] if one["name"] == "shown"]
        assert sorted(shown) == sorted(pressed)
    assert "The charts show 6 of 24 at first" in "".join(reader.text)
    groups = [a["data-keys"].split() for tag, a in reader.tags if tag == "button" and "data-keys" in a]
    assert groups[0] == groups[1] == ["c0", *(f"c{i}" for i in range(12, 24))]  # show all, hide all
    assert groups[2] == groups[3] == [f"c{i}" for i in range(1, 12)]


def test_nothing_to_report_is_told():
    with pytest.raises(InvalidInputError, match="needs at least one result"):
        report_page([])


def test_the_file_is_the_page(tmp_path, page):
    write_page(tmp_path / "report.html", page)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
