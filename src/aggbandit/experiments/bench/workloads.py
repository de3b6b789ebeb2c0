"""The frozen workloads.  A change to one makes it another: give it another name, so that stored figures stay true."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import aggbandit.adversaries as adversaries
import aggbandit.learners as learners
from aggbandit._arrays import FloatArray
from aggbandit.learners.base import Learner
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One learner on one random instance with one random loss table, for K episodes and R replicas."""

    name: str
    learner: str
    H: int
    S: int
    A: int
    episodes: int
    replicas: int = 1
    threads: int = 1
    radius_scale: float | None = None  # po-unknown only
    successors: int | None = None  # a sparse, stationary instance with so many successors per row
    quick: bool = True  # among those of `aggbandit bench` without --all

    def mdp(self) -> TabularMDP:
        """The instance."""
        if self.successors is None:
            return instances.make("random", states=self.S, actions=self.A, horizon=self.H, seed=0)
        rng = np.random.default_rng(0)
        rows = (self.S, self.A, self.successors)
        return TabularMDP.sparse(rng.integers(self.S, size=rows), rng.dirichlet(np.ones(rows[2]), rows[:2]), self.H)

    def losses(self, mdp: TabularMDP) -> Any:
        """The loss sequence: one table, always."""
        return adversaries.make("fixed", mdp, table="random", seed=0)

    def table(self, mdp: TabularMDP) -> FloatArray:
        """The loss table of every episode."""
        table: FloatArray = self.losses(mdp).tables(0, 1)[0]
        return table

    def configured(self) -> Learner[Any]:
        """The learner, with the main text's step size."""
        if self.learner == "po-unknown":
            scale = 1.0 if self.radius_scale is None else self.radius_scale
            return learners.make(self.learner, step_size="main", radius_scale=scale)
        return learners.make(self.learner, step_size="main")

    @property
    def flops(self) -> int | None:
        """Of the two recursions' matrix products, an episode: 4 (H-1) S² A; None where they are no such products."""
        if self.learner != "po-known" or self.successors is not None:
            return None
        return 4 * (self.H - 1) * self.S**2 * self.A


WORKLOADS = [
    Workload(name="known-5-5-3", learner="po-known", H=5, S=5, A=3, episodes=20_000, replicas=256),
    Workload(name="known-10-10-4", learner="po-known", H=10, S=10, A=4, episodes=5_000, replicas=256),
    Workload(name="known-10-10-4-two-threads", learner="po-known", H=10, S=10, A=4, episodes=5_000, replicas=256,
             threads=2),
    Workload(name="known-10-10-4-one-replica", learner="po-known", H=10, S=10, A=4, episodes=50_000),
    Workload(name="known-20-100-10", learner="po-known", H=20, S=100, A=10, episodes=40, replicas=256),
    Workload(name="known-sparse-50-10000-4", learner="po-known", H=50, S=10_000, A=4, episodes=10, replicas=1,
             successors=4, quick=False),
    Workload(name="unknown-10-10-4", learner="po-unknown", H=10, S=10, A=4, episodes=3_000),
    Workload(name="unknown-10-10-4-long", learner="po-unknown", H=10, S=10, A=4, episodes=30_000, quick=False),
    Workload(name="unknown-10-10-4-narrow", learner="po-unknown", H=10, S=10, A=4, episodes=3_000, radius_scale=0.01),
    Workload(name="unknown-20-20-5-narrow", learner="po-unknown", H=20, S=20, A=5, episodes=1_000, radius_scale=0.001,
             quick=False),
]  # fmt: skip
