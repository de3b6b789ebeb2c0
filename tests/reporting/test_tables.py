"""The rows that terminal and page share."""

from rich.console import Console

from aggbandit.reporting import numbers, tables


def printed(curves, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(tables.terminal_table(curves))
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def test_a_row_tells_learner_feedback_dynamics_regret_share_slope_and_rate(three):
    first, second, third = (tuple(map(numbers.simple, row.cells)) for row in tables.rows(three))
    assert first == ("uniform", "aggregate", "unknown", "16 000 ± 0", "100 %", "1.00", "8.00 M")
    assert second[:3] == ("po-known", "aggregate", "known")
    mean, half = three[1].band()
    assert second[3] == f"{mean[-1]:,.0f} ± {half[-1]:.0f}".replace(",", " ")
    assert second[4].startswith(f"{100 * mean[-1] / 16000:.1f} ± ")
    assert second[5] == "0.60"
    assert third[0] == "po-unknown*"


def test_without_the_uniform_policy_there_is_no_share(three):
    assert [row.share for row in tables.rows(three[1:])] == ["–", "–"]


def test_the_table_fits_eighty_columns(three):
    lines = printed(three)
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["learner", "feedback", "dynamics", "regret", "of", "uniform's", "episodes/s"]
    assert [line.split()[0] for line in lines[2:]] == ["uniform", "po-known", "po-unknown*"]


def test_a_long_name_is_folded_and_loses_nothing(made_up):
    name = "somebodys.own.learners:Greedy:rate=0.125,style=[bold]"  # the brackets are no markup
    lines = printed([made_up("uniform"), made_up(name)])
    assert max(map(len, lines)) <= 80
    width = lines[0].index("feedback")
    assert "".join(line[:width].strip() for line in lines[3:]) == name


def test_notes_say_how_the_bands_are_made(made_up, three):
    assert tables.notes(three) == [
        "± is a 95 % t-interval for the mean over 8 replicas.",
        "* po-unknown: the step was lowered.",
    ]
    assert tables.notes([made_up("x", replicas=1)]) == ["One replica: no bands."]
    mixed = tables.notes([made_up("x", replicas=1), made_up("y", replicas=4)])
    assert mixed == ["± is a 95 % t-interval for the mean over replicas; learners with one replica have none."]


def test_a_negative_regret_is_explained(made_up):
    assert tables.notes([made_up("x", scale=-1.0)])[1] == (
        "Negative: x lost less than any fixed policy, by following the losses."
    )
