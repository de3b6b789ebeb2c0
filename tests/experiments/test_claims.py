"""The claims: complete, told in full, and judged by their numbers."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.cli.main import main
from aggbandit.errors import UnknownNameError
from aggbandit.experiments import claims
from aggbandit.experiments.claims import base, closed_form, identities, looseness, semi_bandit, table_1, theorem_3
from aggbandit.experiments.claims.base import FAILS, HOLDS, OPEN, Chart, Estimate, Finding, Outcome, Series
from aggbandit.experiments.diagnosis import diagnose
from aggbandit.reporting.claims_page import chart_figure, claims_page
from naive import planning as naive


@pytest.mark.parametrize("name", claims.names())
def test_every_claim_says_what_it_is(name: str) -> None:
    claim = claims.get(name)
    assert claim.id == name
    for text in (claim.title, claim.statement, claim.test, claim.false_if, claim.look_at):
        assert len(text) > 15


def test_a_quick_claim_measures_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fastest one, through the command: table, summary and page."""
    assert main(["claims", "identities", "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert out.count(f"✓ {HOLDS}") == 6
    assert FAILS not in out.partition("claim  ")[0]
    for heading in ("measured", "expected", "verdict", "time"):
        assert heading in out
    assert re.search(r"^ ?identities +6 +– +– +[\d.]+ m?s", out, flags=re.MULTILINE)
    html = (tmp_path / "new" / "claims.html").read_text(encoding="utf-8")
    assert "<svg" in html
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", html)
    assert len(html) < 2_000_000


def test_full_says_first_how_long_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(
        claims.get("identities"), play=lambda full, tell: Outcome([], Chart(x="", y="", bars=True, log=False))
    )
    monkeypatch.setattr(claims, "get", lambda name: replace(short, minutes=45.0))
    assert main(["claims", "a", "b", "a", "--full", "--out", str(tmp_path)]) == 0  # a name given twice is played once
    assert "about 1 h 30 min for 2 claims on two cores" in capsys.readouterr().err


def test_what_is_through_outlives_an_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(full: bool, tell: base.Tell) -> Outcome:
        raise KeyboardInterrupt

    through = replace(
        claims.get("identities"), play=lambda full, tell: Outcome([], Chart(x="", y="", bars=True, log=False))
    )
    monkeypatch.setattr(claims, "get", lambda name: through if name == "a" else replace(through, play=stopped))
    main(["claims", "a", "b", "--out", str(tmp_path)])
    assert (tmp_path / "claims.html").read_text(encoding="utf-8").count("<section") == 1


def test_list_and_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in claims.names())
    assert main(["claims", "theorem-4"]) == 2
    assert "Did you mean 'theorem-" in capsys.readouterr().err
    with pytest.raises(UnknownNameError, match="There is no claim 'x'"):
        claims.get("x")


STILL = Estimate(0.75, 0.74, 0.76)


@pytest.mark.parametrize(
    ("last", "before", "share", "verdict"),
    [
        (Estimate(0.51, 0.48, 0.55), STILL, 0.3, HOLDS),
        (Estimate(0.30, 0.25, 0.35), STILL, 0.3, HOLDS),  # an upper bound allows slower growth
        (Estimate(0.667, 0.64, 0.69), Estimate(0.667, 0.64, 0.69), 0.3, FAILS),  # K^(2/3), and it stays
        (STILL, STILL, 0.3, FAILS),
        (Estimate(1.0, 1.0, 1.0), Estimate(1.0, 1.0, 1.0), 0.3, FAILS),  # learnt once, then linear
        (Estimate(1.0, 1.0, 1.0), Estimate(1.0, 1.0, 1.0), 1.0, OPEN),  # uniform: nothing learnt so far
        (Estimate(0.64, 0.63, 0.65), STILL, 0.3, OPEN),  # on its way down
        (Estimate(0.58, 0.45, 0.70), STILL, 0.3, OPEN),  # cannot tell
        (Estimate(0.59, 0.52, 0.66), STILL, 0.3, HOLDS),
        (Estimate(float("nan"), float("nan"), float("nan")), STILL, 0.3, OPEN),
    ],
)
def test_growth_tells_a_half_from_two_thirds(last: Estimate, before: Estimate, share: float, verdict: str) -> None:
    assert base.growth(last, before, share) == verdict


def test_made_up_regrets_are_told_apart() -> None:
    """√K holds, K^(2/3) does not, and a linear regret that nothing was learnt in is open."""
    rng = np.random.default_rng(0)
    Ks = [10**4, 10**5, 10**6]

    def verdicts(power: float, share: float) -> set[str]:
        finals = [3.0 * K**power * rng.normal(1, 0.05, 32) for K in Ks]
        return {one.verdict for one in base.growth_findings("", finals, Ks, share, lambda K: K**0.5, "√K")}

    assert verdicts(0.5, 0.2) == {HOLDS}
    for signs in ((1, -1, 1), (1, 1, -1)):  # against a fixed policy regret may be negative: that is no growth
        finals = [sign * 3.0 * K**0.5 * rng.normal(1, 0.05, 32) for sign, K in zip(signs, Ks, strict=True)]
        assert {one.verdict for one in base.growth_findings("", finals, Ks, 0.2, lambda K: K**0.5, "√K")} == {OPEN}
    assert verdicts(2 / 3, 0.2) == {FAILS}
    assert verdicts(1.0, 1.0) == {OPEN}


def test_comparisons_need_the_whole_interval() -> None:
    for found, verdict in (
        (Estimate(0.9, 0.8, 1.0), HOLDS),
        (Estimate(1.0, 0.9, 1.1), OPEN),
        (Estimate(1.2, 1.1, 1.3), FAILS),
        (Estimate(float("nan"), float("nan"), float("nan")), OPEN),
    ):
        assert base.at_most("", found, 1.0).verdict == verdict
        mirrored = Estimate(-found.value, -found.high, -found.low)
        assert base.at_least("", mirrored, -1.0).verdict == verdict
    assert base.at_most("", 1.0, 0.5).verdict == FAILS
    assert base.at_most("", 0.5, 0.5).measured == "0.5"
    assert base.at_most("", Estimate(-0.001, -0.3, 0.2), 0.5, "{:.1f}").measured == "0.0 [-0.3, 0.2]"


def test_exponents_and_means_of_made_up_regrets() -> None:
    rng = np.random.default_rng(1)
    sizes = [4.0, 8.0, 16.0, 32.0]
    for power, verdict in ((0.5, HOLDS), (1.0, FAILS)):
        found = base.exponent(sizes, [5.0 * size**power * rng.normal(1, 0.05, 16) for size in sizes])
        assert found.low < power < found.high
        assert base.at_most("", found, 0.6).verdict == verdict
    assert base.power("", Estimate(0.7, 0.68, 0.72), 0.5, 1.0, 0.75).verdict == HOLDS
    assert base.power("", Estimate(0.8, 0.70, 0.90), 0.5, 1.0, 0.75).verdict == OPEN
    assert base.power("", Estimate(1.1, 1.02, 1.2), 0.5, 1.0, 0.75).verdict == FAILS
    negative = base.exponent([1.0, 2.0], [np.array([1.0, 2.0]), np.array([-3.0, 1.0])])
    assert base.power("", negative, 0.5, 1.0, 0.75).verdict == OPEN
    # a positive mean, and draws of its replicas that are not: once clipped, they made slopes out of nothing
    doubtful = base.slope_between([np.full(4, 10.0), np.array([-9.0, 1.0, 1.0, 9.0])], [10, 100])
    assert np.isfinite(doubtful.value)
    assert np.isnan([doubtful.low, doubtful.high]).all()
    mean = base.mean_over(np.array([9.0, 11.0, 10.0, 10.0]), 5.0)
    half = 3.182446 * np.sqrt(2 / 3) / 2 / 5  # t(0.975, 3) · s / √n, in units of 5
    np.testing.assert_allclose(mean, (2.0, 2.0 - half, 2.0 + half), rtol=1e-6)


def test_the_ranking_counts_pairs() -> None:
    rng = np.random.default_rng(2)
    level = rng.normal(100.0, 20.0, 8)  # of the instance, common to all
    bounds = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0}

    def verdict(**means: float) -> str:
        measured = {name: level + mean + rng.normal(0, 0.5, 8) for name, mean in means.items()}
        return table_1.ranking(measured, bounds).verdict

    assert verdict(a=0.0, b=10.0, c=10.0, d=20.0) == HOLDS
    assert verdict(a=0.0, b=12.0, c=10.0, d=20.0) == HOLDS  # b and c have the same bound
    assert verdict(a=10.0, b=0.0, c=10.0, d=20.0) == FAILS
    assert verdict(a=0.0, b=10.0, c=20.0, d=20.0) == OPEN


def test_no_worse_than_uniform_is_not_yet_learnt() -> None:
    assert table_1.learnt(Estimate(0.48, 0.38, 0.58)) == HOLDS
    assert table_1.learnt(Estimate(0.99, 0.98, 0.999)) == OPEN
    assert table_1.learnt(Estimate(1.2, 1.1, 1.3)) == FAILS


def test_the_semi_bandit_verdict() -> None:
    assert semi_bandit.matches(Estimate(-0.05, -0.1, 0.02), True) == HOLDS
    assert semi_bandit.matches(Estimate(0.2, 0.15, 0.25), True) == FAILS
    assert semi_bandit.matches(Estimate(0.1, 0.05, 0.15), True) == OPEN
    assert semi_bandit.matches(Estimate(0.0, 0.0, 0.0), False) == OPEN  # two that learn nothing match trivially


@pytest.mark.parametrize(("begins", "verdict"), [(0.5, FAILS), (0.9, HOLDS), (0.99, OPEN)])
def test_the_semi_bandit_ratio_counts_from_where_both_have_learnt(
    monkeypatch: pytest.MonkeyPatch, begins: float, verdict: str
) -> None:
    """A learner that hardly moved at the first K has a ratio there that says nothing of the growth afterwards."""
    shares = {
        0.5: {"po-unknown": (0.5, 0.3, 0.2), "po-dilated": (0.5, 0.2, 0.1)},  # learnt throughout, and it doubles
        0.9: {"po-unknown": (0.3, 0.3, 0.1), "po-dilated": (0.9, 0.3, 0.1)},  # three times as much, before it learnt
        0.99: {"po-unknown": (0.9, 0.9, 0.7), "po-dilated": (0.9, 0.9, 0.7)},  # both have learnt at the last K alone
    }[begins]
    Ks = [10**3, 5 * 10**3, 25 * 10**3]

    def regrets(kind: str, seeds: object, size: object, learner: str, K: int, replicas: int, **_: object) -> object:
        return np.full(replicas, K * (1.0 if learner == "uniform" else shares[learner][Ks.index(K)]))

    monkeypatch.setattr(semi_bandit, "final_regrets", regrets)
    found = semi_bandit.play(False, lambda text: None).findings
    assert [one.verdict for one in found] == [verdict, verdict, HOLDS]


def test_times_are_compared_with_their_spread() -> None:
    history = np.array([[0, 0.0], [10, 1.0], [20, 2.0], [30, 6.0], [40, 7.0], [50, 8.0]])
    found = closed_form.of_blocks(history)  # one block of five took four times as long
    assert found.value == pytest.approx(0.1)
    slow, fast = Estimate(3e-6, 2.9e-6, 3.1e-6), Estimate(1e-6, 0.9e-6, 1.1e-6)
    assert closed_form.cheaper("x", fast, "y", slow, (3, 3, 2)).verdict == HOLDS
    assert closed_form.cheaper("x", slow, "y", fast, (3, 3, 2)).verdict == FAILS
    assert closed_form.cheaper("x", fast, "y", fast, (3, 3, 2)).verdict == OPEN


def test_a_part_beyond_its_bound_fails_unless_an_event_did() -> None:
    mdp = base.small_random(1)
    found = diagnose(mdp, base.fixed(mdp, 1), "po-unknown", episodes=50)
    assert {one.verdict for one in looseness.parts_over_bounds(2, 50, found)} == {HOLDS}
    too_large = replace(found, parts={**found.parts, "reg": 2 * found.bounds["reg"]})
    verdicts = [one.verdict for one in looseness.parts_over_bounds(2, 50, too_large)]
    assert verdicts[0] == FAILS
    assert verdicts[2] == FAILS  # nor do they add up
    # what exceeds a negative bound has a ratio below 1 to it
    negative = replace(found, bounds={**found.bounds, "bonus": -found.bounds["bonus"]})
    assert looseness.parts_over_bounds(2, 50, negative)[0].verdict == FAILS
    unknown = replace(found, parts={**found.parts, "bonus": np.full(found.regret.shape, np.nan)})
    assert looseness.parts_over_bounds(2, 50, unknown)[0].verdict == FAILS
    event = replace(found.good_events[0], value=np.array([1.0]), bound=np.array([0.0]))
    unlucky = replace(too_large, good_events=[event])
    assert [one.verdict for one in looseness.parts_over_bounds(2, 50, unlucky)][:2] == [OPEN, OPEN]
    wide = replace(found, regret=np.full(found.regret.shape, 1e9))
    assert looseness.parts_over_bounds(2, 50, wide)[-1].verdict == FAILS


@pytest.mark.parametrize("kind", ["lower-bound", "multitask"])
def test_who_is_told_the_hidden_actions_beats_the_lower_bound(kind: str) -> None:
    """The control that the verdict on Theorem 3 can come out false: without knowing, nobody does."""
    names = {"lower-bound": {"states": 3, "actions": 2, "horizon": 4}, "multitask": {"tasks": 4, "actions": 2}}
    mdp = ab.instances.make(kind, **names[kind])
    bound = ab.theory.lower_bound(H=4, S=3, A=2, K=500) if kind == "lower-bound" else 1.0
    told, blind = (base.mean_over(theorem_3.regrets(mdp, kind, who, 500, 4), bound) for who in ("told", "uniform"))
    assert base.at_least("", told, 1.0).verdict == FAILS
    assert base.at_least("", blind, 1.0).verdict == HOLDS


def test_one_k_below_the_lower_bound_is_enough() -> None:
    """Another K, whose interval is wide and begins lower, must not hide it."""
    wide, below, above = Estimate(1.1, 0.5, 1.7), Estimate(0.9, 0.85, 0.95), Estimate(1.5, 1.4, 1.6)
    for ratios, verdict in (([wide, below], FAILS), ([above, wide], OPEN), ([above, above], HOLDS)):
        assert base.at_least("", theorem_3.least(ratios, 1.0), 1.0).verdict == verdict


def test_the_identities_start_from_the_definition() -> None:
    """E[I], E[I L] and E[I L²], pushed along the chain, are those of all trajectories."""
    rng = np.random.default_rng(0)
    transition, policy, loss = (
        rng.dirichlet(np.ones(3), (3, 3, 2)),
        rng.dirichlet(np.ones(2), (3, 3)),
        rng.random((3, 3, 2)),
    )
    mdp = ab.TabularMDP(transition, initial_state=[0.5, 0.0, 0.5])
    sums = np.zeros((3, 3, 3, 2))
    for trajectory in naive.trajectories(3, 3, 2):
        chance = naive.probability(trajectory, transition, policy, mdp.initial)
        for h, (s, a) in enumerate(trajectory):
            sums[:, h, s, a] += chance * naive.total(trajectory, loss) ** np.arange(3)
    np.testing.assert_allclose(identities.totals_on_visits(mdp, policy, loss), sums, rtol=1e-12, atol=1e-15)


def test_names_carry_what_learners_see() -> None:
    assert base.named("po-known") == "po-known (aggregate, dynamics known)"
    assert base.named("repo") == "repo (aggregate, dynamics unknown, reconstructed)"


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
