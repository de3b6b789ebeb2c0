"""The fused engine of Algorithm 2 plays what the plain loop plays, however its episodes are cut."""

import numpy as np
import pytest

from aggbandit.learners.base import Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import LossBlock
from aggbandit.simulation.engines.plain import PlainEngine
from aggbandit.simulation.engines.po_unknown import UnknownEngine, choose

K = 160
SEED = 2**63 + 11


def dense(seed, H=4, S=3, A=2, initial_state=1):
    rng = np.random.default_rng(seed)
    return TabularMDP(rng.dirichlet(np.full(S, 0.6), size=(H, S, A)), None, initial_state)


def stationary(seed):
    rng = np.random.default_rng(seed)
    return TabularMDP(rng.dirichlet(np.full(4, 0.6), size=(4, 3)), 5, [0.25, 0.0, 0.75, 0.0])


def sparse(seed, S=6):
    rng = np.random.default_rng(seed)
    H, A, n = 4, 2, 2
    following = np.array([rng.choice(S, size=n, replace=False) for _ in range(H * S * A)]).reshape(H, S, A, n)
    probabilities = rng.dirichlet(np.ones(n), size=(H, S, A))
    probabilities[0, 0, 0] = [1.0, 0.0]
    return TabularMDP.sparse(following, probabilities, None, 0)


WORLDS = {
    "dense": dense(0),
    "stationary": stationary(1),
    "sparse": sparse(2),
    "one step": dense(3, H=1),
    "more states than a vector": dense(4, S=10, A=3),  # the padding of one action's states used to spoil the next's
    "sparse, more states than a vector": sparse(5, S=11),
}


def losses_of(mdp, seed=5, rows=7):
    """A few tables, each played for a while, and their mean."""
    rng = np.random.default_rng(seed)
    tables = rng.random((rows, mdp.H, mdp.S, mdp.A))
    return tables, np.sort(rng.integers(0, rows, size=K))


def engine_after(kind, mdp, learner, cuts=(), replicas=2, with_mean=True, through_state_at=None):
    problem = Problem.of(mdp, K, learner.needs)
    tables, row_k = losses_of(mdp)
    arguments = (mdp, problem, learner, SEED, 3, replicas)
    engine = kind(*arguments)
    for start, stop in zip((0, *cuts), (*cuts, K), strict=True):
        rows = row_k[start:stop]
        held = np.ascontiguousarray(tables[rows.min() : rows.max() + 1])
        engine.play(LossBlock(start, held, rows - rows.min(), tables.mean(axis=0) if with_mean else None))
        if through_state_at == stop:
            saved = engine.state()
            engine = kind(*arguments)
            engine.restore(saved)
    return engine


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("radius_scale", [1.0, 0.01, 0.0])
def test_equals_the_plain_loop(world, radius_scale):
    learner = PolicyOptimizationUnknown(radius_scale=radius_scale, step_size="main")
    fused = engine_after(UnknownEngine, WORLDS[world], learner)
    plain = engine_after(PlainEngine, WORLDS[world], learner)
    np.testing.assert_allclose(fused.policies(), plain.policies(), atol=1e-10)
    np.testing.assert_allclose(fused.cost(), plain.cost(), rtol=1e-11)
    np.testing.assert_allclose(fused.pseudo_cost(), plain.pseudo_cost(), rtol=1e-11)


@pytest.mark.parametrize("world", WORLDS)
def test_chunking_leaves_no_trace(world):
    learner = PolicyOptimizationUnknown(radius_scale=0.01)
    whole = engine_after(UnknownEngine, WORLDS[world], learner)
    cut = engine_after(UnknownEngine, WORLDS[world], learner, cuts=(1, 2, 17, 100, 159))
    resumed = engine_after(UnknownEngine, WORLDS[world], learner, cuts=(40, 90), through_state_at=90)
    for other in (cut, resumed):
        np.testing.assert_array_equal(other.policies(), whole.policies())
        np.testing.assert_array_equal(other.cost(), whole.cost())
        np.testing.assert_array_equal(other.pseudo_cost(), whole.pseudo_cost())


def test_a_replica_does_not_depend_on_its_company():
    learner = PolicyOptimizationUnknown(radius_scale=0.01)
    mdp = WORLDS["dense"]
    assert choose(mdp, Problem.of(mdp, K, learner.needs), learner, 5) == (UnknownEngine, 1)
    alone = engine_after(UnknownEngine, mdp, learner, replicas=1)
    pair = engine_after(UnknownEngine, mdp, learner, replicas=2)
    np.testing.assert_array_equal(alone.policies()[0], pair.policies()[0])
    assert not np.array_equal(pair.policies()[0], pair.policies()[1])


def test_pseudo_cost_is_absent_without_a_mean_table():
    engine = engine_after(UnknownEngine, WORLDS["dense"], PolicyOptimizationUnknown(), with_mean=False)
    assert engine.pseudo_cost() is None
