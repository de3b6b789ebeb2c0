"""Value recursions, compiled and not, against all trajectories."""

import numpy as np
import pytest

from aggbandit._arrays import frozen
from aggbandit.kernels import values as kernels
from naive import planning as naive

SHAPES = [(1, 1, 1), (1, 3, 2), (2, 2, 2), (3, 3, 1), (3, 2, 3), (4, 3, 2)]

both_forms = pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "python"])
both_storages = pytest.mark.parametrize("stationary", [True, False], ids=["stationary", "per step"])
both_models = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
many_shapes = pytest.mark.parametrize("H, S, A", SHAPES)


def form(kernel, jitted):
    """The kernel, or the same source uncompiled (itself where compilation is off)."""
    return kernel if jitted else getattr(kernel, "py_func", kernel)


def read_only(*arrays):
    return tuple(frozen(np.ascontiguousarray(array)) for array in arrays)


def model(problem, stationary, is_sparse):
    """(transition_tsas,), or (next_states_tsan, probabilities_tsan)."""
    transition = problem.transition[:1] if stationary else problem.transition
    return read_only(*(naive.as_sparse(0, transition) if is_sparse else (transition,)))


@pytest.mark.equation("LM25-V")
@both_forms
@both_storages
@both_models
@many_shapes
def test_values_are_means_over_what_follows(H, S, A, is_sparse, stationary, jitted):
    problem = naive.random_problem(1, H, S, A, zeros=0.4, stationary=stationary)
    out = np.full((H, S), np.nan)
    kernel = kernels.values_sparse if is_sparse else kernels.values
    form(kernel, jitted)(*model(problem, stationary, is_sparse), *read_only(problem.policy, problem.loss), out)
    expected = naive.values(problem.transition, problem.policy, problem.loss)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.equation("LM25-Q")
@both_forms
@both_storages
@both_models
@many_shapes
def test_action_values_are_means_over_what_follows_the_action(H, S, A, is_sparse, stationary, jitted):
    problem = naive.random_problem(2, H, S, A, zeros=0.4, stationary=stationary)
    out_q, out_v = np.full((H, S, A), np.nan), np.full((H, S), np.nan)
    kernel = kernels.action_values_sparse if is_sparse else kernels.action_values
    form(kernel, jitted)(*model(problem, stationary, is_sparse), *read_only(problem.policy, problem.loss), out_q, out_v)
    table = problem.transition, problem.policy, problem.loss
    np.testing.assert_allclose(out_q, naive.action_values(*table), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(out_v, naive.values(*table), rtol=1e-12, atol=1e-14)


@pytest.mark.equation("LM25-W")
@both_forms
@both_storages
@both_models
@many_shapes
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_prefix_values_are_means_over_what_led_there(H, S, A, is_sparse, stationary, jitted, zeros):
    problem = naive.random_problem(3, H, S, A, zeros=zeros, stationary=stationary)
    out_reach, out_w = np.full((H, S), np.nan), np.full((H, S), np.nan)
    arguments = read_only(problem.policy, problem.loss, problem.initial)
    kernel = kernels.prefix_values_sparse if is_sparse else kernels.prefix_values
    form(kernel, jitted)(*model(problem, stationary, is_sparse), *arguments, out_reach, out_w)
    reach = naive.occupancy(problem.transition, problem.policy, problem.initial)
    np.testing.assert_allclose(out_w, naive.prefix_values(*problem), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(out_reach, reach, rtol=1e-12, atol=1e-15)


@pytest.mark.equation("LM25-regret")
@both_forms
@both_storages
@both_models
@pytest.mark.parametrize("H, S, A", [(1, 1, 1), (1, 2, 3), (2, 2, 2), (3, 1, 3), (2, 3, 2), (3, 2, 2)])
def test_best_policy_is_the_best_of_all(H, S, A, is_sparse, stationary, jitted):
    problem = naive.random_problem(4, H, S, A, zeros=0.4, stationary=stationary)
    out_actions, out_v = np.full((H, S), -1), np.full((H, S), np.nan)
    kernel = kernels.best_policy_sparse if is_sparse else kernels.best_policy
    arguments = *model(problem, stationary, is_sparse), *read_only(problem.loss)
    form(kernel, jitted)(*arguments, out_actions, out_v)
    best = min(
        naive.value(problem.transition, policy, problem.loss, problem.initial)
        for policy in naive.deterministic_policies(H, S, A)
    )
    taken = np.eye(A)[out_actions]
    assert problem.initial @ out_v[0] == pytest.approx(best, rel=1e-12, abs=1e-14)
    assert naive.value(problem.transition, taken, problem.loss, problem.initial) == pytest.approx(best, rel=1e-12)
    np.testing.assert_allclose(out_v, naive.values(problem.transition, taken, problem.loss), rtol=1e-12, atol=1e-14)


@both_forms
@both_models
def test_of_equal_actions_the_smallest_is_taken(is_sparse, jitted):
    problem = naive.random_problem(5, 3, 3, 2)
    same = np.repeat(problem.transition[:, :, :1], 4, axis=2)  # four actions that lead to the same places
    loss = np.broadcast_to([0.5, 0.25, 0.25, 0.75], (3, 3, 4))
    out_actions, out_v = np.full((3, 3), -1), np.full((3, 3), np.nan)
    kernel = kernels.best_policy_sparse if is_sparse else kernels.best_policy
    stored = read_only(*(naive.as_sparse(0, same) if is_sparse else (same,)))
    # random padding differs from action to action: only the sum over successors that are named once is exact
    if is_sparse:
        stored = read_only(*(np.repeat(array[:, :, :1], 4, axis=2) for array in stored))
    form(kernel, jitted)(*stored, *read_only(loss), out_actions, out_v)
    np.testing.assert_array_equal(out_actions, 1)
    np.testing.assert_allclose(out_v, [[0.75] * 3, [0.5] * 3, [0.25] * 3], rtol=1e-12)


@both_models
def test_the_step_out_of_the_last_state_is_never_read(is_sparse):
    problem = naive.random_problem(6, 3, 3, 2)
    policy, loss, initial = read_only(problem.policy, problem.loss, problem.initial)
    stored = model(problem, False, is_sparse)
    last = stored[-1].copy()
    last[-1] = np.nan
    broken = *stored[:-1], *read_only(last)

    def all_answers(arrays):
        v, v_again, v_best, reach, w = np.empty((5, 3, 3))
        q, actions = np.empty((3, 3, 2)), np.empty((3, 3), dtype=np.int64)
        suffix = "_sparse" if is_sparse else ""
        getattr(kernels, "values" + suffix)(*arrays, policy, loss, v)
        getattr(kernels, "action_values" + suffix)(*arrays, policy, loss, q, v_again)
        getattr(kernels, "prefix_values" + suffix)(*arrays, policy, loss, initial, reach, w)
        getattr(kernels, "best_policy" + suffix)(*arrays, loss, actions, v_best)
        return np.concatenate([array.ravel() for array in (v, q, v_again, reach, w, actions, v_best)])

    np.testing.assert_array_equal(all_answers(broken), all_answers(stored))
