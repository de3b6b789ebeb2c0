"""Forward recursions, compiled and not, against all trajectories."""

import numpy as np
import pytest

from aggbandit._arrays import frozen
from aggbandit.kernels import occupancy as kernels
from naive import planning as naive

SHAPES = [(1, 1, 1), (1, 3, 2), (2, 2, 2), (3, 3, 1), (3, 2, 3), (4, 3, 2)]

both_forms = pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "python"])
both_storages = pytest.mark.parametrize("stationary", [True, False], ids=["stationary", "per step"])
many_shapes = pytest.mark.parametrize("H, S, A", SHAPES)


def form(kernel, jitted):
    """The kernel, or the same source uncompiled (itself where compilation is off)."""
    return kernel if jitted else getattr(kernel, "py_func", kernel)


def read_only(*arrays):
    return tuple(frozen(np.ascontiguousarray(array)) for array in arrays)


def dense(problem, stationary):
    """(transition_tsas,)."""
    return read_only(problem.transition[:1] if stationary else problem.transition)


def sparse(problem, stationary, seed=0):
    """(next_states_tsan, probabilities_tsan)."""
    return read_only(*naive.as_sparse(seed, problem.transition[:1] if stationary else problem.transition))


@pytest.mark.equation("LM25-occupancy")
@both_forms
@both_storages
@many_shapes
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_reach_is_the_share_of_trajectories(H, S, A, stationary, jitted, zeros):
    problem = naive.random_problem(1, H, S, A, zeros=zeros, stationary=stationary)
    expected = naive.occupancy(problem.transition, problem.policy, problem.initial)
    policy, initial = read_only(problem.policy, problem.initial)

    out = np.full((H, S), np.nan)
    form(kernels.reach, jitted)(*dense(problem, stationary), policy, initial, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)

    out = np.full((H, S), np.nan)
    form(kernels.reach_sparse, jitted)(*sparse(problem, stationary), policy, initial, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


@both_forms
@both_storages
@many_shapes
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_expected_cost_is_the_mean_total(H, S, A, stationary, jitted, zeros):
    problem = naive.random_problem(2, H, S, A, zeros=zeros, stationary=stationary)
    expected = naive.value(*problem)
    reach = naive.occupancy(problem.transition, problem.policy, problem.initial)
    policy, loss, initial = read_only(problem.policy, problem.loss, problem.initial)

    out = np.full((H, S), np.nan)
    cost = form(kernels.expected_cost, jitted)(*dense(problem, stationary), policy, loss, initial, out)
    assert cost == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(out, reach, rtol=1e-12, atol=1e-15)

    out = np.full((H, S), np.nan)
    cost = form(kernels.expected_cost_sparse, jitted)(*sparse(problem, stationary), policy, loss, initial, out)
    assert cost == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(out, reach, rtol=1e-12, atol=1e-15)


def test_the_step_out_of_the_last_state_is_never_read():
    problem = naive.random_problem(3, 3, 3, 2)
    policy, loss, initial = read_only(problem.policy, problem.loss, problem.initial)
    (transition,) = dense(problem, stationary=False)
    next_states, probabilities = sparse(problem, stationary=False)
    broken, broken_probabilities = transition.copy(), probabilities.copy()
    broken[-1] = broken_probabilities[-1] = np.nan
    broken, broken_probabilities = read_only(broken, broken_probabilities)
    out, expected = np.empty((3, 3)), np.empty((3, 3))

    cost = kernels.expected_cost(transition, policy, loss, initial, expected)
    kernels.reach(broken, policy, initial, out)
    np.testing.assert_array_equal(out, expected)
    assert kernels.expected_cost(broken, policy, loss, initial, out) == cost

    cost = kernels.expected_cost_sparse(next_states, probabilities, policy, loss, initial, expected)
    kernels.reach_sparse(next_states, broken_probabilities, policy, initial, out)
    np.testing.assert_array_equal(out, expected)
    assert kernels.expected_cost_sparse(next_states, broken_probabilities, policy, loss, initial, out) == cost
