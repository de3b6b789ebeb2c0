"""The contract's own parts: needs, problems, draws, names, and what a learner says of itself."""

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.learners.base import Draws, Needs, Problem
from naive import philox as naive_philox

MDP = ab.instances.make("random", states=3, actions=2, horizon=3, seed=1)


def test_needs_name_levels_that_exist() -> None:
    assert Needs() == Needs(feedback="aggregate", dynamics="unknown", losses="adversarial", late_feedback=False)
    with pytest.raises(InvalidInputError, match="needs.feedback must be one of aggregate, semi-bandit, full, but is"):
        Needs(feedback="bandit")
    with pytest.raises(InvalidInputError, match="needs.dynamics must be one of known, unknown"):
        Needs(dynamics="both")


def test_a_problem_holds_what_may_be_known() -> None:
    unknown = Problem(H=3, S=3, A=2, episodes=10)
    assert unknown.transition is None
    assert unknown.dynamics is None
    np.testing.assert_array_equal(unknown.initial, [1, 0, 0])
    known = Problem(H=3, S=3, A=2, episodes=10, transition=MDP.transition)
    assert known.dynamics is not None
    np.testing.assert_array_equal(known.dynamics.transition, MDP.transition)
    given = np.array(MDP.transition[0])
    stationary = Problem(H=7, S=3, A=2, episodes=10, transition=given, initial_state=2)
    assert stationary.dynamics is not None
    assert stationary.dynamics.is_stationary
    given[:] = 0.0  # the problem has its own
    assert stationary.transition.shape == (7, 3, 2, 3)
    np.testing.assert_array_equal(stationary.transition[4], MDP.transition[0])
    assert not stationary.transition.flags.writeable
    np.testing.assert_array_equal(stationary.initial, [0, 0, 1])
    spread = Problem(H=3, S=3, A=2, episodes=10, initial_state=[0.5, 0.0, 0.5])
    np.testing.assert_array_equal(spread.initial, [0.5, 0.0, 0.5])
    assert not spread.initial.flags.writeable


def test_a_sparse_problem_has_a_dense_transition_for_who_asks() -> None:
    """It used to be None, as if the dynamics were unknown."""
    sparse = ab.TabularMDP.sparse([[[0, 1]], [[1, 1]]], [[[0.25, 0.75]], [[1.0, 0.0]]], 3)
    problem = Problem(H=3, S=2, A=1, episodes=10, transition=sparse)
    assert problem.dynamics is sparse
    np.testing.assert_array_equal(problem.transition, np.broadcast_to([[[0.25, 0.75]], [[0.0, 1.0]]], (3, 2, 1, 2)))
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(again.transition, problem.transition)
    large = ab.TabularMDP.sparse(np.zeros((20_000, 1, 1), np.int64), np.ones((20_000, 1, 1)), 3)
    with pytest.raises(InvalidInputError, match="would take 3.2 GB"):
        _ = Problem(H=3, S=20_000, A=1, episodes=10, transition=large).transition
    with pytest.raises(AttributeError, match="'Problem' object has no attribute 'losses'"):
        _ = problem.losses  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"H": 0}, "H must be at least 1, but is 0"),
        ({"S": 2.0}, "S must be an integer, but is 2.0"),
        ({"A": True}, "A must be an integer, but is True"),
        ({"episodes": 0}, "episodes must be at least 1, but is 0"),
        ({"initial_state": 3}, "initial_state"),
        ({"initial_state": [0.5, 0.4, 0.0]}, "initial_state sums to 0.9"),
        ({"transition": np.ones((3, 3, 2, 3))}, r"transition\[0, 0, 0\] sums to 3"),
        ({"transition": np.full((3, 2, 3), np.nan)}, "transition"),
        ({"transition": MDP, "initial_state": 1}, r"initial_state is 1, but .* starts elsewhere .*=mdp\.initial_state"),
        ({"transition": [[0.5], [0.5, 0.5]]}, "transition must be an array, but its rows differ in length"),
        ({"H": 2, "transition": np.array(MDP.transition)}, r"transition describes \(H, S, A\) = \(3, 3, 2\)"),
    ],
)
def test_a_problem_is_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Problem(**({"H": 3, "S": 3, "A": 2, "episodes": 5} | arguments))


def test_draws_are_a_pure_function_of_where_they_are() -> None:
    draws = Draws(7, 2, 5, 1)
    first = draws.uniform(5)
    second = draws.uniform((2, 2))
    again = Draws(7, 2, 5, 1)
    np.testing.assert_array_equal(again.uniform(5), first)
    np.testing.assert_array_equal(again.uniform((2, 2)), second)
    for other in (Draws(8, 2, 5, 1), Draws(7, 3, 5, 1), Draws(7, 2, 6, 1), Draws(7, 2, 5, 2)):
        assert not np.array_equal(other.uniform(5), first)
    everything = np.concatenate([first, second.ravel()])
    assert ((everything >= 0) & (everything < 1)).all()
    assert np.unique(everything).size == 9  # five numbers use three blocks; the next call starts at the fourth


def test_normal_draws_are_normal() -> None:
    sample = Draws(1, 0, 0, 1).normal(100_001)
    assert sample.shape == (100_001,)
    # three standard errors of the mean and of the standard deviation
    assert abs(sample.mean()) < 3 / np.sqrt(sample.size)
    assert abs(sample.std() - 1) < 3 / np.sqrt(2 * sample.size)
    assert Draws(1, 0, 0, 1).normal((3, 2)).shape == (3, 2)


def test_a_learner_tells_its_name_arguments_and_what_they_come_to() -> None:
    learner = ab.learners.make("po-known", step_size="main")
    assert repr(learner) == "po-known(confidence=0.05, step_size='main', exploration=None, bonus_scale=1.0)"
    problem = Problem.of(MDP, 100, learner.needs)
    told = repr(learner.bound(problem))
    assert told.startswith(repr(learner))
    assert "step_size=0.0" in told
    assert repr(learner) == repr(pickle.loads(pickle.dumps(learner)))
    assert learner.bound(problem) == learner


def test_a_lowered_step_is_told() -> None:
    """With K = 1 the named step breaks the condition of the analysis: it is lowered, and every table can say so."""
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=1)
    losses = ab.adversaries.make("fixed", mdp, seed=0)
    for learner in ("po-known", "po-unknown"):
        result = ab.run(mdp, losses, learner, episodes=1)
        assert result.learner.resolved["step_lowered"] is True
        assert "step_lowered=True" in result.learner.text
        session = ab.start(learner, Problem.of(mdp, 1, ab.learners.make(learner).needs))
        assert "step_lowered=True" in repr(session.learner)


def test_names() -> None:
    assert {"fixed-policy", "po-known", "po-unknown", "uniform"} <= set(ab.learners.names())
    for name in ab.learners.names():
        assert ab.learners.get(name).id == name
    with pytest.raises(UnknownNameError, match=r"There is no learner 'po-unknwn'. Did you mean 'po-unknown'\?"):
        ab.learners.make("po-unknwn")
    with pytest.raises(InvalidInputError, match=r"no argument 'stepsize'. Did you mean 'step_size'\?"):
        ab.learners.make("po-known", stepsize=0.1)
    with pytest.raises(InvalidInputError, match="It takes none"):
        ab.learners.make("uniform", x=1)


def test_a_learner_of_ones_own_needs_no_registration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_project.py").write_text(
        "from dataclasses import dataclass\n"
        "from aggbandit.learners.uniform import Uniform\n"
        "from aggbandit import Learner, Needs\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine(Learner):\n"
        "    needs = Needs()\n"
        "    rate: float = 0.1\n"
        "    init = Uniform.init\n"
        "    policy = Uniform.policy\n"
        "    update = Uniform.update\n"
        "NotALearner = 3\n"
        "class Unfinished(Learner):\n"
        "    init = Uniform.init\n"
        "    policy = Uniform.policy\n"
    )
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    try:
        learner = ab.learners.make("my_project:Mine", rate=0.5)
        assert repr(learner) == "my_project:Mine(rate=0.5)"
        assert sys.path == path
        losses = ab.adversaries.make("fixed", MDP, seed=0)
        mine = ab.run(MDP, losses, "my_project:Mine", episodes=10)
        theirs = ab.run(MDP, losses, "uniform", episodes=10)
        np.testing.assert_allclose(mine.cost, theirs.cost, rtol=1e-12)
        with pytest.raises(InvalidInputError, match="'NotALearner' in module 'my_project' is no aggbandit.Learner"):
            ab.learners.make("my_project:NotALearner")
        with pytest.raises(InvalidInputError, match="cannot be made: its class does not define needs, update"):
            ab.learners.make("my_project:Unfinished")
        with pytest.raises(InvalidInputError, match="there is no module 'no_such_project', neither installed nor in"):
            ab.learners.make("no_such_project:Mine")
    finally:
        sys.modules.pop("my_project", None)


@pytest.mark.parametrize(
    "path", [":", ":Mine", "my_project:", ".my_project:Mine", "my project:Mine", "a:b:c", "a..b:C"]
)
def test_what_is_no_module_and_class_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match=r"is no module:Class, such as mine\.learners:Greedy"):
        ab.learners.make(path)


@pytest.mark.parametrize("path", ["po-known:confidence", "uniform:", "po-known:step_size=main"])
def test_arguments_behind_an_id_are_told_how_they_are_written(path: str) -> None:
    """Was: "there is no module 'uniform'"."""
    with pytest.raises(
        InvalidInputError, match=r"takes arguments as [a-z-]+:argument=value,\.\.\. on the command line"
    ):
        ab.learners.make(path)


def test_fixed_policy_takes_an_action_actions_or_probabilities() -> None:
    actions = np.array([[0, 1, 0], [1, 1, 1], [0, 0, 1]])
    losses = ab.adversaries.make("fixed", MDP, seed=0, table="random")
    table = losses.tables(0, 1)[0]
    given: Any
    for given, policy in (
        (1, np.broadcast_to([0.0, 1.0], (3, 3, 2))),
        (actions, np.eye(2)[actions]),
        (np.full((3, 3, 2), 0.5), np.full((3, 3, 2), 0.5)),
    ):
        result = ab.run(MDP, losses, ab.learners.make("fixed-policy", given=given), episodes=10)
        value = float(ab.planning.values(MDP, policy, table)[0] @ MDP.initial)
        np.testing.assert_allclose(result.cost[:, -1], 10 * value, rtol=1e-12)
    best, _ = ab.planning.best_policy(MDP, table)
    result = ab.run(MDP, losses, ab.learners.make("fixed-policy", given=best), episodes=10)
    np.testing.assert_allclose(result.regret, 0.0, atol=1e-12)
    for bad, message in (
        (2, "given must be between 0 and 1"),
        (np.full((3, 3), 0.5), "must hold actions"),
        (np.full((3, 3), 2), r"given\[0, 0\] is 2"),
        (np.full((3, 3, 2), 0.4), r"given\[0, 0\] sums to 0.8"),
        (np.zeros((2, 3)), "given must have shape"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ab.run(MDP, losses, ab.learners.make("fixed-policy", given=bad), episodes=10)


def test_the_contract_is_abstract() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Half(ab.Learner[Any]):
        needs = Needs()

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_the_naive_philox_is_another_one() -> None:
    """Draws read the stream that the naive Philox, written apart, gives."""
    words = naive_philox.philox4x32(counter=(2, 5, 0, 1), key=(7, 0))
    expected = ((words[0] << 21) | (words[1] >> 11)) / 2**53
    assert Draws(7, 2, 5, 1).uniform(1)[0] == expected


def test_numbers_given_by_hand_are_tuning_and_words_are_not() -> None:
    make = ab.learners.make
    for name in ab.learners.names():
        assert not make(name).tuned
    untuned = [
        make("po-known", confidence=0.2, step_size="main"),
        make("dlb", dynamics="unknown"),
        make("dapo", total_delay=7.0, feedback="aggregate"),
        make("fixed-policy", given=1),
        make("doubling", learner="po-unknown"),
        make("re-lsvi", features=[[[0.5]]]),
        make("dlb", step_scale=1),  # what it is anyway
    ]
    assert not any(learner.tuned for learner in untuned)
    tuned = [
        make("po-known", step_size=0.1),
        make("dlb", radius_scale=0.5),
        make("repo", ensemble=3),
        make("doubling", learner=make("po-known", exploration=0.1)),
    ]
    assert all(learner.tuned for learner in tuned)
