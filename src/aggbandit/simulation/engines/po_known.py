"""Algorithm 1 played inside compiled code.

All engines do the same operations in the same order for every replica, so their numbers agree bit for bit, and a state
saved by one is continued by any other.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, IntArray, frozen
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock

TINY = 2.0**-900  # as in kernels.po_known: below it a probability's logarithm counts
CACHED_BYTES = 2**23  # transitions so small stay in a near cache: packs are then played one after the other,
MOST_PACKS = 8  # otherwise so many share each reading of the transitions; two engines at least, for two threads
FEWEST_LANES = 5  # replicas; fewer are faster one by one
SPARSE_LANES_BELOW = 0.35  # with a smaller share of nonzeros in the fullest row the sparse kernels are faster,
SPARSE_SOLO_BELOW = 0.15  # for one replica later, as only dense products then use whole vectors
WASTE_BYTES = 2**29  # of policies of replicas that only fill up a pack


class PoKnownEngine(Engine):
    """What all engines of this learner share: constants, layouts with lanes last, and one form of saved state.

    Arrays that the kernels change have LANES replicas, or LANES states of one replica, last.
    """

    few_successors: ClassVar[bool] = False  # whether the kernel takes dynamics by their successors

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
        if not isinstance(learner, PolicyOptimizationKnown):
            raise InvalidInputError(f"{type(self).__name__} plays 'po-known', but was given {learner!r}.")
        used = learner.constants(problem)
        self._numbers = kernel.Numbers(used.step_size, used.exploration, used.bonus)
        self._lanes: int = LANES
        self._world = self._make_world(mdp)
        self._kernel_sizes: Any
        self._has_mean = False

    @abstractmethod
    def _make_world(self, mdp: TabularMDP) -> Any:
        """The dynamics as the kernel takes them."""

    @abstractmethod
    def _play(self, losses: Any, sizes: Any, first: int) -> None:
        """Play the episodes from `first` on."""

    @abstractmethod
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """The compensated sums of costs and pseudo-costs, each (replicas, 2)."""

    @abstractmethod
    def _log_policies(self) -> FloatArray:
        """(replicas, H, S, A): logarithms of the policies, meaningful where these are below TINY."""

    @abstractmethod
    def _continue(
        self, policies: FloatArray, log_policies: FloatArray | None, costs: FloatArray, pseudo_costs: FloatArray
    ) -> None:
        """Continue from these; no logarithms where no probability is below TINY."""

    def _sizes(self, packs: int) -> Any:
        from aggbandit.kernels import po_known_lanes as kernel

        H, S, A = self.problem.shape
        T = 1 if self.mdp.is_stationary else H
        return kernel.Sizes(
            packs=packs, H=H, S=S, A=A, T=T,
            successors=self._world.successors.size // (T * S * A) if self.few_successors else 0,
            groups=self._world.cumulative.size // (kernel.GROUP * T * S * A),
            first_groups=self._world.initial_cumulative.size // kernel.GROUP,
            means=0,
        )  # fmt: skip

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_known_lanes as kernel

        self._has_mean = block.mean_hsa is not None
        means = np.empty(0) if block.mean_hsa is None else _writable(block.mean_hsa)
        losses = kernel.Losses(_writable(block.tables_mhsa), block.row_n, means)
        self._play(losses, self._kernel_sizes._replace(means=int(self._has_mean)), block.first)

    def cost(self) -> FloatArray:
        total: FloatArray = self._sums()[0].sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._sums()[1].sum(axis=1) if self._has_mean else None

    def state(self) -> dict[str, Any]:
        policies = self.policies()
        tiny: IntArray = np.flatnonzero(policies < TINY)
        costs, pseudo_costs = self._sums()
        return {
            "policies": policies,
            "tiny": tiny,
            "log_policies": self._log_policies().reshape(-1)[tiny] if tiny.size else np.empty(0),
            "costs": costs,
            "pseudo_costs": pseudo_costs,
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        policies = np.array(state["policies"])
        log_policies = None
        if state["tiny"].size:
            log_policies = np.zeros(policies.shape)
            log_policies.reshape(-1)[state["tiny"]] = state["log_policies"]
        self._continue(policies, log_policies, np.array(state["costs"]), np.array(state["pseudo_costs"]))
        self._has_mean = bool(state["has_mean"])


class LanesEngine(PoKnownEngine):
    """All replicas in lockstep, LANES to a vector, dense dynamics.

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

        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        H, S, A = problem.shape
        self._packs = -(-replicas // self._lanes)
        self._kernel_sizes = self._sizes(self._packs)
        policy = kernel.aligned(self._packs * H * S * A * self._lanes)
        policy[:] = 1.0 / A
        self._changing = kernel.Replicas(
            policy=policy,
            log_policy=np.zeros(policy.size),  # takes no memory until a probability falls below TINY
            cost=np.zeros(self._packs * 2 * self._lanes),
            pseudo_cost=np.zeros(self._packs * 2 * self._lanes),
        )
        self._scratch = kernel.scratch(self._kernel_sizes)

    def _make_world(self, mdp: TabularMDP) -> Any:
        return _once(lanes_world, mdp)

    def _play(self, losses: Any, sizes: Any, first: int) -> None:
        from aggbandit.kernels.po_known_lanes import play

        play(
            sizes, self._world, losses, self._numbers, first, self.first_replica, np.uint64(self.seed),
            self._changing, self._scratch,
        )  # fmt: skip

    def policies(self) -> FloatArray:
        return self._replicas_first(self._changing.policy, *self.problem.shape)

    def _log_policies(self) -> FloatArray:
        return self._replicas_first(self._changing.log_policy, *self.problem.shape)

    def _sums(self) -> tuple[FloatArray, FloatArray]:
        return self._replicas_first(self._changing.cost, 2), self._replicas_first(self._changing.pseudo_cost, 2)

    def _continue(
        self, policies: FloatArray, log_policies: FloatArray | None, costs: FloatArray, pseudo_costs: FloatArray
    ) -> None:
        self._changing.policy[:] = self._lanes_last(policies, 1.0 / self.problem.A)
        if log_policies is not None:
            self._changing.log_policy[:] = self._lanes_last(log_policies)
        self._changing.cost[:] = self._lanes_last(costs)
        self._changing.pseudo_cost[:] = self._lanes_last(pseudo_costs)

    def _lanes_last(self, of_replicas: FloatArray, padding: float = 0.0) -> FloatArray:
        """(replicas, ...) as the one axis of (packs, ..., lanes)."""
        full = np.full((self._packs * self._lanes, *of_replicas.shape[1:]), padding)
        full[: self.replicas] = of_replicas
        split = full.reshape(self._packs, self._lanes, *of_replicas.shape[1:])
        return np.moveaxis(split, 1, -1).flatten()

    def _replicas_first(self, in_lanes: FloatArray, *shape: int) -> FloatArray:
        """(replicas, *shape), a copy."""
        split = np.moveaxis(in_lanes.reshape(self._packs, *shape, self._lanes), -1, 1)
        return split.reshape(self._packs * self._lanes, *shape)[: self.replicas].copy()


class SparseLanesEngine(LanesEngine):
    """All replicas in lockstep, LANES to a vector, dynamics with few successors."""

    few_successors = True

    def _make_world(self, mdp: TabularMDP) -> Any:
        return _once(sparse_lanes_world, mdp)

    def _play(self, losses: Any, sizes: Any, first: int) -> None:
        from aggbandit.kernels.po_known_sparse import play

        play(
            sizes, self._world, losses, self._numbers, first, self.first_replica, np.uint64(self.seed),
            self._changing, self._scratch,
        )  # fmt: skip


class SoloEngine(PoKnownEngine):
    """One replica after the other, LANES states to a vector, dense dynamics."""

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
        from aggbandit.kernels import po_known_lanes, po_known_solo

        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        H, S, A = problem.shape
        self._packs = -(-S // self._lanes)
        self._kernel_sizes = self._sizes(self._packs)
        self._changing = []
        for _ in range(replicas):
            policy = po_known_lanes.aligned(H * self._packs * A * self._lanes)
            policy[:] = 1.0 / A
            log_policy = np.zeros(policy.size)  # takes no memory until a probability falls below TINY
            self._changing.append(po_known_solo.Replica(policy, log_policy, np.zeros(2), np.zeros(2)))
        self._scratch = po_known_solo.scratch(self._kernel_sizes)

    def _make_world(self, mdp: TabularMDP) -> Any:
        return _once(solo_world, mdp)

    def _play(self, losses: Any, sizes: Any, first: int) -> None:
        from aggbandit.kernels.po_known_solo import play

        for r, replica in enumerate(self._changing):
            play(
                sizes, self._world, losses, self._numbers, first, self.first_replica + r, np.uint64(self.seed),
                replica, self._scratch,
            )  # fmt: skip

    def policies(self) -> FloatArray:
        return np.stack([self._states_in_order(replica.policy) for replica in self._changing])

    def _log_policies(self) -> FloatArray:
        return np.stack([self._states_in_order(replica.log_policy) for replica in self._changing])

    def _sums(self) -> tuple[FloatArray, FloatArray]:
        costs = np.stack([replica.cost for replica in self._changing])
        return costs, np.stack([replica.pseudo_cost for replica in self._changing])

    def _continue(
        self, policies: FloatArray, log_policies: FloatArray | None, costs: FloatArray, pseudo_costs: FloatArray
    ) -> None:
        for r, replica in enumerate(self._changing):
            replica.policy[:] = self._states_last(policies[r], 1.0 / self.problem.A)
            if log_policies is not None:
                replica.log_policy[:] = self._states_last(log_policies[r], 0.0)
            replica.cost[:] = costs[r]
            replica.pseudo_cost[:] = pseudo_costs[r]

    def _states_last(self, of_states: FloatArray, padding: float) -> FloatArray:
        """(H, S, A) as the one axis of (H, packs, A, lanes)."""
        H, S, A = of_states.shape
        full = np.full((H, self._packs * self._lanes, A), padding)
        full[:, :S] = of_states
        return np.moveaxis(full.reshape(H, self._packs, self._lanes, A), 2, 3).flatten()

    def _states_in_order(self, in_lanes: FloatArray) -> FloatArray:
        """(H, S, A)."""
        H, S, A = self.problem.shape
        split = np.moveaxis(in_lanes.reshape(H, self._packs, A, self._lanes), 3, 2)
        return split.reshape(H, self._packs * self._lanes, A)[:, :S]


class SparseSoloEngine(SoloEngine):
    """One replica after the other, LANES states to a vector, dynamics with few successors."""

    few_successors = True

    def _make_world(self, mdp: TabularMDP) -> Any:
        return _once(sparse_solo_world, mdp)


def lanes_world(mdp: TabularMDP) -> Any:
    """Dense dynamics as `kernels.po_known_lanes` takes them."""
    from aggbandit.kernels import po_known_lanes as kernel

    return kernel.World(
        forward=_flat(mdp.stored),
        backward=_flat(kernel.arranged(mdp.stored)),
        cumulative=_flat(kernel.padded(mdp.cumulative)),
        successors=_flat(np.empty(0, np.int64)),
        initial=_flat(mdp.initial),
        initial_cumulative=_flat(kernel.padded(mdp.initial_cumulative)),
    )


def sparse_lanes_world(mdp: TabularMDP) -> Any:
    """Dynamics with few successors as `kernels.po_known_sparse` takes them."""
    from aggbandit.kernels import po_known_lanes, po_known_sparse

    successors, probabilities, cumulative = _once(successor_form, mdp)
    return po_known_sparse.World(
        successors=_flat(successors),
        probabilities=_flat(probabilities),
        cumulative=_flat(po_known_lanes.padded(cumulative)),
        initial=_flat(mdp.initial),
        initial_cumulative=_flat(po_known_lanes.padded(mdp.initial_cumulative)),
    )


def solo_world(mdp: TabularMDP) -> Any:
    """Dense dynamics as `kernels.po_known_solo` takes them."""
    from aggbandit.kernels.po_known_solo import dense_matrices

    forward, backward = dense_matrices(mdp.stored)
    return _solo_world(mdp, forward, backward, np.empty(0, np.int64), np.empty(0), mdp.cumulative)


def sparse_solo_world(mdp: TabularMDP) -> Any:
    """Dynamics with few successors as `kernels.po_known_solo` takes them."""
    successors, probabilities, cumulative = _once(successor_form, mdp)
    return _solo_world(mdp, np.empty(0), np.empty(0), successors, probabilities, cumulative)


def _solo_world(
    mdp: TabularMDP,
    forward: FloatArray,
    backward: FloatArray,
    successors: IntArray,
    probabilities: FloatArray,
    cumulative: FloatArray,
) -> Any:
    from aggbandit.kernels import po_known_lanes, po_known_solo
    from aggbandit.kernels.simd import LANES

    numbering = np.arange(-(-mdp.S // LANES) * LANES, dtype=np.float64)
    initial = np.zeros(numbering.size)
    initial[: mdp.S] = mdp.initial
    return po_known_solo.World(
        forward=_flat(forward),
        backward=_flat(backward),
        successors=_flat(successors),
        probabilities=_flat(probabilities),
        cumulative=_flat(po_known_lanes.padded(cumulative)),
        initial=_flat(initial),
        initial_cumulative=_flat(po_known_lanes.padded(mdp.initial_cumulative)),
        numbering=_flat(numbering),
    )


def successor_form(mdp: TabularMDP) -> tuple[IntArray, FloatArray, FloatArray]:
    """(successors, probabilities, cumulative), each (T, S, A, n), of any model."""
    if mdp.is_sparse:
        return mdp.next_states, mdp.probabilities, mdp.cumulative
    from aggbandit.kernels.po_known_sparse import successors_of

    successors, probabilities = successors_of(mdp.stored)
    # accumulated: a filling entry may stand for a state before the last possible one
    cumulative = np.maximum.accumulate(np.take_along_axis(mdp.cumulative, successors, axis=-1), axis=-1)
    return successors, probabilities, cumulative


_MADE: WeakKeyDictionary[TabularMDP, dict[Any, Any]] = WeakKeyDictionary()


def _once(make: Callable[[TabularMDP], Any], mdp: TabularMDP) -> Any:
    """`make(mdp)`, made once for all engines and kept as long as the model."""
    made = _MADE.setdefault(mdp, {})
    if make not in made:
        made[make] = make(mdp)
    return made[make]


def _flat(array: AnyArray) -> AnyArray:
    """Read-only with one axis: the same type to Numba whatever it was."""
    return frozen(array.reshape(-1))


def _writable(array: FloatArray) -> FloatArray:
    """With one axis; copied if read-only, which to Numba would be another type to compile for."""
    return array.reshape(-1) if array.flags.writeable else array.flatten()


def _share_of_nonzeros(mdp: TabularMDP) -> float:
    """Of the fullest row; 0 for a model that its user made sparse."""
    if mdp.is_sparse:
        return 0.0
    return float(np.count_nonzero(mdp.stored, axis=-1).max()) / mdp.S


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """The engine for these sizes, and how many replicas one of them plays."""
    from aggbandit.kernels.simd import LANES

    H, S, A = problem.shape
    share = _share_of_nonzeros(mdp)
    packs = -(-replicas // LANES)
    wasted = 8 * H * S * A * (packs * LANES - replicas)
    if replicas < FEWEST_LANES or wasted > WASTE_BYTES:
        return (SparseSoloEngine if share < SPARSE_SOLO_BELOW else SoloEngine), 1
    if share < SPARSE_LANES_BELOW:
        return SparseLanesEngine, LANES
    if 16 * mdp.stored.size <= CACHED_BYTES:
        return LanesEngine, LANES
    return LanesEngine, LANES * min(MOST_PACKS, -(-packs // 2))
