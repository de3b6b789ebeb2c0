"""What only a GPU can tell: its own arithmetic, barriers and memory, at sizes that people play."""

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.simulation.engines.cuda.device import open_devices
from aggbandit.simulation.engines.cuda.po_known import GroupsEngine, ProductsEngine, ThreadsEngine
from aggbandit.simulation.engines.cuda.po_model_free import CudaPoModelFreeEngine
from aggbandit.simulation.engines.cuda.po_practical import CudaPoPracticalEngine
from aggbandit.simulation.engines.cuda.po_unknown import CudaPoUnknownEngine
from cuda_on_host.plays import blocks, both, model, of_all, played


@pytest.fixture(scope="module")
def gpu():
    return open_devices([0])[0]


COUNTING = PolicyOptimizationPractical(dynamics="unknown", forget=0.001)
PAPER, NARROW = PolicyOptimizationUnknown(), PolicyOptimizationUnknown(radius_scale=0.01)
CASES = [
    (ThreadsEngine, (10, 10, 4), "po-known", 8, 3000),
    (ThreadsEngine, (5, 5, 3), "po-known", 8, 5000),
    (GroupsEngine, (10, 10, 4), "po-known", 8, 3000),
    (GroupsEngine, (3, 4, 2), PolicyOptimizationKnown(step_size="main"), 33, 5000),
    (GroupsEngine, (5, 40, 3), "po-known", 3, 1000),
    (ProductsEngine, (6, 60, 4), "po-known", 9, 300),
    (ProductsEngine, (20, 100, 10), "po-known", 2, 20),
    (CudaPoUnknownEngine, (10, 10, 4), PAPER, 3, 2000),
    (CudaPoUnknownEngine, (10, 10, 4), NARROW, 3, 1000),
    (CudaPoUnknownEngine, (20, 20, 5), PolicyOptimizationUnknown(radius_scale=0.001), 2, 200),
    (CudaPoPracticalEngine, (10, 10, 4), "po-practical", 8, 3000),
    (CudaPoPracticalEngine, (10, 10, 4), COUNTING, 8, 2000),
    (CudaPoModelFreeEngine, (10, 10, 4), "po-model-free", 8, 3000),
]


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(("engine", "shape", "learner", "replicas", "K"), CASES)
def test_a_replica_follows_the_cpus(gpu, engine, shape, learner, replicas, K, stationary):
    mdp = model(*shape, stationary=stationary)
    there, here = played(gpu, engine, mdp, learner, replicas, [1, K // 3, K], mean=stationary)
    np.testing.assert_allclose(there.policies(), of_all(here, "policies"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.cost(), of_all(here, "cost"), rtol=1e-10)
    if stationary:
        np.testing.assert_allclose(there.pseudo_cost(), of_all(here, "pseudo_cost"), rtol=1e-10)


@pytest.mark.parametrize(("engine", "shape", "learner", "replicas", "K"), CASES)
def test_successors_are_drawn_in_their_own_order(gpu, engine, shape, learner, replicas, K):
    H, S, A = shape
    rng = np.random.default_rng(3)
    rows = rng.permuted(np.broadcast_to(np.arange(S), (H, S, A, S)), axis=-1)[..., :3]
    mdp = ab.TabularMDP.sparse(rows, rng.dirichlet(np.ones(3), size=(H, S, A)))
    there, here = played(gpu, engine, mdp, learner, replicas, [1, K // 3, K])
    # the practical learners' first steps are in the units of residuals that may be rounding alone
    np.testing.assert_allclose(there.cost(), of_all(here, "cost"), rtol=1e-9)


@pytest.mark.parametrize(("engine", "shape", "learner", "replicas", "K"), CASES)
def test_the_same_bits_every_time_and_continued(gpu, engine, shape, learner, replicas, K):
    """A race between threads would show as another result."""
    mdp = model(*shape)
    many = 40 * replicas
    first, _ = both(gpu, engine, mdp, learner, K, many, cpu=False)
    again, _ = both(gpu, engine, mdp, learner, K, many, cpu=False)
    taken_up, _ = both(gpu, engine, mdp, learner, K, many, cpu=False)
    early, late = blocks(mdp, [K // 2, K], False)
    for one in (first, again):
        one.play(early)
    taken_up.restore(first.state())
    for one in (first, again, taken_up):
        one.play(late)
    for other in (again, taken_up):
        assert np.array_equal(first.policies(), other.policies())
        assert np.array_equal(first.cost(), other.cost())


def world(H, S, A):
    mdp = ab.instances.make("random", states=S, actions=A, horizon=H, seed=0)
    return mdp, ab.adversaries.make("switching", mdp, blocks=8, period=250, seed=1)


@pytest.mark.parametrize(
    ("shape", "learner", "replicas", "K"),
    [
        ((5, 5, 3), "po-known", 256, 100_000),
        ((3, 60, 2), "po-known", 256, 5_000),
        ((3, 3, 2), "po-unknown", 64, 20_000),
        ((5, 5, 3), "po-practical", 1024, 5_000),
        ((5, 5, 3), "po-model-free", 1024, 5_000),
    ],
)
def test_float32_ends_within_float64s_band(shape, learner, replicas, K):
    double, single = (
        ab.run(*world(*shape), learner, episodes=K, replicas=replicas, device="cuda", dtype=dtype).regret[:, -1]
        for dtype in ("float64", "float32")
    )
    half = 1.96 * double.std(ddof=1) / np.sqrt(replicas)
    print(f"{learner} {shape}: float64 {double.mean():.2f} ± {half:.2f}, float32 {single.mean():.2f}")
    assert abs(double.mean() - single.mean()) < half


@pytest.mark.parametrize(
    ("shape", "learner", "replicas"),
    [((5, 5, 3), "po-known", 1001), ((60, 2), "po-known", 65), ((4, 4, 2), "po-unknown", 9)],
)
def test_two_halves_on_one_gpu_are_the_whole(shape, learner, replicas):
    H, S, A = shape if len(shape) == 3 else (3, *shape)
    whole, halves = (
        ab.run(*world(H, S, A), learner, episodes=500, replicas=replicas, device=device)
        for device in ("cuda", "cuda:0,0")
    )
    assert np.array_equal(whole.regret, halves.regret)
    assert np.array_equal(whole.policy, halves.policy)


def test_a_run_is_the_cpus_and_continues_after_ctrl_c(tmp_path):
    def play(**arguments):
        return ab.run(*world(5, 5, 3), "po-known", episodes=20_000, replicas=12, seed=2, **arguments)

    def stop(progress):
        if progress.done > 5_000:
            raise KeyboardInterrupt("by hand")

    with pytest.raises(KeyboardInterrupt, match="by hand"):
        play(device="cuda", state_file=tmp_path / "state", progress=stop)
    continued = play(device="cuda", state_file=tmp_path / "state")
    whole, here = play(device="cuda"), play()
    assert np.array_equal(continued.regret, whole.regret)
    assert np.array_equal(continued.policy, whole.policy)
    # the card's logarithms and exponentials are not the CPU's: after thousands of episodes a draw falls between two
    early = whole.episodes <= 3000
    np.testing.assert_allclose(whole.regret[:, early], here.regret[:, early], rtol=1e-9)
    assert whole.device.startswith("cuda (")
