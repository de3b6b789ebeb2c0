"""Algorithm 1 played inside compiled code.

All engines do the same operations in the same order for every replica, so their numbers agree bit for bit, and a state
saved by one is continued by any other.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock

TINY = 2.0**-900  # as in kernels.po_known: below it a probability's logarithm counts
CACHED_BYTES = 2**23  # transitions so small stay in a near cache: packs are then played one after the other,
MOST_PACKS = 8  # otherwise so many share each reading of the transitions; two engines at least, for two threads
FEWEST_LANES = 3  # replicas; fewer are faster one by one
SPARSE_BELOW = 0.25  # with a smaller share of nonzeros the sparse kernels are faster
WASTE_BYTES = 2**29  # of policies of replicas that only fill up a pack


class PoKnownEngine(Engine):
    """What all engines of this learner share: constants, compensated costs, and one form of saved state."""

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
        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        if not isinstance(learner, PolicyOptimizationKnown):
            raise InvalidInputError(f"{type(self).__name__} plays 'po-known', but was given {learner!r}.")
        used = learner.constants(problem)
        self._numbers = used.step_size, used.exploration, used.bonus
        self._costs = np.zeros((replicas, 2))  # (sum, rest) of a compensated sum
        self._pseudo_costs = np.zeros((replicas, 2))
        self._has_mean = False

    def _means(self, block: LossBlock) -> FloatArray:
        """The mean table as (1, H, S, A), or (0, H, S, A) where there is none."""
        self._has_mean = block.mean_hsa is not None
        if block.mean_hsa is None:
            return np.empty((0, *self.problem.shape))
        return np.array(block.mean_hsa, dtype=np.float64)[None]

    def cost(self) -> FloatArray:
        total: FloatArray = self._costs.sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._pseudo_costs.sum(axis=1) if self._has_mean else None

    def log_policies(self) -> FloatArray:
        """(replicas, H, S, A): their logarithms, meaningful where the policy is below TINY."""
        raise NotImplementedError

    def set_policies(self, policies: FloatArray, log_policies: FloatArray) -> None:
        """Continue from these."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        policies = self.policies()
        tiny: IntArray = np.flatnonzero(policies < TINY)
        return {
            "policies": policies,
            "tiny": tiny,
            "log_policies": self.log_policies().reshape(-1)[tiny],
            "costs": self._costs.copy(),
            "pseudo_costs": self._pseudo_costs.copy(),
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        policies = np.array(state["policies"])
        log_policies = np.zeros(policies.size)
        log_policies[state["tiny"]] = state["log_policies"]
        self.set_policies(policies, log_policies.reshape(policies.shape))
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._has_mean = bool(state["has_mean"])


class SoloEngine(PoKnownEngine):
    """One replica after the other, dense dynamics."""

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
        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        H, S, A = problem.shape
        self._policies = np.full((replicas, H, S, A), 1.0 / A)
        self._log_policies = np.zeros((replicas, H, S, A))  # takes no memory until a probability falls below TINY
        self._scratch = (
            np.empty((H, S)),
            np.empty(S),
            np.empty((S, A)),
            np.empty(A),
            np.empty(S),
            np.empty(H, np.int64),
            np.empty(H, np.int64),
        )

    def _kernel(self) -> tuple[Any, tuple[Any, ...]]:
        """The block kernel, and the dynamics as it takes them."""
        from aggbandit.kernels import po_known_solo as kernel

        return kernel.play_dense, (self.mdp.stored, self.mdp.cumulative)

    def play(self, block: LossBlock) -> None:
        play, dynamics = self._kernel()
        world = *dynamics, self.mdp.initial, self.mdp.initial_cumulative
        tables = _writable(block.tables_mhsa)
        losses = tables, block.row_n, self._means(block), block.first
        for r in range(self.replicas):
            play(
                *world, *losses, self.first_replica + r, np.uint64(self.seed), *self._numbers, self._policies[r],
                self._log_policies[r], self._costs[r], self._pseudo_costs[r], *self._scratch,
            )  # fmt: skip

    def policies(self) -> FloatArray:
        return self._policies.copy()

    def log_policies(self) -> FloatArray:
        return self._log_policies

    def set_policies(self, policies: FloatArray, log_policies: FloatArray) -> None:
        self._policies, self._log_policies = policies, log_policies


class SparseSoloEngine(SoloEngine):
    """One replica after the other, dynamics with few successors."""

    def _kernel(self) -> tuple[Any, tuple[Any, ...]]:
        from aggbandit.kernels import po_known_solo as kernel

        return kernel.play_sparse, sparse_form(self.mdp)


class LanesEngine(PoKnownEngine):
    """All replicas in lockstep, packed into vectors, dense dynamics.

    The last pack is filled up with replicas that nobody asked for; no replica sees another.
    """

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
        from aggbandit.kernels import po_known_lanes as kernel
        from aggbandit.kernels.simd import LANES

        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        H, S, A = problem.shape
        self._lanes: int = LANES
        self._packs = -(-replicas // LANES)
        T = 1 if mdp.is_stationary else H
        _, world = self._kernel()
        self._sizes = kernel.Sizes(
            packs=self._packs, H=H, S=S, A=A, T=T, successors=world.successors.size // (T * S * A),
            groups=world.cumulative.size // (kernel.GROUP * T * S * A),
            first_groups=world.initial_cumulative.size // kernel.GROUP, means=0,
        )  # fmt: skip
        self._policy = kernel.aligned(self._packs * H * S * A * LANES)
        self._policy[:] = 1.0 / A
        self._log_policy = np.zeros(self._policy.size)  # takes no memory until a probability falls below TINY
        self._scratch = kernel.scratch(self._sizes)

    def _kernel(self) -> tuple[Any, Any]:
        """The block kernel, and the world as it takes it."""
        from aggbandit.kernels import po_known_lanes as kernel

        return kernel.play, dense_world(self.mdp)

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_known_lanes as kernel

        play, world = self._kernel()
        losses = kernel.Losses(_writable(block.tables_mhsa).reshape(-1), block.row_n, self._means(block).reshape(-1))
        costs, pseudo_costs = self._to_lanes(self._costs), self._to_lanes(self._pseudo_costs)
        sizes = self._sizes._replace(means=int(self._has_mean))
        play(
            sizes, world, losses, kernel.Numbers(*self._numbers), block.first, self.first_replica,
            np.uint64(self.seed), kernel.Replicas(self._policy, self._log_policy, costs, pseudo_costs), self._scratch,
        )  # fmt: skip
        self._costs, self._pseudo_costs = self._from_lanes(costs, 2), self._from_lanes(pseudo_costs, 2)

    def policies(self) -> FloatArray:
        return self._from_lanes(self._policy, *self.problem.shape)

    def log_policies(self) -> FloatArray:
        return self._from_lanes(self._log_policy, *self.problem.shape)

    def set_policies(self, policies: FloatArray, log_policies: FloatArray) -> None:
        self._policy[:] = self._to_lanes(policies, 1.0 / self.problem.A)
        self._log_policy[:] = self._to_lanes(log_policies)

    def _to_lanes(self, of_replicas: FloatArray, padding: float = 0.0) -> FloatArray:
        """(replicas, ...) as the one axis of (packs, ..., lanes)."""
        full = np.full((self._packs * self._lanes, *of_replicas.shape[1:]), padding)
        full[: self.replicas] = of_replicas
        split = full.reshape(self._packs, self._lanes, *of_replicas.shape[1:])
        return np.ascontiguousarray(np.moveaxis(split, 1, -1)).reshape(-1)

    def _from_lanes(self, in_lanes: FloatArray, *shape: int) -> FloatArray:
        """(replicas, *shape), a copy."""
        split = np.moveaxis(in_lanes.reshape(self._packs, *shape, self._lanes), -1, 1)
        return split.reshape(self._packs * self._lanes, *shape)[: self.replicas].copy()


class SparseLanesEngine(LanesEngine):
    """All replicas in lockstep, packed into vectors, dynamics with few successors."""

    def _kernel(self) -> tuple[Any, Any]:
        from aggbandit.kernels import po_known_sparse as kernel

        return kernel.play, sparse_world(self.mdp)


_Made = WeakKeyDictionary[TabularMDP, Any]
_DENSE_WORLDS: _Made = WeakKeyDictionary()
_SPARSE_WORLDS: _Made = WeakKeyDictionary()
_SPARSE_FORMS: _Made = WeakKeyDictionary()


def dense_world(mdp: TabularMDP) -> Any:
    """The dynamics as `kernels.po_known_lanes` takes them, made once for all engines."""
    from aggbandit.kernels import po_known_lanes as kernel

    if mdp not in _DENSE_WORLDS:
        _DENSE_WORLDS[mdp] = kernel.World(
            forward=mdp.stored.reshape(-1),
            backward=kernel.arranged(mdp.stored).reshape(-1),
            cumulative=kernel.padded(mdp.cumulative).reshape(-1),
            successors=np.empty(0, np.int64),
            initial=mdp.initial,
            initial_cumulative=kernel.padded(mdp.initial_cumulative),
        )
    return _DENSE_WORLDS[mdp]


def sparse_world(mdp: TabularMDP) -> Any:
    """The dynamics as `kernels.po_known_sparse` takes them, made once for all engines."""
    from aggbandit.kernels import po_known_lanes, po_known_sparse

    if mdp not in _SPARSE_WORLDS:
        successors, probabilities, cumulative = sparse_form(mdp)
        _SPARSE_WORLDS[mdp] = po_known_sparse.World(
            successors=successors.reshape(-1),
            probabilities=probabilities.reshape(-1),
            cumulative=po_known_lanes.padded(cumulative).reshape(-1),
            initial=mdp.initial,
            initial_cumulative=po_known_lanes.padded(mdp.initial_cumulative),
        )
    return _SPARSE_WORLDS[mdp]


def sparse_form(mdp: TabularMDP) -> tuple[IntArray, FloatArray, FloatArray]:
    """(successors, probabilities, cumulative), each (T, S, A, n), of any model; made once where it is dense."""
    if mdp.is_sparse:
        return mdp.next_states, mdp.probabilities, mdp.cumulative
    if mdp not in _SPARSE_FORMS:
        from aggbandit.kernels.po_known_sparse import successors_of

        successors, probabilities = successors_of(mdp.stored)
        # accumulated: a filling entry may stand for a state before the last possible one
        cumulative = np.maximum.accumulate(np.take_along_axis(mdp.cumulative, successors, axis=-1), axis=-1)
        form = successors, probabilities, cumulative
        _SPARSE_FORMS[mdp] = tuple(frozen(array) for array in form)
    made: tuple[IntArray, FloatArray, FloatArray] = _SPARSE_FORMS[mdp]
    return made


def _writable(array: FloatArray) -> FloatArray:
    """`array`, copied if it is read-only: for Numba that is another type, and it would compile once more."""
    return array if array.flags.writeable else array.copy()


def _successors(mdp: TabularMDP) -> int:
    """The most successors that any (h, s, a) has."""
    if mdp.is_sparse:
        return int(mdp.next_states.shape[-1])
    return int(np.count_nonzero(mdp.stored, axis=-1).max())


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """The engine for these sizes, and how many replicas one of them plays."""
    from aggbandit.kernels.simd import LANES

    H, S, A = problem.shape
    sparse = _successors(mdp) < SPARSE_BELOW * S or mdp.is_sparse
    packs = -(-replicas // LANES)
    wasted = 8 * H * S * A * (packs * LANES - replicas)
    if replicas < FEWEST_LANES or wasted > WASTE_BYTES:
        return (SparseSoloEngine if sparse else SoloEngine), 1
    if sparse:
        return SparseLanesEngine, LANES
    if 16 * mdp.stored.size <= CACHED_BYTES:
        return LanesEngine, LANES
    return LanesEngine, LANES * min(MOST_PACKS, -(-packs // 2))
