"""One episode told step by step, with the paper's formula beside each quantity: for a terminal, or as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import NamedTuple

from aggbandit.experiments.one_episode import OneEpisode, Step
from aggbandit.reporting.page import POLICY

UNIT = re.compile(r" (?=[\d.]+(?:,|$))")


class Line(NamedTuple):
    """A quantity, its value, and the formula it comes from."""

    name: str
    value: str
    formula: str


def lines(told: OneEpisode, step: Step) -> Iterator[Line]:
    """What happens at one step."""
    mu = "μ" if told.known else "μ̄"
    yield Line("policy before", _row(told, step.before), "π_h(·|s)")
    yield Line("took", f"{step.action} (loss {step.loss:.3g}, not seen)", "a_h ~ π_h(·|s_h)")
    if told.known:
        yield Line("reached with", f"{step.reach:.4f}", "μ_h(s) = Pr[s_h = s]")
    else:
        bounds = f"between {step.least_reach:.4f} and {step.reach:.4f}"
        yield Line("reached with", bounds, "μ̲_h(s), μ̄_h(s): over all p' in the confidence set")
    yield Line("estimate Û", f"{step.estimate:.3f}", f"L / ({mu}_h(s) π_h(a|s) + γ) for the action taken, 0 for others")
    mean = f"Û's mean is μ / ({mu} + γ) of it"
    yield Line("true U", f"{step.truth:.3f}", f"E[total | s_h = s, a_h = a], hidden: {mean}")
    shape = "Σ_a 3γH π / (μ π + γ)" if told.known else "Σ_a [3γH π + H π (μ̄ - μ̲) π] / (μ̄ π + γ)"
    yield Line("local bonus b", f"{step.local_bonus:.4f}", shape)
    ahead = "Σ p(s'|s,a) π(a'|s') B_{h+1}" if told.known else "max_{p'} Σ p'(s') π(a'|s') B̂_{h+1}"
    yield Line("bonus B", _row(told, step.bonus), f"b_h(s) + {ahead}")
    yield Line("policy after", _row(told, step.after), "π exp(-η (Û - B)), normalised")
    pushed = f"{step.action} loses η Û = {told.step_size * step.estimate:.4f} against the others"
    yield Line("", pushed, "in the exponent; B tells apart only actions that lead elsewhere")


def header(told: OneEpisode) -> list[Line]:
    """What holds for the whole episode."""
    return [
        Line("episode", f"{told.number} of {told.episodes}", ""),
        Line("step size η", f"{told.step_size:.4g}", "√ι / (H √(S A K) + H² √K), unless given"),
        Line("exploration γ", f"{told.exploration:.4g}", "2 η H, unless given"),
        Line("total L", f"{told.total:.3g}", "Σ_h ℓ_h(s_h, a_h): all that the learner is told"),
    ]


def terminal(told: OneEpisode) -> str:
    """For a terminal, about 110 columns."""
    out = [f"{told.learner}: Algorithm {1 if told.known else 2} of the paper, one episode", ""]
    out += [_text(line) for line in header(told)]
    for step in told.steps:
        out += ["", f"step {step.step}: in state {step.state!r}"]
        out += [_text(line) for line in lines(told, step)]
    return "\n".join(out)


def page(told: OneEpisode) -> str:
    """The same as one HTML file that needs nothing else."""
    sections = "".join(
        f'<h2>Step {step.step}: in state “{escape(step.state)}”</h2><div class="card scroll"><table><tbody>'
        + "".join(_html(line) for line in lines(told, step))
        + "</tbody></table></div>"
        for step in told.steps
    )
    head = "".join(_html(line) for line in header(told))
    title = f"One episode of Algorithm {1 if told.known else 2}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="aggbandit">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{files("aggbandit.reporting").joinpath("page.css").read_text(encoding="utf-8")}
td {{ white-space: normal; }} td.formula {{ color: var(--soft); }}
td:first-child {{ width: 9rem; font-weight: 600; white-space: nowrap; }}
@media (max-width: 640px) {{
  tr {{ display: block; padding: .4rem .7rem; border-bottom: 1px solid var(--line); }}
  td {{ display: block; border: 0; padding: .1rem 0; }}
}}
@media print {{ h2 {{ margin: .8rem 0 .2rem; }} }}
</style>
</head>
<body>
<main>
<header><h1>{title}</h1>
<p class="lead soft">What {escape(told.learner)} sees, computes and changes in one episode, each number beside its
formula.</p>
</header>
<div class="card scroll"><table><tbody>{head}</tbody></table></div>
{sections}
</main>
</body>
</html>
"""


def _row(told: OneEpisode, values: tuple[float, ...]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in zip(told.actions, values, strict=True))


def _text(line: Line) -> str:
    return f"  {line.name:15}{line.value:52}  {line.formula}".rstrip()


def _html(line: Line) -> str:
    name, value, formula = (escape(text) for text in line)
    value = UNIT.sub("\u00a0", value)  # a number stays with its action
    return f'<tr><td>{name}</td><td>{value}</td><td class="formula">{formula}</td></tr>'
