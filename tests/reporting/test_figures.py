"""The figure for a paper: its size, its fonts, its curves."""

import re

import numpy as np
import pytest

from aggbandit.errors import UnknownNameError
from aggbandit.reporting.figures import regret_figure, write_pdf
from aggbandit.reporting.palette import styles


@pytest.mark.parametrize("view", ["linear", "loglog"])
def test_one_column_wide_with_every_curve_and_band(three, view):
    figure = regret_figure(three, view=view)
    (axes,) = figure.axes
    assert figure.get_size_inches()[0] == 3.3
    assert [line.get_color() for line in axes.lines] == [style.light for style in styles(three)]
    assert len(axes.collections) == 3
    for line, one in zip(axes.lines, three, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), one.episodes)
        np.testing.assert_allclose(line.get_ydata(), one.regret.mean(axis=0))
    assert axes.get_xlabel() == "episodes $k$"
    assert "loss" in axes.get_ylabel()
    assert (axes.get_xscale(), axes.get_yscale()) == (("linear",) * 2 if view == "linear" else ("log",) * 2)


def test_a_band_spans_its_interval(three):
    (axes,) = regret_figure(three[1:2]).axes
    mean, half = three[1].band()
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((mean + half)[-1])
    assert (mean - half)[-1] in corners


def test_the_legend_tells_feedback_and_dynamics(three):
    (legend,) = regret_figure(three).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "uniform (aggregate feedback, unknown dynamics)",
        "po-known (aggregate feedback, known dynamics)",
        "po-unknown (aggregate feedback, unknown dynamics)",
    ]


def test_the_legend_marks_what_is_tuned_or_reconstructed(made_up):
    curves = [made_up("repo:step_scale=3", tuned=True, reconstructed=True), made_up("repo", reconstructed=True)]
    texts = [text.get_text() for text in regret_figure(curves).legends[0].get_texts()]
    assert [" ".join(text.split()) for text in texts] == [
        "repo:step_scale=3 (aggregate feedback, unknown dynamics, tuned, reconstructed)",
        "repo (aggregate feedback, unknown dynamics, reconstructed)",
    ]


def test_the_legend_stays_within_the_figure(made_up):
    figure = regret_figure(
        [made_up("uniform"), made_up("some.module:Learner:with=1,many=2,arguments=3,and_more=4,yet=5")]
    )
    figure.draw_without_rendering()
    box, edges = figure.legends[0].get_window_extent(), figure.bbox
    assert box.x0 >= edges.x0
    assert box.x1 <= edges.x1
    assert box.y1 <= edges.y1
    assert box.y0 >= figure.axes[0].get_window_extent().y1  # and off the curves


def test_one_replica_has_no_band(made_up):
    assert len(regret_figure([made_up("x", replicas=1)]).axes[0].collections) == 0


def test_what_is_not_positive_is_left_out_of_the_logarithm(made_up):
    one = made_up("x", 1.0, 1.0)
    sinking = made_up("x", regret=one.regret * np.where(one.episodes < 5000, 1, -1))
    (axes,) = regret_figure([sinking], view="loglog").axes
    shown = axes.lines[0].get_ydata()
    np.testing.assert_array_equal(np.isnan(shown), one.episodes >= 5000)
    assert regret_figure([sinking]).axes[0].get_ylim()[0] < 0  # the linear view has it


def test_a_name_is_not_read_as_mathematics(made_up):
    figure = regret_figure([made_up("m:a=$x_1,b=$")])
    figure.draw_without_rendering()
    assert figure.legends[0].get_texts()[0].get_text().startswith(r"m:a=\$x_1,b=\$")


def test_an_unknown_view_is_told(three):
    with pytest.raises(UnknownNameError, match="no view 'loglgo'. Did you mean 'loglog'"):
        regret_figure(three, view="loglgo")


def test_the_pdf_embeds_its_fonts_as_truetype(three, tmp_path, made_up):
    path = tmp_path / "regret.pdf"
    write_pdf(path, [*three, made_up("uniform", setting="another")])
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content  # a TrueType program
    assert b"/Type3" not in content  # what several journals refuse
    assert len(re.findall(rb"/Type /Page\b", content)) == 4  # two settings, two views each
    widths = [float(box.split()[2]) for box in re.findall(rb"/MediaBox \[([^\]]*)\]", content)]
    assert widths == pytest.approx([3.3 * 72] * 4)


def test_the_same_curves_give_the_same_file(three, tmp_path):
    write_pdf(tmp_path / "a.pdf", three)
    write_pdf(tmp_path / "b.pdf", three)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_of_many_curves_the_pdf_has_those_that_the_page_shows_at_first(many, tmp_path):
    chosen = [0, 1, 10, 11, 22, 23]  # uniform, po-known, and the best two of each race
    write_pdf(tmp_path / "many.pdf", many)
    write_pdf(tmp_path / "chosen.pdf", [many[i] for i in chosen])
    assert (tmp_path / "many.pdf").read_bytes() == (tmp_path / "chosen.pdf").read_bytes()


def test_drawing_leaves_matplotlibs_settings_alone(three, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    write_pdf(tmp_path / "a.pdf", three)
    assert dict(matplotlib.rcParams) == before
