"""The claims: complete, told in full, and judged by their numbers."""

import re
from pathlib import Path

import numpy as np
import pytest

from aggbandit.cli.main import main
from aggbandit.errors import UnknownNameError
from aggbandit.experiments import claims
from aggbandit.experiments.claims import base
from aggbandit.experiments.claims.base import FAILS, HOLDS, OPEN, Chart, Finding, Outcome, Series, Slope
from aggbandit.reporting.claims_page import chart_figure, claims_page


@pytest.mark.parametrize("name", claims.names())
def test_every_claim_says_what_it_is(name: str) -> None:
    claim = claims.get(name)
    assert claim.id == name
    for text in (claim.title, claim.statement, claim.test, claim.false_if, claim.look_at):
        assert len(text) > 15


@pytest.mark.parametrize("name", ["identities", "theorem-3"])
def test_quick_claims_measure_and_hold(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The two that are fast enough to be put to the test here, through the command."""
    assert main(["claims", name, "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert out.count(HOLDS) >= 4
    assert FAILS not in out
    html = (tmp_path / "new" / "claims.html").read_text(encoding="utf-8")
    assert "<svg" in html
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", html)
    assert len(html) < 2_000_000


def test_list_and_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in claims.names())
    assert main(["claims", "theorem-4"]) == 2
    assert "Did you mean 'theorem-" in capsys.readouterr().err
    with pytest.raises(UnknownNameError, match="There is no claim 'x'"):
        claims.get("x")


def test_verdicts_on_slopes_tell_a_half_from_two_thirds() -> None:
    assert base.near_half("", Slope(0.51, 0.48, 0.55)).verdict == HOLDS
    assert base.near_half("", Slope(0.66, 0.62, 0.70)).verdict == OPEN
    assert base.near_half("", Slope(0.58, 0.45, 0.70)).verdict == OPEN
    assert base.near_half("", Slope(1.0, 1.0, 1.0)).verdict == OPEN
    assert base.near_half("", Slope(0.3, 0.25, 0.35)).verdict == HOLDS  # an upper bound allows slower growth
    assert base.at_most("", 1.0, 0.5).verdict == FAILS


def test_slope_and_interval_of_made_up_regrets() -> None:
    rng = np.random.default_rng(0)
    Ks = [100.0, 1000.0, 10_000.0]
    finals = [3 * K**0.5 * rng.normal(1, 0.05, 64) for K in Ks]
    found = base.slope_between(finals, Ks)
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.05
    linear = base.slope_between([K * rng.normal(1, 0.05, 64) for K in Ks], Ks)
    assert linear.low > 0.9
    assert base.exponent([1, 2, 4], [5, 20, 80]) == pytest.approx(2.0)


def test_the_page_escapes_and_marks() -> None:
    claim = claims.get("identities")
    findings = [Finding("a < b", "1", "2", HOLDS), Finding("c", "3", "4", FAILS), Finding("d", "5", "6", OPEN)]
    chart = Chart(x="K", y="R", series=[Series("<one>", [1, 10], [1, 3], [0.5, 2], [2, 4]), Series("b", [1], [1])])
    html = claims_page([(claim, Outcome(findings, chart), 1.0)], {"effort": "<quick>"})
    assert "a &lt; b" in html
    assert "&lt;quick&gt;" in html
    assert "✓ holds" in html
    assert "✗ does not hold" in html
    assert "– not reached" in html


def test_figures_have_what_the_chart_says() -> None:
    lines = chart_figure(
        Chart(x="K", y="R", series=[Series("a", [1, 10], [1, 3]), Series("g", [1, 10], [1, 2], guide=True)])
    )
    axes = lines.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "g"]
    assert axes.get_xscale() == "log"
    bars = chart_figure(
        Chart(x="", y="µs", series=[Series("a", [0], [1]), Series("b", [0], [2])], bars=True, log=False)
    )
    assert len(bars.axes[0].patches) == 2
