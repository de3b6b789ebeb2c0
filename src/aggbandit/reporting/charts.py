"""The page's charts as Vega-Lite specifications, made with Altair.

Colours are CSS variables and `currentColor`: the page's style sheet decides them for light, dark and print, and no
chart is drawn anew for it.  All charts of a section hear the parameter `shown`, the keys of the curves that are on.
The data are not in the specification: the page adds them once a section under the name "curves".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aggbandit.reporting.curves import Curves, reference_of
from aggbandit.reporting.palette import styles

if TYPE_CHECKING:
    import altair as alt

HEIGHT = 300
LINE = 34  # height of a learner's line in the chart of times
FEW = 12  # curves that a reader can tell apart in one chart: of more, some are shown at first
BEST = 2  # of each race are among them
PAPERS = ("po-known", "po-unknown")  # and these, as they are by default
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"  # named: Vega measures text with it
COUNT = "datum.value == 0 ? '0' : abs(datum.value) < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
PERCENT = "format(100 * datum.value, '~g') + ' %'"
TIME = (
    "datum.value < 0.9e-6 ? format(datum.value * 1e9, '~g') + ' ns'"
    " : datum.value < 0.9e-3 ? format(datum.value * 1e6, '~g') + ' µs'"
    " : datum.value < 0.9 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)
# A whole expression, since Vega-Lite 6.4 looks for the fields of text in the wrong place: the cells around the points
# ("nearest") carry the mark's datum as datum.datum, and it minds that for numbers only.
TOOLTIP = (
    "{'learner': (datum.datum || datum).learner, 'sees': (datum.datum || datum).race,"
    " 'episodes': (datum.datum || datum).kText, 'regret': (datum.datum || datum).regretText,"
    " 'regret / √k': (datum.datum || datum).rootText, 'of uniform\\'s': (datum.datum || datum).shareText}"
)


@dataclass(frozen=True, kw_only=True)
class View:
    """One chart of a section."""

    id: str
    title: str
    caption: str
    spec: dict[str, Any]


def keys(curves: Sequence[Curves]) -> list[str]:
    """A short name per curve, safe in any expression."""
    return [f"c{index}" for index in range(len(curves))]


def shown_at_first(curves: Sequence[Curves]) -> list[str]:
    """The keys of all curves; of many, the reference's, the paper's own and those of least regret in each race."""
    if len(curves) <= FEW:
        return keys(curves)
    races: dict[str, list[Curves]] = {}
    for one in curves:
        races.setdefault(one.race, []).append(one)
    best = [
        one.label
        for same in races.values()
        for one in sorted((one for one in same if not one.is_reference), key=lambda one: one.regret[:, -1].mean())[
            :BEST
        ]
    ]
    return [
        key
        for key, one in zip(keys(curves), curves, strict=True)
        if one.is_reference or one.label in PAPERS or one.label in best
    ]


def views(curves: Sequence[Curves]) -> list[View]:
    """The charts of one setting."""
    found = [
        View(
            id="linear",
            title="Regret",
            caption="Cumulative expected loss above that of the best fixed policy for the episodes so far.",
            spec=_over_episodes(curves, "mean", "low", "high", "regret", log_x=False, log_y=False),
        ),
        View(
            id="loglog",
            title="Regret, both axes logarithmic",
            caption="A power of k is a straight line: slope 1 learns nothing, slope ½ is √k. What is not positive "
            "is left out. The thin line is the fit over the last two decades.",
            spec=_over_episodes(curves, "mean", "low", "high", "regret", log_x=True, log_y=True, fit=True),
        ),
        View(
            id="root",
            title="Regret / √k",
            caption="Flat where regret grows like √k.",
            spec=_over_episodes(curves, "root", "rootLow", "rootHigh", "regret / √k", log_x=True, log_y=False),
        ),
    ]
    if reference_of(curves) is not None and len(curves) > 1:
        found.append(
            View(
                id="share",
                title="Share of the uniform policy's regret",
                caption="100 % is what acting at random costs.",
                spec=_over_episodes(
                    curves,
                    "share",
                    "shareLow",
                    "shareHigh",
                    "share of uniform's",
                    log_x=True,
                    log_y=False,
                    percent=True,
                ),
            )
        )
    found.append(
        View(
            id="time",
            title="Time per episode",
            caption="Wall-clock time of the whole run over episodes × replicas, exact evaluation included.",
            spec=_time(curves),
        )
    )
    return found


def _colour(curves: Sequence[Curves]) -> alt.Scale:
    import altair as alt

    return alt.Scale(domain=keys(curves), range=[f"var(--curve-{key})" for key in keys(curves)])


def _dash(curves: Sequence[Curves]) -> alt.Scale:
    import altair as alt

    return alt.Scale(domain=keys(curves), range=[list(style.dash) for style in styles(curves)])


def _base() -> alt.Chart:
    import altair as alt

    return alt.Chart(alt.NamedData(name="curves")).transform_filter("indexof(shown, datum.key) >= 0")


def _over_episodes(
    curves: Sequence[Curves],
    mean: str,
    low: str,
    high: str,
    title: str,
    *,
    log_x: bool,
    log_y: bool,
    percent: bool = False,
    fit: bool = False,
) -> dict[str, Any]:
    """Lines with bands; the checkpoint nearest to the pointer is marked and told."""
    import altair as alt

    valid = f"isValid(datum.{mean})" + (f" && datum.{mean} > 0" if log_y else "")
    base = _base().transform_filter(valid)
    first, last = min(int(one.episodes[0]) for one in curves), max(one.last_episode for one in curves)
    if log_x:
        x_scale = alt.Scale(type="log", domain=[first, max(last, first + 1)], nice=False)
        x_axis = alt.Axis(labelExpr=COUNT, values=powers(first, last), grid=True)
    else:
        x_scale, x_axis = alt.Scale(zero=True, nice=False), alt.Axis(labelExpr=COUNT, tickCount=5)
    x = alt.X("k:Q", title="episodes k", scale=x_scale, axis=x_axis)
    if log_y:
        means = [value for one in curves for value in one.regret.mean(axis=0) if value > 0]
        ticks = powers(min(means), max(means)) if means else []
        y_scale, y_axis = alt.Scale(type="log", nice=False), alt.Axis(labelExpr=COUNT, values=ticks)
    else:
        y_scale, y_axis = alt.Scale(zero=True), alt.Axis(labelExpr=PERCENT if percent else COUNT, tickCount=5)
    y = alt.Y(f"{mean}:Q", title=title, scale=y_scale, axis=y_axis)
    colour = alt.Color("key:N", scale=_colour(curves), legend=None)
    dash = alt.StrokeDash("key:N", scale=_dash(curves), legend=None)

    bands = (
        base.transform_filter(f"isValid(datum.{low})")
        .mark_area(opacity=0.22, line=False)
        .encode(x=x, y=alt.Y(f"{low}:Q", title=title, scale=y_scale, axis=y_axis), y2=f"{high}:Q", color=colour)
    )
    lines = base.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    hover = alt.selection_point(
        name="hover", nearest=True, on="pointerover", clear="pointerout", encodings=["x", "y"], empty=False
    )
    points = (
        base.mark_point(filled=True, size=55)
        .encode(
            x=x,
            y=y,
            color=colour,
            opacity=alt.condition(hover, alt.value(1), alt.value(0)),
            tooltip=alt.value(alt.ExprRef(expr=TOOLTIP)),
        )
        .add_params(hover)
    )
    layers = [bands, lines]
    if fit and any(one.slope() is not None for one in curves):
        layers.append(
            alt.Chart(alt.NamedData(name="fits"))
            .transform_filter("indexof(shown, datum.key) >= 0")
            .mark_line(strokeWidth=1, color="currentColor", opacity=0.75)
            .encode(x="k:Q", y="fit:Q", detail="key:N")
        )
    return _finished(alt.layer(*layers, points), curves, HEIGHT)


def _time(curves: Sequence[Curves]) -> dict[str, Any]:
    """One dot a learner on a logarithmic axis, the time written beside it."""
    import altair as alt

    base = alt.Chart(alt.NamedData(name="times")).transform_filter("indexof(shown, datum.key) >= 0")
    names = alt.ExprRef(expr="max(150, 0.4 * containerSize()[0])")  # narrow screens cut long names
    y = alt.Y("learner:N", title=None, sort=None, axis=alt.Axis(labelLimit=names, ticks=False, domain=False))
    seconds = [1.0 / one.episodes_per_second for one in curves]
    least, most = min(seconds), max(seconds)
    domain = [least / 2, most * max(4.0, (most / least) ** 0.4)]  # room for the text to the right of the slowest
    x = alt.X(
        "seconds:Q",
        title="time per episode",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(labelExpr=TIME, values=powers(domain[0], domain[1] / 2), labelOverlap="greedy"),
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color("key:N", scale=_colour(curves), legend=None),
        tooltip=[
            alt.Tooltip("learner:N"),
            alt.Tooltip("race:N", title="sees"),
            alt.Tooltip("timeText:N", title="per episode"),
            alt.Tooltip("rateText:N", title="episodes/s"),
        ],
    )
    texts = base.mark_text(align="left", dx=9, color="currentColor").encode(x=x, y=y, text="timeText:N")
    # where more are shown the page makes it higher
    return _finished(alt.layer(dots, texts), curves, 40 + LINE * len(shown_at_first(curves)))


def powers(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, with 2 and 5 between them where they are few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    few = math.log10(high / low) < 2
    ticks = [m * 10.0**e for e in exponents for m in ((1, 2, 5) if few else (1,))]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def _finished(chart: Any, curves: Sequence[Curves], height: int) -> dict[str, Any]:
    import altair as alt

    spec: dict[str, Any] = (
        chart.add_params(alt.param(name="shown", value=shown_at_first(curves)))
        .properties(width="container", height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding"))
        .to_dict()
    )
    del spec["config"]  # Altair's own; `config()` holds for all charts of a page
    return spec


def config() -> dict[str, Any]:
    """How every chart looks: ink in the text's colour, faint grid, nothing behind."""
    import altair as alt

    axis = alt.AxisConfig(
        labelColor="currentColor",
        titleColor="currentColor",
        labelFontSize=13,
        titleFontSize=13,
        titleFontWeight="normal",
        titlePadding=8,
        gridColor="currentColor",
        gridOpacity=0.13,
        domainColor="currentColor",
        domainOpacity=0.5,
        tickColor="currentColor",
        tickOpacity=0.5,
    )
    made = alt.Config(
        axis=axis,
        background="transparent",
        font=FONT,
        text=alt.MarkConfig(fontSize=13),
        view=alt.ViewConfig(stroke=None),
    )
    found: dict[str, Any] = made.to_dict()
    return found
