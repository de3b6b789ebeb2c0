"""An engine plays consecutive episodes of one learner for a few replicas, and adds up their exact cost.

`run` cuts K episodes into blocks, and the replicas into groups, one engine a group.  What comes out must not depend
on how either was cut: draws are counter-based, sums are compensated and live in the engine across blocks, and a
replica's numbers are the same in whatever company it is played.

The plain engine drives any learner through its contract, one episode after the other.  A fused engine plays the
same episodes inside compiled code; it is found by the learner's class and must equal the plain one.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.learners.base import Learner, Problem
from aggbandit.mdp.tabular import TabularMDP


class LossBlock(NamedTuple):
    """The losses of n consecutive episodes, each distinct table once."""

    first: int  # index of the first episode
    tables_mhsa: FloatArray  # C-contiguous (m, H, S, A), m <= n: equal neighbours share a row
    row_n: IntArray  # (n,): which row of `tables_mhsa` each episode uses, never decreasing
    mean_hsa: FloatArray | None  # the mean table where losses are i.i.d., for the pseudo-regret


class Engine(ABC):
    """One learner, replicas first_replica ... first_replica + replicas - 1."""

    exact_every: ClassVar[bool] = True  # evaluates every episode's policy whatever `evaluate_every` says

    def __init__(
        self,
        mdp: TabularMDP,
        problem: Problem,
        learner: Learner[Any],
        seed: int,
        first_replica: int,
        replicas: int,
        evaluate_every: int = 1,
    ) -> None:
        self.mdp = mdp
        self.problem = problem
        self.learner = learner
        self.seed = seed
        self.first_replica = first_replica
        self.replicas = replicas
        self.evaluate_every = evaluate_every

    @abstractmethod
    def play(self, block: LossBlock) -> None:
        """Play the block's episodes; called with consecutive blocks, from episode 0 on."""

    @abstractmethod
    def cost(self) -> FloatArray:
        """(replicas,): the expected loss of the policies played so far, summed."""

    @abstractmethod
    def pseudo_cost(self) -> FloatArray | None:
        """(replicas,): the same against the mean table; None where there is none."""

    @abstractmethod
    def policies(self) -> FloatArray:
        """(replicas, H, S, A): the policies to be played next."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that `play` depends on and changes, as a tree of arrays and numbers, to be saved."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()` of an engine with the same arguments, bit for bit."""
