"""The engines of the practical learners play what the plain loop plays, however the episodes are cut."""

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_model_free import FIRST_CAPACITY, PolicyOptimizationModelFree
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from aggbandit.simulation.engines import po_model_free, po_practical
from aggbandit.simulation.engines.base import LossBlock
from aggbandit.simulation.engines.plain import PlainEngine

H, S, A, K = 6, 12, 3, 240

CASES = {
    "model-free": (PolicyOptimizationModelFree(), po_model_free.PoModelFreeEngine),
    "known": (PolicyOptimizationPractical(), po_practical.PoPracticalEngine),
    "unknown": (PolicyOptimizationPractical(dynamics="unknown", forget=0.01), po_practical.PoPracticalEngine),
}


def dense(rng):
    return ab.TabularMDP(rng.dirichlet(np.ones(S), size=(H, S, A)), initial_state=rng.dirichlet(np.ones(S)))


def stationary(rng):
    return ab.TabularMDP(rng.dirichlet(np.ones(S), size=(S, A)), H)


def sparse(rng):
    return ab.TabularMDP.sparse(rng.integers(S, size=(H, S, A, 3)), rng.dirichlet(np.ones(3), size=(H, S, A)))


def sparse_stationary(rng):
    return ab.TabularMDP.sparse(rng.integers(S, size=(S, A, 3)), rng.dirichlet(np.ones(3), size=(S, A)), H)


def blocks(tables, rows, edges, mean):
    for start, stop in zip([0, *edges], [*edges, K], strict=True):
        kept = rows[start:stop]
        yield LossBlock(start, tables[kept[0] : kept[-1] + 1].copy(), kept - kept[0], mean)


def play(cls, mdp, learner, edges, evaluate_every=1, with_mean=True, saved=False):
    problem = Problem.of(mdp, None, learner.needs)
    rng = np.random.default_rng(1)
    rows = np.cumsum(rng.random(K) < 0.3)
    tables = rng.random((rows[-1] + 1, H, S, A))
    engine = cls(mdp, problem, learner, 7, 2, 2, evaluate_every)
    for block in blocks(tables, rows, edges, tables.mean(0) if with_mean else None):
        engine.play(block)
        if saved:
            state = engine.state()
            engine = cls(mdp, problem, learner, 7, 2, 2, evaluate_every)
            engine.restore(state)
    return engine


def outcome(engine):
    return engine.policies(), engine.cost(), engine.pseudo_cost()


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(outcome(one), outcome(other), strict=True))


@pytest.mark.parametrize("world", [dense, stationary, sparse, sparse_stationary])
@pytest.mark.parametrize("case", CASES)
def test_the_fused_engine_equals_the_plain_one_bit_for_bit(case, world):
    learner, cls = CASES[case]
    mdp = world(np.random.default_rng(5))
    for evaluate_every in (1, 7):
        plain = play(PlainEngine, mdp, learner, [], evaluate_every)
        assert same(play(cls, mdp, learner, [], evaluate_every), plain)
        assert abs(plain.policies() - 1 / A).max() > 0.2


@pytest.mark.parametrize("case", CASES)
def test_cuts_and_saved_states_leave_no_trace(case):
    learner, cls = CASES[case]
    mdp = dense(np.random.default_rng(6))
    whole = play(cls, mdp, learner, [], 3)
    assert same(play(cls, mdp, learner, [1, 50, 51, 200], 3), whole)
    assert same(play(cls, mdp, learner, [1, 50, 51, 200], 3, saved=True), whole)


@pytest.mark.parametrize("case", CASES)
def test_without_a_mean_table_there_is_no_pseudo_cost(case):
    learner, cls = CASES[case]
    assert play(cls, dense(np.random.default_rng(0)), learner, [], with_mean=False).pseudo_cost() is None


def test_rows_grow_in_the_middle_of_a_block():
    mdp = dense(np.random.default_rng(8))
    learner, cls = CASES["model-free"]
    engine = play(cls, mdp, learner, [])
    used = [int(state.used[0]) for state in engine._states]
    assert min(used) > FIRST_CAPACITY - H
    assert same(engine, play(PlainEngine, mdp, learner, []))


@pytest.mark.parametrize("case", CASES)
def test_an_engine_plays_its_own_learner_only(case):
    _, cls = CASES[case]
    mdp = dense(np.random.default_rng(0))
    other = PolicyOptimizationKnown()
    with pytest.raises(InvalidInputError, match=f"{cls.__name__} plays"):
        cls(mdp, Problem.of(mdp, 10, other.needs), other, 0, 0, 1)


@pytest.mark.parametrize("module", [po_model_free, po_practical])
def test_one_replica_an_engine(module):
    mdp = dense(np.random.default_rng(0))
    learner = next(learner for learner, cls in CASES.values() if cls.__module__ == module.__name__)
    cls, width = module.choose(mdp, Problem.of(mdp, None, learner.needs), learner, 8)
    assert (cls.__module__, width) == (module.__name__, 1)


@pytest.mark.parametrize("case, most", [("model-free", 6.0), ("known", 4.0), ("unknown", 5.0)])
def test_regret_is_a_small_part_of_the_uniform_policys(case, most):
    """Regression: the mean over three instances, of two replicas each, at K = 10 000, H, S, A = 5, 5, 3."""
    learner, cls = CASES[case]
    shares = []
    for seed in range(3):
        mdp = ab.instances.make("random", states=5, actions=3, horizon=5, seed=seed)
        table = np.random.default_rng(seed).random((5, 5, 3))
        engine = cls(mdp, Problem.of(mdp, None, learner.needs), learner, seed, 0, 2, 20)
        engine.play(LossBlock(0, table[None].copy(), np.zeros(10_000, np.int64), None))
        _, best = ab.planning.best_policy(mdp, table)
        uniform = (ab.planning.occupancy(mdp, np.full((5, 5, 3), 1 / 3))[:, :, None] * table).sum() / 3
        shares.append((engine.cost().mean() / 10_000 - best) / (uniform - best))
    assert 100 * np.mean(shares) <= most
