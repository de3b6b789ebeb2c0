"""The rows that terminal and page share."""

from rich.console import Console

from aggbandit.reporting import numbers, tables
from aggbandit.reporting.curves import by_what_they_see


def printed(curves, width=80, **options):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(tables.terminal_table(curves, **options))
    return [line.rstrip() for line in capture.get().strip().splitlines()]


def test_a_row_tells_learner_feedback_dynamics_regret_share_slope_and_rate(three):
    first, second, third = (tuple(map(numbers.simple, row.cells)) for row in tables.rows(three))
    assert first == ("uniform", "aggregate", "unknown", "16 000 ± 0", "100 %", "1.00", "8.00 M", "125 ns")
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


def test_what_an_episode_takes_stands_in_for_the_rate_where_asked(three):
    lines = printed(three, time=True)
    assert lines[0].split() == ["learner", "feedback", "dynamics", "regret", "of", "uniform's", "an", "episode"]
    assert lines[2].split()[-2:] == ["125", "ns"]  # 20 000 episodes × 8 replicas in 0.02 s
    assert max(map(len, lines)) <= 80


def test_numbers_given_by_hand_are_marked(made_up):
    tuned = made_up("repo:step_scale=3", tuned=True)
    assert [row.cells[0] for row in tables.rows([made_up("repo"), tuned])] == ["repo", "repo:step_scale=3 (tuned)"]
    assert "Tuned: numbers given by hand" in " ".join(tables.notes([made_up("repo"), tuned]))
    assert "uned" not in " ".join(tables.notes([made_up("repo")]))


def test_races_stand_together_and_are_parted_by_lines_where_rows_are_many(made_up):
    seen = [
        ("o-reps", "full", "known"), ("repo", "aggregate", "unknown"), ("uniform", "aggregate", "unknown"),
        ("uob-reps", "semi-bandit", "unknown"), ("po-known", "aggregate", "known"), ("dapo", "semi-bandit", "known"),
        ("po-unknown", "aggregate", "unknown"),
    ]  # fmt: skip
    curves = by_what_they_see([made_up(a, feedback=b, dynamics=c) for a, b, c in seen])
    order = ["uniform", "po-known", "repo", "po-unknown", "dapo", "uob-reps", "o-reps"]
    assert [one.label for one in curves] == order
    body = printed(curves)[2:]
    assert [line.split()[0] for line in body if line] == order
    assert [i for i, line in enumerate(body) if not line] == [1, 3, 6, 8, 10]
    assert all(printed(curves[:3]))
    other = [made_up(a, feedback=b, dynamics=c, setting="another") for a, b, c in seen]
    mixed = by_what_they_see([other[0], *curves, *other[1:]])
    assert [one.setting for one in mixed] == ["another"] * 7 + [curves[0].setting] * 7


def test_convex_problems_are_set_against_closed_forms(made_up):
    convex, closed = {"update_by": "convex problem"}, {"update_by": "closed form"}
    curves = [  # 160 000 episodes each
        made_up("po-known", dynamics="known", seconds=0.16, **closed),
        made_up("dapo:feedback=aggregate", dynamics="known", seconds=3.2, **closed),
        made_up("scrible", dynamics="known", seconds=32.0, **convex),
        made_up("ftrl-tsallis", dynamics="known", seconds=16.0, **convex),
        made_up("dlb", dynamics="known", seconds=1.0, tuned=True, **convex),  # tuned, and not compared
        made_up("o-reps", feedback="full", dynamics="known", seconds=0.1, **convex),  # sees more
        made_up("po-unknown", seconds=0.16, **closed),
    ]
    assert [numbers.simple(note) for note in tables.closed_form_against_convex(curves)] == [
        "Convex problem or closed form, known dynamics, totals: ftrl-tsallis, the fastest that solves a convex problem "
        "in every episode, takes 100 µs, 100 times po-known's 1.00 µs (in compiled loops of its own) and 5.0 times "
        "dapo:feedback=aggregate's 20.0 µs (in the same loop)."
    ]
    assert tables.closed_form_against_convex(curves[:2]) == []


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


def test_a_note_names_a_learner_once_where_it_is_for_all_its_rows(made_up):
    note = {"notes": ("reconstructed",)}
    curves = [made_up("repo", **note), made_up("repo:v_scale=0.1", **note), made_up("x:a=1", **note), made_up("x:a=2")]
    assert tables.notes(curves)[1:] == ["* repo, x:a=1: reconstructed."]


def test_a_note_for_all_rows_is_told_once_and_marks_none(made_up):
    """All rows of a sweep over seeds had a star, which then told nothing of what is reconstructed."""
    shared = "3 seeds, each with its own"
    curves = [made_up("repo", notes=("reconstructed", shared)), made_up("x", notes=(shared,))]
    assert tables.notes(curves)[1:] == ["3 seeds, each with its own.", "* repo: reconstructed."]
    assert [row.cells[0] for row in tables.rows(curves)] == ["repo*", "x"]
    assert tables.notes(curves[:1])[1:] == ["* repo: reconstructed.", "* repo: 3 seeds, each with its own."]


def test_a_negative_regret_is_explained(made_up):
    assert tables.notes([made_up("x", scale=-1.0)])[1] == (
        "Negative: x lost less than any fixed policy, by following the losses."
    )
