"""`claims.html`: every claim with what was measured, its figure and what to look at; one file, no network."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aggbandit.experiments.claims.base import FAILS, HOLDS, Chart, Claim, Outcome
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
.plot svg { max-width: 100%; height: auto; display: block; }
.holds { color: #00806a; } .fails { color: #a3123a; } .open { color: var(--soft); }
@media screen and (prefers-color-scheme: dark) {
  .plot svg { filter: invert(.92) hue-rotate(180deg); }
  .holds { color: #35c7a8; } .fails { color: #ff6f8e; }
}
@media (max-width: 600px) { .claim dl { grid-template-columns: 1fr; } .claim dd { margin-bottom: .4rem; } }
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
{"".join(_section(*one) for one in tested)}
</main>
</body>
</html>
"""


def _section(claim: Claim, outcome: Outcome, seconds: float) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.what)}</td><td>{escape(one.measured)}</td><td>{escape(one.expected)}</td>"
        f'<td class="{_kind(one.verdict)}">{MARKS.get(one.verdict, "–")} {escape(one.verdict)}</td></tr>'
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
<figure><div class="plot">{_svg(outcome.chart, claim.title)}</div>
<figcaption>Bands: 95 % of the mean over replicas or seeds. {seconds:.0f} s.</figcaption></figure>
</div>
</section>
"""


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
        axes.barh(names, [one.y[0] for one in chart.series], color=STYLES[0].light, height=0.6)
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
