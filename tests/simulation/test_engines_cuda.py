"""The GPU's kernels, compiled for the CPU: in float64 they give the CPU engines' bits."""

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners import as_learner
from aggbandit.learners.base import Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.simulation.engines.cuda import po_known, po_model_free, po_practical, po_unknown, practical, tiles
from aggbandit.simulation.engines.cuda.base import spread_over
from aggbandit.simulation.engines.cuda.po_known import GroupsEngine, ProductsEngine, ThreadsEngine
from aggbandit.simulation.engines.cuda.po_model_free import CudaPoModelFreeEngine
from aggbandit.simulation.engines.cuda.po_practical import CudaPoPracticalEngine
from aggbandit.simulation.engines.cuda.po_unknown import CudaPoUnknownEngine
from cuda_on_host.device import HostDevice, needs_compiler
from cuda_on_host.plays import F32, F64, blocks, both, model, of_all, played

pytestmark = needs_compiler
DEVICE = HostDevice()


QUICK = PolicyOptimizationKnown(step_size=10.0, exploration=1e-4)  # probabilities soon fall below TINY


@pytest.mark.parametrize(
    ("engine", "H", "S", "A", "stationary", "mean", "replicas"),
    [
        (ThreadsEngine, 4, 5, 3, False, True, 3),
        (ThreadsEngine, 3, 3, 2, True, False, 2),
        (GroupsEngine, 4, 5, 3, False, True, 7),  # six replicas to a warp, and two lanes idle
        (GroupsEngine, 3, 35, 2, True, False, 2),  # more states than lanes
        (GroupsEngine, 1, 1, 1, False, True, 2),
    ],
)
@pytest.mark.parametrize("learner", ["po-known", QUICK])
def test_algorithm_1_gives_the_cpus_bits(engine, H, S, A, stationary, mean, replicas, learner):
    mdp = model(H, S, A, stationary)
    gpu, cpu = played(DEVICE, engine, mdp, learner, replicas, [1, 40, 90], mean=mean, first=2)
    assert np.array_equal(gpu.policies(), of_all(cpu, "policies"))
    if learner is QUICK and S > 1 and S < 9:
        assert gpu.policies().min() < 2.0**-900  # the logarithms were needed
    # the CPU's sums take eight states at a time, so an episode's cost may differ in its last bits
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=0, atol=90 * H * 1e-15)
    if mean:
        np.testing.assert_allclose(gpu.pseudo_cost(), of_all(cpu, "pseudo_cost"), rtol=0, atol=90 * H * 1e-15)
    else:
        assert gpu.pseudo_cost() is None


@pytest.mark.parametrize(
    ("H", "S", "A", "stationary", "replicas", "cut"),
    [
        (4, 9, 3, False, 5, {}),  # an odd number of actions in twos; two blocks share the columns
        (3, 9, 4, True, 70, {"K_AT_ONCE": 1}),  # three warps a block, and two blocks
        (1, 9, 2, False, 5, {}),
        (3, 21, 11, False, 2, {"K_AT_ONCE": 2}),  # actions in two rounds, and their odd number filled up
        (3, 21, 2, False, 2, {"MOST_HELD": 0, "MOST_STREAMED": 2}),  # values from memory, in three parts
    ],
)
@pytest.mark.parametrize("learner", ["po-known", QUICK])
def test_algorithm_1_as_matrix_products_differs_by_rounding_alone(
    H, S, A, stationary, replicas, cut, learner, monkeypatch
):
    for name, value in cut.items():
        monkeypatch.setattr(tiles, name, value)
    mdp = model(H, S, A, stationary)
    gpu, cpu = played(DEVICE, ProductsEngine, mdp, learner, replicas, [1, 20, 45] if replicas < 9 else [12])
    np.testing.assert_allclose(gpu.policies(), of_all(cpu, "policies"), rtol=0, atol=1e-13)
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=0, atol=1e-12)
    np.testing.assert_allclose(gpu.pseudo_cost(), of_all(cpu, "pseudo_cost"), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("H", "S", "A", "stationary", "radius_scale", "K"),
    [
        (4, 3, 2, False, 0.01, 300),
        (3, 5, 2, True, 1.0, 100),
        (2, 1, 2, False, 1.0, 20),
        (1, 3, 2, False, 1.0, 20),
        (4, 18, 2, False, 0.0005, 60),  # two warps, and more targets than lanes
    ],
)
def test_algorithm_2_gives_the_cpus_bits(H, S, A, stationary, radius_scale, K):
    mdp = model(H, S, A, stationary)
    learner = PolicyOptimizationUnknown(radius_scale=radius_scale)
    gpu, cpu = played(DEVICE, CudaPoUnknownEngine, mdp, learner, 2, [1, K // 3, K], mean=not stationary)
    # its sums take eight entries at a time on the CPU: see `test_engine_po_unknown`
    np.testing.assert_allclose(gpu.policies(), of_all(cpu, "policies"), rtol=0, atol=1e-12)
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=0, atol=K * H * 1e-14)


KNOWN = PolicyOptimizationPractical()
COUNTING = PolicyOptimizationPractical(dynamics="unknown", forget=0.01)
MODEL_FREE = PolicyOptimizationModelFree()
FORGETFUL = PolicyOptimizationModelFree(forget=0.02, exploration=0.0, step_scale=2.0)


@pytest.mark.parametrize(("H", "S", "A", "stationary", "mean", "replicas"), [
    (4, 5, 3, False, True, 7),  # six replicas to a warp, and two lanes idle; more lanes than steps
    (9, 3, 4, True, False, 2),  # more steps than lanes
    (3, 35, 2, False, True, 2),  # more states than lanes
    (1, 1, 1, False, True, 2),
])  # fmt: skip
@pytest.mark.parametrize(("engine", "learner"), [
    (CudaPoPracticalEngine, KNOWN), (CudaPoPracticalEngine, COUNTING),
    (CudaPoModelFreeEngine, MODEL_FREE), (CudaPoModelFreeEngine, FORGETFUL),
])  # fmt: skip
@pytest.mark.parametrize("fewest_warps", [1, 1000], ids=["shared", "not shared"])
def test_the_practical_learners_give_the_cpus_bits(
    engine, learner, H, S, A, stationary, mean, replicas, fewest_warps, monkeypatch
):
    monkeypatch.setattr(practical, "FEWEST_WARPS", fewest_warps)
    mdp = model(H, S, A, stationary)
    gpu, cpu = played(DEVICE, engine, mdp, learner, replicas, [1, 40, 200], mean=mean, first=2, evaluate_every=3)
    assert np.array_equal(gpu.policies(), of_all(cpu, "policies"))
    assert A == 1 or abs(gpu.policies() - 1 / A).max() > 0.2
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=0, atol=200 * H * 1e-15)
    if mean:
        np.testing.assert_allclose(gpu.pseudo_cost(), of_all(cpu, "pseudo_cost"), rtol=0, atol=200 * H * 1e-15)
    else:
        assert gpu.pseudo_cost() is None


ENGINES = [
    (ThreadsEngine, "po-known"), (GroupsEngine, "po-known"), (ProductsEngine, "po-known"),
    (CudaPoUnknownEngine, PolicyOptimizationUnknown(radius_scale=0.01)),
    (CudaPoPracticalEngine, KNOWN), (CudaPoPracticalEngine, COUNTING), (CudaPoModelFreeEngine, MODEL_FREE),
]  # fmt: skip


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(("engine", "learner"), ENGINES)
def test_successors_are_drawn_in_their_own_order(engine, learner, stationary):
    rng = np.random.default_rng(3)
    H, S, A, n = 4, 6, 2, 3
    shape = (S, A) if stationary else (H, S, A)
    rows = rng.permuted(np.broadcast_to(np.arange(S), (*shape, S)), axis=-1)[..., :n]  # rising in few rows only
    mdp = ab.TabularMDP.sparse(rows, rng.dirichlet(np.ones(n), size=shape), H if stationary else None)
    gpu, cpu = played(DEVICE, engine, mdp, learner, 3, [1, 40, 200])
    # the CPU sums over successors, the GPU over states
    np.testing.assert_allclose(gpu.policies(), of_all(cpu, "policies"), rtol=0, atol=1e-12)
    assert abs(gpu.policies() - 1 / A).max() > 0.01
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("engine", "learner"), ENGINES)
def test_a_state_continues_bit_for_bit(engine, learner):
    mdp = model(4, 3, 2)
    whole, first, second = (both(DEVICE, engine, mdp, learner, 120, 3, evaluate_every=25)[0] for _ in range(3))
    *early, last = blocks(mdp, [30, 70, 120], True)
    for block in [*early, last]:
        whole.play(block)
    for block in early:
        first.play(block)
    second.restore(first.state())
    second.play(last)
    for what in ("policies", "cost", "pseudo_cost"):
        assert np.array_equal(getattr(whole, what)(), getattr(second, what)())


@pytest.mark.parametrize(("engine", "learner"), ENGINES)
def test_float32_stays_near(engine, learner):
    mdp = model(4, 3, 2)
    gpu, cpu = played(DEVICE, engine, mdp, learner, 2, [60], dtype=F32)
    # a draw that falls within a float32 rounding of a threshold would part them; none of these does
    np.testing.assert_allclose(gpu.policies(), of_all(cpu, "policies"), rtol=0, atol=1e-3)
    np.testing.assert_allclose(gpu.cost(), of_all(cpu, "cost"), rtol=1e-4)


@pytest.mark.parametrize(("cls", "learner"), [
    (ThreadsEngine, "po-known"), (GroupsEngine, "po-known"), (ProductsEngine, "po-known"),
    (CudaPoPracticalEngine, COUNTING), (CudaPoModelFreeEngine, MODEL_FREE),
])  # fmt: skip
def test_a_replica_is_the_same_in_whatever_company(cls, learner):
    mdp = model(4, 3, 2)
    many, _ = played(DEVICE, cls, mdp, learner, 40, [50])
    few, _ = played(DEVICE, cls, mdp, learner, 2, [50], first=33)
    assert np.array_equal(many.policies()[33:35], few.policies())
    assert np.array_equal(many.cost()[33:35], few.cost())


def test_blocks_are_no_larger_than_their_turns_need():
    assert [spread_over(units, 16, 132) for units in (1, 132, 133, 16 * 132)] == [1, 1, 2, 16]
    # 17 of each: two turns of 9, not one of 16 and one of 1 that takes as long
    assert spread_over(17 * 132, 16, 132) == 9
    assert spread_over(64 * 132, 13, 132) == 13


class Large(HostDevice):
    multiprocessors = 132


def test_the_layout_goes_by_size_and_replicas():
    def chosen(S, A, replicas, H=3):
        mdp = model(H, S, A, stationary=H > 3)
        problem = Problem.of(mdp, 10, PolicyOptimizationKnown.needs)
        return po_known.choose(mdp, problem, PolicyOptimizationKnown(), replicas, Large())

    assert chosen(10, 4, 100_000) is ThreadsEngine
    assert chosen(10, 4, 1_000) is GroupsEngine
    assert chosen(10, 4, 1_000, H=700) is ThreadsEngine  # a group's trajectories exceed the shared memory
    assert chosen(10, 4, 100_000, H=5_000) is GroupsEngine  # a thread's exceed the device's, and this one refuses
    assert chosen(60, 2, 100_000) is ProductsEngine
    mdp = model(3, 10, 4)
    for module, learner, cls in [
        (po_practical, COUNTING, CudaPoPracticalEngine), (po_model_free, MODEL_FREE, CudaPoModelFreeEngine)
    ]:  # fmt: skip
        assert module.choose(mdp, Problem.of(mdp, 10, learner.needs), learner, 100, Large()) is cls


class Small(HostDevice):
    shared_bytes = 4_000

    def free_bytes(self):
        return 2**28 + 20_000


def test_what_the_gpu_cannot_hold_is_refused():
    mdp = model(4, 3, 2)
    for cls, learner in ENGINES:
        problem = Problem.of(mdp, 10, as_learner(learner).needs)
        with pytest.raises(InvalidInputError, match=r"1000 replicas of .* Play at most \d+ at a time"):
            cls(mdp, problem, as_learner(learner).bound(problem), 0, 0, 1000, device=Small(), dtype=F64)


def test_visits_are_counted_up_to_what_a_count_holds():
    mdp = model(4, 3, 2)
    for cls, learner in [(CudaPoUnknownEngine, PolicyOptimizationUnknown()), (CudaPoPracticalEngine, COUNTING)]:
        longest, beyond = (Problem.of(mdp, K, learner.needs) for K in (2**31 - 1, 2**31))
        cls(mdp, longest, learner, 0, 0, 1, device=DEVICE, dtype=F64)
        with pytest.raises(InvalidInputError, match="counts visits up to 2147483647, but episodes is 2147483648"):
            cls(mdp, beyond, learner, 0, 0, 1, device=DEVICE, dtype=F64)


class Tight(HostDevice):
    shared_bytes = 2_000


def test_what_exceeds_the_shared_memory_is_refused():
    mdp = model(4, 9, 2)
    learner = PolicyOptimizationUnknown()
    problem = Problem.of(mdp, 10, learner.needs)
    engine = po_unknown.CudaPoUnknownEngine(mdp, problem, learner, 0, 0, 1, device=Small(), dtype=F64)
    with pytest.raises(InvalidInputError, match="bytes of a GPU's shared memory"):
        engine.play(next(blocks(mdp, [1], False)))
    mdp = model(2, 60, 2)
    for cls, practical_learner in ENGINES[4:]:
        problem = Problem.of(mdp, 10, practical_learner.needs)
        engine = cls(mdp, problem, practical_learner, 0, 0, 1, device=Tight(), dtype=F64)
        with pytest.raises(InvalidInputError, match="bytes of a GPU's shared memory"):
            engine.play(next(blocks(mdp, [1], False)))
    problem = Problem.of(mdp, 10, PolicyOptimizationKnown.needs)
    with pytest.raises(InvalidInputError, match="bytes of a GPU's shared memory"):
        ProductsEngine(mdp, problem, PolicyOptimizationKnown(), 0, 0, 1, device=Tight(), dtype=F64)
    problem = Problem.of(mdp, 10, PolicyOptimizationKnown.needs)
    groups = GroupsEngine(mdp, problem, PolicyOptimizationKnown(), 0, 0, 1, device=Tight(), dtype=F64)
    with pytest.raises(InvalidInputError, match="bytes of a GPU's shared memory for a replica's occupancies"):
        groups.play(next(blocks(mdp, [1], False)))
    single = CudaPoUnknownEngine(mdp, Problem.of(mdp, 10, learner.needs), learner, 0, 0, 1, device=Tight(), dtype=F32)
    with pytest.raises(InvalidInputError, match="to play it on the CPU[.]$"):  # float32 is no way out of float32
        single.play(next(blocks(mdp, [1], False)))
    wide = model(2, 2, 257)
    for cls, wide_learner in ENGINES:
        bound = as_learner(wide_learner)
        with pytest.raises(InvalidInputError, match="takes up to 256 actions, but this instance has 257"):
            cls(wide, Problem.of(wide, 10, bound.needs), bound, 0, 0, 1, device=DEVICE, dtype=F64)
    large = model(2, 65, 1)
    with pytest.raises(InvalidInputError, match="takes up to 64 states"):
        CudaPoUnknownEngine(large, Problem.of(large, 10, learner.needs), learner, 0, 0, 1, device=DEVICE, dtype=F64)
