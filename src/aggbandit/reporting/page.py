"""One self-contained HTML page: opens offline, asks no network for anything.

Everything is inside the file: the styles, the data, and Vega's scripts as `vl_convert` bundles them.  A content
security policy in its head forbids every request, so that the promise does not rest on our care alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from aggbandit.errors import InvalidInputError
from aggbandit.reporting import charts, numbers, tables
from aggbandit.reporting.curves import Curves, reference_of, settings_of
from aggbandit.reporting.palette import Style, styles

POINTS = 12_000  # checkpoints in a page, over all curves: one with 200 curves in 20 settings stays under 2 MB
LEAST_POINTS = 25  # of one curve
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
FEEDBACK = {
    "aggregate": "one number at the end of the episode, the sum of its losses",
    "semi-bandit": "the loss of every step it took",
    "full": "the whole loss table, also of what it did not do",
}


def report_page(
    curves: Sequence[Curves],
    *,
    title: str = "Regret report",
    about: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The page for these curves, one section a setting.

    `about` is printed under the title (what was played, how often, with which seed); `warnings` above all else.
    """
    if not curves:
        raise InvalidInputError("a report needs at least one result, but there is none.")
    settings = settings_of(curves)
    thin = max(LEAST_POINTS, POINTS // len(curves))
    bodies, data, sheets = [], [], []
    for index, (setting, group) in enumerate(settings.items()):
        shown = charts.views(group)
        bodies.append(_section(index, setting, group, shown))
        data.append(
            {
                "specs": {view.id: view.spec for view in shown},
                "curves": _columns(group, thin),
                "times": _times(group),
            }
        )
        sheets.append(_colours(f"#section-{index}", group))
    told = [f"<p><strong>{escape(warning)}</strong></p>" for warning in warnings]
    facts = " · ".join(f"{escape(name)} <code>{escape(value)}</code>" for name, value in (about or {}).items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="aggbandit">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{_asset("page.css")}
{"".join(sheets)}</style>
</head>
<body>
<main>
<header>
<h1>{escape(title)}</h1>
<p class="soft">{facts}</p>
{"".join(told)}{_contents(settings)}
</header>
{"".join(bodies)}
{_reading(curves)}
</main>
<noscript><main><p>The charts need JavaScript; the tables do not.</p></main></noscript>
<script type="application/json" id="data">{_json({"config": charts.config(), "sections": data})}</script>
<script>{_bundle()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _contents(settings: Mapping[str, Sequence[Curves]]) -> str:
    """Links to the sections, where there are several."""
    if len(settings) < 2:
        return ""
    links = "".join(f'<li><a href="#section-{i}">{escape(name)}</a></li>' for i, name in enumerate(settings))
    return f'\n<nav aria-label="Settings"><ul>{links}</ul></nav>'


def write_page(path: Path, page: str) -> None:
    """The page as a file, whole or not at all."""
    from aggbandit._files import write_atomically

    write_atomically(path, page.encode())


def _section(index: int, setting: str, curves: Sequence[Curves], views: Sequence[charts.View]) -> str:
    figures = "".join(
        f'<figure class="card" data-view="{view.id}"><h3>{escape(view.title)}</h3><div class="chart"></div>'
        f"<figcaption>{escape(view.caption)}{_slopes(curves) if view.id == 'loglog' else ''}</figcaption></figure>\n"
        for view in views
    )
    broken = escape(setting).replace(",", ",<wbr>")  # a long id breaks between its arguments, not within a word
    heading = f"<h2>{broken}</h2>\n" if setting else ""
    remarks = "".join(f"<p>{escape(note)}</p>" for note in tables.notes(curves))
    return f"""<section id="section-{index}">
{heading}<div class="card scroll">{_summary(curves)}</div>
<div class="notes">{remarks}</div>
{_chosen(curves)}<div class="legend{_many(curves)}" role="group" aria-label="Curves: click to hide or show">{
        _legend(curves)
    }</div>
<div class="charts">
{figures}</div>
<details><summary>Regret at some of the checkpoints, as numbers</summary>
<div class="card scroll">{_checkpoints(curves)}</div></details>
<h3>Learners and their parameters</h3>
{_parameters(curves)}
</section>
"""


def _many(curves: Sequence[Curves]) -> str:
    return " many" if len(curves) > charts.FEW else ""


def _chosen(curves: Sequence[Curves]) -> str:
    """Which curves are shown at first, where that is not all."""
    shown = len(charts.shown_at_first(curves))
    if shown == len(curves):
        return ""
    return (
        f'<p class="soft">The charts show {shown} of {len(curves)} at first: the paper\'s own, and the '
        f"{charts.BEST} of least regret among those that see and know the same. Click a name to show or hide it.</p>\n"
    )


def _swatch(key: str, style: Style) -> str:
    dash = " ".join(map(str, style.dash)) if style.dash[1] else "none"
    return (
        '<svg class="key" viewBox="0 0 34 10" aria-hidden="true"><line x1="1" x2="33" y1="5" y2="5" '
        f'stroke="var(--curve-{key})" stroke-width="2.5" stroke-dasharray="{dash}"/></svg>'
    )


def _legend(curves: Sequence[Curves]) -> str:
    shown = charts.shown_at_first(curves)
    buttons: list[str] = []
    races: dict[str, list[tuple[str, str]]] = {}
    for key, one, style in zip(charts.keys(curves), curves, styles(curves), strict=True):
        race = _race(one)
        buttons.append(
            f'<button type="button" data-key="{key}" aria-pressed="{"true" if key in shown else "false"}">'
            f"{_swatch(key, style)}<span>"
            f'<span class="name">{escape(one.label)}</span> <span class="race">{escape(race)}</span></span></button>'
        )
        races.setdefault(one.race, []).append((key, buttons[-1]))
    if len(curves) <= charts.FEW:
        return "".join(buttons)
    return "".join(_of_one_race(race, same) for race, same in races.items())


def _of_one_race(race: str, same: Sequence[tuple[str, str]]) -> str:
    """The buttons of a race below its name, and two that show and hide it whole."""
    keys = " ".join(key for key, _ in same)
    both = "".join(
        f'<button type="button" data-keys="{keys}" data-to="{to}">{word}</button>'
        for word, to in (("show all", "true"), ("hide all", "false"))
    )
    name = f'<div class="race-name"><strong>{escape(race)}</strong>{both}</div>'
    return name + "".join(button for _, button in same)


def _race(one: Curves) -> str:
    """What it sees and is told, short."""
    return f"{one.feedback}, dynamics {one.dynamics}{one.marks}"


def _summary(curves: Sequence[Curves]) -> str:
    names = {
        "regret": f"regret after {numbers.grouped(curves[0].last_episode)} episodes",
        "of uniform's": "share of the uniform policy's",
        "slope": "log–log slope",
        "episodes/s": "episodes per second",
        "an episode": "time an episode",
    }
    if len({one.last_episode for one in curves}) > 1:
        names["regret"] = "final regret"
    headings = [names.get(name, name) for name in tables.HEADINGS]
    kinds = ["name", "", "", *["number"] * (len(headings) - 3)]
    head = "".join(f'<th class="{kind}" scope="col">{name}</th>' for name, kind in zip(headings, kinds, strict=True))
    lines = [tables.begins_a_race(*pair, len(curves)) for pair in zip([None, *curves], curves, strict=False)]
    body = "".join(
        ('<tr class="race">' if line else "<tr>")
        + "".join(
            f'<td class="{kind}" data-heading="{name}">{_breakable(cell) if kind == "name" else escape(cell)}</td>'
            for cell, name, kind in zip(row.cells, headings, kinds, strict=True)
        )
        + "</tr>"
        for line, row in zip(lines, tables.rows(curves), strict=True)
    )
    return f'<table class="summary"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _breakable(label: str) -> str:
    """A learner with its arguments, which a narrow column may break between them."""
    return escape(label).replace(":", ":<wbr>").replace(",", ",<wbr>")


def _checkpoints(curves: Sequence[Curves]) -> str:
    """Regret near 1, 2, 5, 10, ... and at the end; from columns that all learners share."""
    last = min(one.last_episode for one in curves)
    wanted = [m * 10**e for e in range(int(math.log10(last)) + 1) for m in (1, 2, 5) if m * 10**e < last]
    wanted = [*wanted[-10:], last]
    at = sorted({int(curves[0].episodes[_nearest(curves[0], k)]) for k in wanted})
    head = "".join(f'<th class="number" scope="col">{escape(one.label)}</th>' for one in curves)
    bands = [one.band() for one in curves]
    lines = []
    for k in at:
        cells = []
        for one, (mean, half) in zip(curves, bands, strict=True):
            i = _nearest(one, k)
            known = int(one.episodes[i]) == k
            text = numbers.with_band(mean[i], None if half is None else half[i]) if known else "–"
            cells.append(f'<td class="number">{text}</td>')
        lines.append(f'<tr><td class="number">{numbers.grouped(k)}</td>{"".join(cells)}</tr>')
    return (
        f'<table><thead><tr><th class="number" scope="col">episodes</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _nearest(one: Curves, k: int) -> int:
    return int(np.argmin(np.abs(one.episodes - k)))


def _slopes(curves: Sequence[Curves]) -> str:
    if len(curves) > charts.FEW:
        return " The slopes are in the table."
    known = [(one.label, one.slope()) for one in curves]
    told = [f"{escape(label)} {tables.slope_text(slope)}" for label, slope in known if slope is not None]
    bent = [escape(label) for label, slope in known if slope is None]
    text = f" Slopes along this run: {', '.join(told)}." if told else ""
    return text + (f" Not a straight line, hence no slope: {', '.join(bent)}." if bent else "")


def _parameters(curves: Sequence[Curves]) -> str:
    entries = []
    shared = tables.shared_notes(curves)
    for one in curves:
        own = [note for note in one.notes if note not in shared]
        extra = "".join(f" {escape(note[0].upper() + note[1:])}." for note in own)
        guarantee = {
            "both": "adversarial and stochastic losses",
            "adversarial": "adversarial losses",
            "stochastic": "stochastic losses",
        }.get(one.losses, one.losses)
        entries.append(
            f"<dt>{escape(one.label)}</dt><dd><code>{escape(one.text)}</code><br>"
            f'<span class="soft">{escape(one.race)}; for {escape(guarantee)}; {one.replicas} '
            f"replica{'s' if one.replicas > 1 else ''}, {numbers.duration(one.seconds)}.{extra}</span></dd>"
        )
    return f"<dl>{''.join(entries)}</dl>"


def _reading(curves: Sequence[Curves]) -> str:
    seen = "".join(
        f" <em>{escape(level)}</em>: {meaning}."
        for level, meaning in FEEDBACK.items()
        if level in {c.feedback for c in curves}
    )
    return f"""<footer class="soft lead">
<p>Regret is exact: the expected loss of every policy played, by dynamic programming, minus that of the best fixed
policy for the same episodes; nothing is sampled but the episodes that the learner sees. What a learner sees:{seen}
Learners that see or know more do not run the same race.</p>
<p>A slope along one run is not the growth that a theorem states: there each K has its own step size.</p>
</footer>"""


def _columns(curves: Sequence[Curves], limit: int) -> list[dict[str, Any]]:
    """The data of the section, rounded to what a screen can show."""
    reference = reference_of(curves)
    out = []
    for key, one in zip(charts.keys(curves), curves, strict=True):
        keep = _thinned(len(one.episodes), limit)
        mean, half = one.band()
        based = reference is not None and np.array_equal(one.episodes, reference.episodes)
        slope = one.slope()
        fit = []
        if slope is not None:
            level, growth = slope.level, slope.value
            fit = [
                [slope.first, math.exp(level)],
                [slope.last, math.exp(level + growth * math.log(slope.last / slope.first))],
            ]
        out.append(
            {
                "key": key,
                "label": one.label,
                "race": _race(one),
                "k": [int(k) for k in one.episodes[keep]],
                "mean": _short(mean[keep]),
                "half": None if half is None else _short(half[keep]),
                "base": _short(reference.regret.mean(axis=0)[keep]) if based and reference is not None else None,
                "fit": fit,
            }
        )
    return out


def _times(curves: Sequence[Curves]) -> list[dict[str, Any]]:
    out = []
    for key, one in zip(charts.keys(curves), curves, strict=True):
        seconds = 1.0 / one.episodes_per_second
        out.append(
            {
                "key": key,
                "learner": one.label,
                "race": _race(one),
                "seconds": seconds,
                "timeText": numbers.duration(seconds),
                "rateText": numbers.rate(one.episodes_per_second),
            }
        )
    return out


def _thinned(count: int, limit: int) -> Any:
    """Which of `count` checkpoints to draw: all, or `limit` evenly spread ones with the last among them."""
    if count <= limit:
        return slice(None)
    return np.unique(np.linspace(0, count - 1, limit).round().astype(int))


def _short(values: Any) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _colours(place: str, curves: Sequence[Curves]) -> str:
    chosen = list(zip(charts.keys(curves), styles(curves), strict=True))
    light = " ".join(f"--curve-{key}: {style.light};" for key, style in chosen)
    dark = " ".join(f"--curve-{key}: {style.dark};" for key, style in chosen)
    return f"{place} {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ {place} {{ {dark} }} }}\n"


def _json(data: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files("aggbandit.reporting").joinpath(name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from the files that vl-convert carries."""
    import vl_convert

    converter: Any = vl_convert  # its stub wants a snippet, which it does not need
    bundle: str = converter.javascript_bundle()
    if "</script" in bundle.lower():  # would end the element early
        bundle = bundle.replace("</script", "<\\/script")
    return bundle
