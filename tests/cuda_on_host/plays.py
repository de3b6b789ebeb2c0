"""The same episodes played by a GPU's engine and by the CPU's."""

import numpy as np

import aggbandit as ab
from aggbandit.learners import as_learner
from aggbandit.learners.base import Problem
from aggbandit.simulation.engines import registry
from aggbandit.simulation.engines.base import LossBlock

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)


def model(H, S, A, stationary=False, seed=5):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(S), size=(S, A) if stationary else (H, S, A))
    transition[..., 0, 0, :] = np.eye(S)[S - 1]  # a certain move: rows with zeros
    return ab.TabularMDP(transition, H if stationary else None, rng.dirichlet(np.ones(S)))


def blocks(mdp, edges, mean, seed=6):
    """Losses that stay for some episodes, cut at `edges`."""
    rng = np.random.default_rng(seed)
    rows = np.cumsum(rng.random(edges[-1]) < 0.3)
    tables = rng.random((rows[-1] + 1, mdp.H, mdp.S, mdp.A))
    mean = tables.mean(axis=0) if mean else None
    for start, stop in zip([0, *edges], edges, strict=False):
        kept = rows[start:stop]
        yield LossBlock(start, tables[kept[0] : kept[-1] + 1].copy(), kept - kept[0], mean)


def both(device, engine, mdp, learner, K, replicas, dtype=F64, first=0, evaluate_every=1, cpu=True):
    """The GPU's engine, and the CPU's for the same replicas unless they are not wanted."""
    learner = as_learner(learner)
    problem = Problem.of(mdp, K, learner.needs)
    learner = learner.bound(problem)
    gpu = engine(mdp, problem, learner, 7, first, replicas, evaluate_every, device=device, dtype=dtype)
    if not cpu:
        return gpu, []
    one, width = registry.choose(mdp, problem, learner, 1)
    assert width == 1
    return gpu, [one(mdp, problem, learner, 7, first + r, 1, evaluate_every) for r in range(replicas)]


def played(device, engine, mdp, learner, replicas, edges, *, dtype=F64, mean=True, first=0, evaluate_every=1):
    gpu, cpu = both(device, engine, mdp, learner, edges[-1], replicas, dtype, first, evaluate_every)
    for block in blocks(mdp, edges, mean):
        gpu.play(block)
        for one in cpu:
            one.play(block)
    return gpu, cpu


def of_all(engines, what):
    return np.concatenate([getattr(engine, what)() for engine in engines])
