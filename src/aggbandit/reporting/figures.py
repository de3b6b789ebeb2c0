"""Figures for a paper: one column wide, fonts embedded as TrueType, legible when printed in grey."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit._checks import require_known
from aggbandit.reporting import charts, numbers
from aggbandit.reporting.curves import Curves, settings_of
from aggbandit.reporting.palette import styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND_WIDTH = 50  # characters in a line of the legend
COLUMN = 3.3  # inches: one column of a two-column paper
VIEWS = ("linear", "loglog")
RC: Any = {
    "pdf.fonttype": 42,  # TrueType: Type 3 fonts are refused by several journals
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def regret_figure(curves: Sequence[Curves], *, view: str = "linear") -> Figure:
    """Mean regret over the episodes with 95 % bands, for the curves of one setting.

    `view` is "linear", or "loglog": both axes logarithmic, where regret ~ √K is a line of slope 1/2; what is not
    positive is left out there.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    require_known("view", view, VIEWS)
    with rc_context(RC):
        names = [textwrap.fill(f"{one.label} ({one.race}{one.marks})", LEGEND_WIDTH) for one in curves]
        height = 2.05 + 0.15 * sum(1 + name.count("\n") for name in names)
        figure = Figure(figsize=(COLUMN, height), layout="constrained")
        axes = figure.add_subplot()
        for one, style, name in zip(curves, styles(curves), names, strict=True):
            mean, half = one.band()
            k = one.episodes
            if view == "loglog":
                mean = np.where(mean > 0, mean, np.nan)
            dash = (0, tuple(length / 1.1 for length in style.dash)) if style.dash[1] else "-"
            axes.plot(k, mean, color=style.light, linestyle=dash, linewidth=1.1, label=name.replace("$", r"\$"))
            if half is not None:
                low = mean - half if view == "linear" else np.maximum(mean - half, mean / 10)
                axes.fill_between(k, low, mean + half, color=style.light, alpha=0.25, linewidth=0)
        if view == "loglog":
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.set_xlim(left=0)
            axes.margins(x=0.02)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(5))
                axis.set_major_formatter(_short)
            if all((one.regret >= 0).all() for one in curves):
                axes.set_ylim(bottom=0)
            else:
                axes.axhline(0, color="0.6", linewidth=0.5, zorder=0)
        axes.set_xlabel("episodes $k$")
        axes.set_ylabel("regret (cumulative loss)")
        figure.legend(loc="outside upper left", frameon=False, handlelength=2.6, borderaxespad=0.2, labelspacing=0.25)
    return figure


def write_pdf(path: Path, curves: Sequence[Curves]) -> None:
    """One page a setting, and for each the linear view followed by the logarithmic one.

    Of many curves those that the page shows at first: more cannot be told apart.
    """
    from io import BytesIO

    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import PdfPages

    from aggbandit._files import write_atomically

    buffer = BytesIO()
    with rc_context(RC), PdfPages(buffer, metadata={"CreationDate": None, "Title": "Regret"}) as pages:
        for group in settings_of(curves).values():
            shown = charts.shown_at_first(group)
            drawn = [one for key, one in zip(charts.keys(group), group, strict=True) if key in shown]
            for view in VIEWS:
                pages.savefig(regret_figure(drawn, view=view))
    write_atomically(path, buffer.getvalue())


def _short(value: float, position: float | None = None) -> str:
    """`20k`: ticks without an offset to multiply by."""
    if value == 0:
        return "0"
    size, prefix = next(((size, p) for size, p in numbers.PREFIXES if abs(value) >= size), (1.0, ""))
    return f"{value / size:g}{prefix}".replace("-", "\u2212")
