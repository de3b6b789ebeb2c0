import math

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.learners.base import Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.simulation.engines import po_known as engines
from aggbandit.simulation.engines.base import LossBlock
from aggbandit.simulation.engines.plain import PlainEngine
from naive import philox
from naive import po_known as naive

DENSE = [engines.SoloEngine, engines.LanesEngine]
SPARSE = [engines.SparseSoloEngine, engines.SparseLanesEngine]
ENGINES = DENSE + SPARSE  # the sparse ones play dense models, too


def dense_model(seed, H, S, A, initial=False, stationary=False):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(S), size=(S, A) if stationary else (H, S, A))
    transition[..., 0, 0, :] = np.eye(S)[S - 1]  # a certain move: rows with zeros
    return ab.TabularMDP(transition, H if stationary else None, rng.dirichlet(np.ones(S)) if initial else S - 1)


def sparse_model(seed, H, S, A, n=3, stationary=False, initial=False):
    rng = np.random.default_rng(seed)
    leading = (S, A) if stationary else (H, S, A)
    rows = int(np.prod(leading))
    successors = np.stack([rng.permutation(S)[:n] for _ in range(rows)]).reshape(*leading, n)
    probabilities = rng.dirichlet(np.ones(n), size=leading)
    return ab.TabularMDP.sparse(
        successors, probabilities, H if stationary else None, rng.dirichlet(np.ones(S)) if initial else 0
    )


def losses(seed, n, H, S, A):
    """Tables of which some stay for several episodes, as (tables, row of each episode)."""
    rng = np.random.default_rng([seed, 2])
    rows = np.cumsum(rng.random(n) < 0.4)
    rows -= rows[0]
    return rng.random((rows[-1] + 1, H, S, A)), rows


def cut(tables, rows, edges, mean=None):
    """The same episodes as blocks that end at `edges`."""
    for start, stop in zip([0, *edges], [*edges, len(rows)], strict=True):
        if start < stop:
            kept = rows[start:stop]
            yield LossBlock(start, tables[kept[0] : kept[-1] + 1].copy(), kept - kept[0], mean)


def engine_of(cls, mdp, K, seed=11, first=0, replicas=1, **arguments):
    learner = PolicyOptimizationKnown(**arguments)
    return cls(mdp, Problem.of(mdp, K, learner.needs), learner, seed, first, replicas)


def simulate(mdp, tables, rows, seed, replica, eta, gamma, bonus_scale=1.0):
    """The episodes by the contract's rules of drawing and the paper's pseudo-code: policy and costs."""
    transition = np.array(mdp.transition)
    H, S, A = mdp.H, mdp.S, mdp.A
    policy = np.full((H, S, A), 1 / A)
    costs = []

    def move(h, s, a, u):
        if not mdp.is_sparse:
            return naive.inverse_cdf(transition[h, s, a], u)
        t = 0 if mdp.is_stationary else h
        return mdp.next_states[t, s, a, naive.inverse_cdf(mdp.probabilities[t, s, a], u)]

    for k, row in enumerate(rows):
        table = tables[row]

        def uniform(h, k=k):
            counter = (replica, k, 0xFFFFFFFF if h is None else h, 0)
            words = philox.philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
            return philox.double(*words[:2]), philox.double(*words[2:])

        states, actions = naive.sample(move, mdp.initial, policy, uniform)
        costs.append(naive.expected_loss(transition, mdp.initial, policy, table))
        total = sum(table[h, states[h], actions[h]] for h in range(H))
        policy, _ = naive.update(transition, mdp.initial, policy, states, actions, total, eta, gamma, bonus_scale)
    return policy, costs


MODELS = {
    "dense": dense_model(0, 3, 4, 2),
    "stationary": dense_model(1, 4, 3, 3, initial=True, stationary=True),
    "sparse": sparse_model(2, 4, 5, 2, initial=True),
    "stationary-sparse": sparse_model(3, 4, 5, 3, stationary=True),
}
PAIRS = [(cls, name) for name in MODELS for cls in (SPARSE if "sparse" in name else ENGINES)]


@pytest.mark.parametrize("cls, name", PAIRS)
def test_engines_follow_a_naive_simulation(cls, name):
    mdp = MODELS[name]
    K = 200
    tables, rows = losses(3, K, mdp.H, mdp.S, mdp.A)
    mean = tables.mean(axis=0)
    engine = engine_of(cls, mdp, K, seed=2**63 + 5, first=4, replicas=2, step_size=0.02)
    for block in cut(tables, rows, [100], mean):
        engine.play(block)
    for r in range(2):
        policy, costs = simulate(mdp, tables, rows, 2**63 + 5, 4 + r, 0.02, 2 * 0.02 * mdp.H)
        np.testing.assert_allclose(engine.policies()[r], policy, rtol=1e-9, atol=1e-250)
        assert engine.cost()[r] == pytest.approx(math.fsum(costs), rel=1e-12)
    assert engine.pseudo_cost().shape == (2,)


# rows of several products, several blocks of states, an odd number of everything, one of everything
SHAPES = [(5, 6, 3), (3, 37, 5), (2, 5, 33), (4, 31, 1), (1, 3, 2), (3, 1, 2), (1, 1, 1)]


@pytest.mark.parametrize("cls", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("arguments", [{}, {"step_size": 30.0, "exploration": 1e-2}], ids=["paper", "underflowing"])
def test_engines_give_the_bits_of_the_learner_in_the_plain_loop(cls, shape, arguments):
    mdp = dense_model(4, *shape)
    if cls in SPARSE and mdp.S > 3:
        mdp = sparse_model(4, *shape)
    K = 40
    tables, rows = losses(4, K, *shape)
    pair = [engine_of(c, mdp, K, replicas=3, **arguments) for c in (cls, PlainEngine)]
    for engine in pair:
        for block in cut(tables, rows, [7]):
            engine.play(block)
    np.testing.assert_array_equal(pair[0].policies(), pair[1].policies())
    np.testing.assert_allclose(pair[0].cost(), pair[1].cost(), rtol=1e-13)


@pytest.mark.parametrize("cls", ENGINES)
@pytest.mark.parametrize("arguments", [{}, {"step_size": 30.0, "exploration": 1e-2}], ids=["paper", "underflowing"])
def test_no_cut_and_no_restart_changes_a_bit(cls, arguments):
    mdp = dense_model(5, 3, 4, 3)
    K = 200
    tables, rows = losses(5, K, 3, 4, 3)
    mean = tables.mean(axis=0)
    whole = engine_of(cls, mdp, K, replicas=2, **arguments)
    for block in cut(tables, rows, [], mean):
        whole.play(block)
    parts = engine_of(cls, mdp, K, replicas=2, **arguments)
    for block in cut(tables, rows, [1, 2, 9, 73, 150], mean):
        parts.play(block)
        saved = parts.state()
        parts = engine_of(cls, mdp, K, replicas=2, **arguments)
        parts.restore(saved)
    np.testing.assert_array_equal(whole.policies(), parts.policies())
    np.testing.assert_array_equal(whole.cost(), parts.cost())
    np.testing.assert_array_equal(whole.pseudo_cost(), parts.pseudo_cost())
    if arguments:
        assert whole.state()["tiny"].size > 0  # the logarithms were saved as well


@pytest.mark.parametrize("sparse, dense", list(zip(SPARSE, DENSE, strict=True)))
def test_sparse_engines_give_the_bits_of_the_dense_ones(sparse, dense):
    """The terms that are left out are zeros."""
    mdp = ab.instances.make("random", states=9, actions=2, horizon=5, sparsity=3, seed=1)
    K = 100
    tables, rows = losses(9, K, 5, 9, 2)
    pair = [engine_of(cls, mdp, K, replicas=2) for cls in (sparse, dense)]
    for engine in pair:
        for block in cut(tables, rows, [], tables[0]):
            engine.play(block)
    np.testing.assert_array_equal(pair[0].policies(), pair[1].policies())
    np.testing.assert_array_equal(pair[0].cost(), pair[1].cost())
    np.testing.assert_array_equal(pair[0].pseudo_cost(), pair[1].pseudo_cost())


@pytest.mark.parametrize("cls", ENGINES)
def test_any_engine_continues_what_another_began(cls):
    mdp = dense_model(10, 3, 4, 2)
    K = 60
    tables, rows = losses(10, K, 3, 4, 2)
    first, second = cut(tables, rows, [30])
    began = engine_of(engines.SoloEngine, mdp, K, replicas=2, step_size=30.0)
    began.play(first)
    goes_on = engine_of(cls, mdp, K, replicas=2, step_size=30.0)
    goes_on.restore(began.state())
    for engine in (began, goes_on):
        engine.play(second)
    np.testing.assert_array_equal(began.policies(), goes_on.policies())
    np.testing.assert_array_equal(began.cost(), goes_on.cost())


@pytest.mark.parametrize("cls", ENGINES)
def test_a_replica_does_not_see_its_neighbours(cls):
    mdp = dense_model(6, 3, 4, 3)
    K = 150
    tables, rows = losses(6, K, 3, 4, 3)
    together = engine_of(cls, mdp, K, replicas=35)
    alone = engine_of(cls, mdp, K, first=33, replicas=1)
    for engine in (together, alone):
        for block in cut(tables, rows, []):
            engine.play(block)
    np.testing.assert_array_equal(together.policies()[33], alone.policies()[0])
    assert together.cost()[33] == alone.cost()[0]
    assert not np.array_equal(together.policies()[33], together.policies()[32])


@pytest.mark.parametrize("cls", ENGINES)
def test_cost_is_the_correctly_rounded_sum_of_the_episodes(cls):
    """A plain sum of these costs would be off by more than the last bit."""
    mdp = dense_model(7, 3, 4, 2)
    K = 400
    tables, rows = losses(7, K, 3, 4, 2)
    tables = tables**30  # sizes far apart
    steps = engine_of(cls, mdp, K)
    singles = []
    for block in cut(tables, rows, list(range(1, K))):
        once = engine_of(cls, mdp, K)
        once.restore({**steps.state(), "costs": np.zeros((1, 2))})
        once.play(block)
        steps.play(block)
        singles.append(once.cost()[0])
    assert steps.cost()[0] == math.fsum(singles)


@pytest.mark.parametrize("cls", ENGINES)
def test_pseudo_cost_is_the_cost_against_the_mean_table(cls):
    mdp = dense_model(8, 3, 4, 2)
    K = 60
    tables, rows = losses(8, 1, 3, 4, 2)
    rows = np.zeros(K, int)
    engine = engine_of(cls, mdp, K)
    assert engine.pseudo_cost() is None
    for block in cut(tables, rows, [20], tables[0]):
        engine.play(block)
    assert engine.pseudo_cost()[0] == engine.cost()[0]


@pytest.mark.slow
def test_ten_million_episodes_of_switching_end_in_distributions():
    """The losses turn into their opposite every 250 000 episodes; steps far larger than the paper's."""
    rng = np.random.default_rng(0)
    mdp = ab.TabularMDP(rng.dirichlet(np.ones(2), size=(2, 2, 2)))
    K, block = 10**7, 250_000
    engine = engine_of(engines.SoloEngine, mdp, K, step_size=0.03)
    table = np.round(rng.random((2, 2, 2)))
    leads = np.zeros((2, 2, 2), bool)
    least = 1.0
    for first in range(0, K, block):
        table = 1.0 - table
        engine.play(LossBlock(first, table[None].copy(), np.zeros(block, np.int64), None))
        policy = engine.policies()[0]
        assert np.isfinite(policy).all()
        np.testing.assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-12)
        leads |= policy > 0.6
        least = min(least, policy.min())
    assert least < 1e-300  # at a state that episodes never start in
    assert leads[0, 0].all()  # where they start, the actions took turns


@pytest.mark.parametrize(
    "mdp, replicas, cls",
    [
        (dense_model(0, 3, 4, 2), 1, engines.SoloEngine),
        (dense_model(0, 3, 4, 2), 16, engines.LanesEngine),
        (sparse_model(0, 3, 40, 2), 1, engines.SparseSoloEngine),
        (sparse_model(0, 3, 40, 2), 16, engines.SparseLanesEngine),
        (
            ab.instances.make("random", states=40, actions=2, horizon=3, sparsity=4, seed=0),
            16,
            engines.SparseLanesEngine,
        ),
    ],
    ids=["one", "many", "sparse-one", "sparse-many", "mostly-zero"],
)
def test_run_gets_the_engine_for_its_sizes(mdp, replicas, cls):
    learner = PolicyOptimizationKnown()
    found, width = engines.choose(mdp, Problem.of(mdp, 10, learner.needs), learner, replicas)
    assert found is cls
    assert width >= 1


def test_large_transitions_are_shared_by_packs_but_leave_work_for_two_threads():
    mdp = ab.instances.make("random", states=60, actions=10, horizon=20, seed=0)
    learner = PolicyOptimizationKnown()
    widths = [engines.choose(mdp, Problem.of(mdp, 10, learner.needs), learner, R)[1] for R in (32, 128, 1024)]
    assert widths[0] <= 16
    assert widths[1] <= 64
    assert widths[2] > 64
