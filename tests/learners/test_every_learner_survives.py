"""Corners beyond the contract's that every learner must get through, in every form that it takes."""

import warnings

import numpy as np
import pytest

import aggbandit as ab
from aggbandit import learners
from aggbandit.learners.base import Problem
from aggbandit.testing.learner_contract import Played
from forms import FORMS, title

forms = pytest.mark.parametrize("form", FORMS, ids=title)
MOVES = np.zeros((3, 2, 3))
MOVES[np.arange(3), 0, np.arange(3)] = 1.0  # action 0 stays, action 1 goes on
MOVES[np.arange(3), 1, (np.arange(3) + 1) % 3] = 1.0


@forms
def test_a_sparse_model_is_played_as_the_dense_one(form):
    name, arguments = form
    dense = ab.TabularMDP(MOVES, horizon=3)
    sparse = ab.TabularMDP.sparse(MOVES.argmax(axis=-1)[:, :, None], np.ones((3, 2, 1)), horizon=3)
    learner = learners.make(name, **arguments)
    for one, two in zip(Played(learner, dense).policies, Played(learner, sparse).policies, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)


@forms
def test_places_that_are_all_but_impossible(form):
    name, arguments = form
    rare = np.full((3, 2, 3), 1e-9)
    rare[:, :, 0] = 1 - 2e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in Played(learners.make(name, **arguments), ab.TabularMDP(rare, horizon=3)).policies:
            assert (policy >= 0).all()
            np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-9)


@forms
def test_impossible_trajectories_do_no_harm(form):
    # a person may report what the model excludes: a place that nothing leads to, an action that was not offered
    trap = MOVES.copy()
    trap[0, 1] = trap[1, 1] = [0.5, 0.5, 0.0]  # state 2 is never reached
    name, arguments = form
    learner = learners.make(name, **arguments)
    session = ab.start(learner, Problem.of(ab.TabularMDP(trap, horizon=3), 5, learner.needs))
    told = {"aggregate": 1.0, "semi-bandit": np.array([0.0, 1.0, 0.0]), "full": np.full((3, 3, 2), 0.4)}
    for _ in range(5):
        session.update(np.array([2, 2, 2]), np.array([1, 1, 1]), told[learner.needs.feedback])
    assert np.isfinite(session.policy).all()
    np.testing.assert_allclose(session.policy.sum(axis=-1), 1.0, atol=1e-9)
