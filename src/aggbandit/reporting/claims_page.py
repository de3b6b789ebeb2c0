"""`claims.html`: every claim with what was measured, its figure and what to look at; one file, no network."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aggbandit.experiments.claims.base import FAILS, HOLDS, VERDICTS, Chart, Claim, Outcome
from aggbandit.reporting import numbers
from aggbandit.reporting.page import POLICY
from aggbandit.reporting.palette import STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = {HOLDS: "✓", FAILS: "✗"}
STYLE = """
.claim { padding: .9rem 1rem; margin: 1rem 0; }
.claim dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .9rem; }
.claim dt { margin: 0; color: var(--soft); font-weight: 400; }
.claim td, .claim th { white-space: normal; overflow-wrap: normal; min-width: 5.5rem; }
.overview td.number { width: 1%; white-space: nowrap; }
.overview a { color: var(--accent); }
.plot svg { max-width: 100%; height: auto; display: block; }
.holds { color: #00806a; } .fails { color: #a3123a; } .open { color: var(--soft); }
@media screen and (prefers-color-scheme: dark) {
  .plot svg { filter: invert(.92) hue-rotate(180deg); }
  .holds { color: #35c7a8; } .fails { color: #ff6f8e; }
}
@media (max-width: 640px) {
  .claim dl { grid-template-columns: 1fr; } .claim dd { margin-bottom: .4rem; }
  .claim thead { display: none; }
  .claim tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .claim td { display: block; border: 0; padding: .1rem 0; overflow-wrap: anywhere; }
  .claim td[data-heading]::before { content: attr(data-heading) ": "; color: var(--soft); font-size: .8rem; }
  .claim td:first-child { font-weight: 600; }
  .overview th, .overview td { padding: .35rem .3rem; }
  .overview td:first-child { white-space: normal; }
}
@media print { .claim { break-inside: auto; } figure.drawn { break-inside: avoid; } }
"""


def claims_page(tested: Sequence[tuple[Claim, Outcome, float]], about: Mapping[str, str]) -> str:
    """The page."""
    facts = " · ".join(f"{escape(name)} <code>{escape(value)}</code>" for name, value in about.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="aggbandit">
<title>The paper's claims, measured</title>
<link rel="icon" href="data:,">
<style>
{files("aggbandit.reporting").joinpath("page.css").read_text(encoding="utf-8")}
{STYLE}</style>
</head>
<body>
<main>
<header>
<h1>The paper's claims, measured</h1>
<p class="soft">{facts}</p>
<p class="lead">Lancewicki &amp; Mansour (2025) prove; here each claim is put to the test on this machine. A claim that
does not hold, or is not reached at the numbers of episodes played, is a result.</p>
</header>
{_overview(tested)}
{"".join(_section(*one) for one in tested)}
</main>
</body>
</html>
"""


def _overview(tested: Sequence[tuple[Claim, Outcome, float]]) -> str:
    """A line a claim: how many of its findings came out how, and the time it took."""
    heads = "".join(f'<th class="number {_kind(verdict)}" scope="col">{escape(verdict)}</th>' for verdict in VERDICTS)
    rows = ""
    for claim, outcome, seconds in tested:
        counts = [sum(one.verdict == verdict for one in outcome.findings) for verdict in VERDICTS]
        cells = "".join(f'<td class="number">{count or "–"}</td>' for count in counts)
        rows += (
            f'<tr><td><a href="#{claim.id}">{escape(claim.title)}</a></td>{cells}'
            f'<td class="number">{numbers.duration(round(seconds, 1))}</td></tr>'
        )
    return (
        '<div class="card scroll"><table class="overview"><thead><tr><th scope="col">claim</th>'
        f'{heads}<th class="number" scope="col">time</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _section(claim: Claim, outcome: Outcome, seconds: float) -> str:
    rows = "".join(
        f'<tr><td>{escape(one.what)}</td><td data-heading="measured">{escape(one.measured)}</td>'
        f'<td data-heading="expected">{escape(one.expected)}</td>'
        f'<td data-heading="verdict" class="{_kind(one.verdict)}">'
        f"{MARKS.get(one.verdict, '–')} {escape(one.verdict)}</td></tr>"
        for one in outcome.findings
    )
    return f"""<section id="{claim.id}">
<h2>{escape(claim.title)}</h2>
<div class="card claim">
<dl>
<dt>the paper says</dt><dd>{escape(claim.statement)}</dd>
<dt>played here</dt><dd>{escape(claim.test)}</dd>
<dt>false if</dt><dd>{escape(claim.false_if)}</dd>
<dt>look at</dt><dd>{escape(claim.look_at)}</dd>
</dl>
<div class="scroll"><table><thead><tr><th>quantity</th><th>measured</th><th>expected</th><th>verdict</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<figure class="drawn"><div class="plot">{_svg(outcome.chart, claim.title)}</div>
<figcaption>{_caption(outcome.chart)}The claim took {numbers.duration(round(seconds, 1))}.</figcaption></figure>
</div>
</section>
"""


def _caption(chart: Chart) -> str:
    """What the bands or whiskers are, where the figure has some."""
    banded = any(one.low is not None for one in chart.series)
    return f"{'Whiskers' if chart.bars else 'Bands'}: 95 % intervals, or as the claim says. " if banded else ""


def _kind(verdict: str) -> str:
    return {HOLDS: "holds", FAILS: "fails"}.get(verdict, "open")


def chart_figure(chart: Chart) -> Figure:
    """The chart drawn: lines over episodes, or one bar a series."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    if chart.bars:
        names = [one.label for one in chart.series]
        lengths = [one.y[0] for one in chart.series]
        axes.barh(names, lengths, color=STYLES[0].light, height=0.6)
        for row, one in enumerate(chart.series):
            if one.low is not None and one.high is not None and one.low[0] < one.high[0]:
                axes.plot([one.low[0], one.high[0]], [row, row], color="0.55", linewidth=2.0, solid_capstyle="butt")
        axes.invert_yaxis()
        axes.set_xlabel(chart.y)
        if chart.log:
            axes.set_xscale("log")
        return figure
    position = 0
    for one in chart.series:
        style = STYLES[position % len(STYLES)]
        if one.guide:
            axes.plot(one.x, one.y, color="0.45", linewidth=1.0, linestyle=":", label=one.label)
            continue
        position += 1
        dash: Any = "-" if style.dash == (1, 0) else (0, tuple(length / 2 for length in style.dash))
        axes.plot(one.x, one.y, color=style.light, linewidth=1.6, linestyle=dash, marker="o", ms=3.5, label=one.label)
        if one.low is not None and one.high is not None:
            axes.fill_between(one.x, one.low, one.high, color=style.light, alpha=0.15, linewidth=0)
    if chart.log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.legend(frameon=False, fontsize="small")
    return figure


def _svg(chart: Chart, title: str) -> str:
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif"}):
        chart_figure(chart).savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    svg = text[text.index("<svg") :]
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title, quote=True)}" ', 1)
