"""The occupancies x_h(s, a) = μ_h(s) π_h(a|s) that policies have when the dynamics are known, and convex steps on them.

    x >= 0,   Σ_a x_1(s, a) = initial(s),   Σ_a x_{h+1}(s', a) = Σ_{s, a} p_h(s'|s, a) x_h(s, a)

Places that no policy reaches hold no variable.  With them left out the polytope has an interior, of dimension
(A − 1) · #reachable (h, s), while its linear span has one dimension more.
"""

from __future__ import annotations

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, frozen
from aggbandit.errors import AggbanditError
from aggbandit.learners.base import Problem

MOST_NEWTON_STEPS = 300
GOOD_ENOUGH = 1e-6  # of the Newton decrement, where rounding keeps it from the 1e-10 that is aimed at


def dense_transition(problem: Problem) -> FloatArray:
    """p as kernels take it: contiguous (T, S, A, S), T = 1 where the same at every step."""
    assert problem.dynamics is not None  # `Learner.check` has refused otherwise
    if not problem.dynamics.is_sparse:
        return problem.dynamics.stored
    full_hsas = problem.dynamics.transition
    return full_hsas[:1] if full_hsas.strides[0] == 0 else full_hsas


def reachable(transition_tsas: FloatArray, initial_s: FloatArray, H: int) -> AnyArray:
    """Whether some policy comes to (h, s), bool (H, S)."""
    open_hs = np.zeros((H, initial_s.size), dtype=np.bool_)
    open_hs[0] = initial_s > 0.0
    for h in range(H - 1):
        step_sas = transition_tsas[h if transition_tsas.shape[0] > 1 else 0]
        open_hs[h + 1] = (step_sas[open_hs[h]] > 0.0).any(axis=(0, 1))
    return open_hs


def dimension(open_hs: AnyArray, A: int) -> int:
    """That of the polytope itself, (A − 1) · #reachable (h, s)."""
    return int(open_hs.sum()) * (A - 1)


def of_policy(transition_tsas: FloatArray, initial_s: FloatArray, policy_hsa: FloatArray) -> FloatArray:
    """The occupancy (H, S, A) of a policy."""
    from aggbandit.kernels import occupancy

    reach_hs = np.empty(policy_hsa.shape[:2])
    occupancy.reach(frozen(transition_tsas), frozen(policy_hsa), frozen(initial_s), reach_hs)
    x_hsa: FloatArray = reach_hs[:, :, None] * policy_hsa
    return x_hsa


def uniform_occupancy(transition_tsas: FloatArray, initial_s: FloatArray, H: int, A: int) -> FloatArray:
    """The occupancy of the uniform policy: positive wherever one can come."""
    return of_policy(transition_tsas, initial_s, np.full((H, initial_s.size, A), 1.0 / A))


def policy_of(x_hsa: FloatArray) -> FloatArray:
    """π_h(a|s) = x_h(s, a) / Σ_a x_h(s, a), uniform where the occupancy is 0."""
    totals = x_hsa.sum(axis=-1, keepdims=True)
    policy_hsa = np.full(x_hsa.shape, 1.0 / x_hsa.shape[-1])
    np.divide(x_hsa, totals, out=policy_hsa, where=totals > 0.0)
    return policy_hsa


def minimise(
    transition_tsas: FloatArray,
    initial_s: FloatArray,
    open_hs: AnyArray,
    cost_hsa: FloatArray,
    start_hsa: FloatArray,
    *,
    log: float | FloatArray,
    root: float = 0.0,
) -> FloatArray:
    """argmin_x ⟨cost, x⟩ − root Σ √x − Σ log ln x over the polytope, by Newton's method from `start_hsa`.

    Starts from any occupancy that is positive on the reachable places; nearer is quicker.  `log` > 0 makes the
    objective self-concordant.  Aims at a Newton decrement of 1e-10.
    """
    from aggbandit.kernels import barrier_newton

    # everything read only is frozen: a kernel is compiled anew for every mixture of flags that it meets
    x_hsa = start_hsa.copy()
    log_hsa = np.full(x_hsa.shape, log) if np.ndim(log) == 0 else np.asarray(log)
    decrement, _ = barrier_newton.minimise(
        frozen(transition_tsas),
        frozen(open_hs),
        frozen(cost_hsa),
        float(root),
        frozen(log_hsa),
        x_hsa,
        MOST_NEWTON_STEPS,
    )
    require_converged(decrement)
    barrier_newton.restore(frozen(transition_tsas), frozen(initial_s), frozen(open_hs), x_hsa)
    return x_hsa


def dikin_step(
    transition_tsas: FloatArray, open_hs: AnyArray, x_hsa: FloatArray, normal_hsa: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A step to a uniform point of the Dikin ellipsoid's surface around x, for R = −Σ ln x, and ∇²R(x) · step.

    The ellipsoid {y: (y − x)^T ∇²R(x) (y − x) <= 1} lies inside the polytope.  In an orthonormal basis W of the flow
    equations' null space the step is W (W^T ∇²R W)^{-1/2} u and W^T ∇²R · step = (W^T ∇²R W)^{1/2} u, with u uniform
    on the unit sphere; `normal_hsa` are the standard normal numbers that it is made of.
    """
    from aggbandit.kernels import barrier_newton

    step_hsa, pull_hsa = np.empty(x_hsa.shape), np.empty(x_hsa.shape)
    barrier_newton.dikin(
        frozen(transition_tsas), frozen(open_hs), frozen(x_hsa), frozen(normal_hsa), step_hsa, pull_hsa
    )
    return step_hsa, pull_hsa


def tangent_basis(
    transition_tsas: FloatArray, open_hs: AnyArray, A: int, scale_hsa: FloatArray | None = None
) -> FloatArray:
    """An orthonormal basis W of the directions inside the polytope, (H S A, dimension), for small problems.

    With a scale, of the directions y = x / scale, which are well conditioned even where occupancies are tiny.  The rows
    of places that hold no variable are 0.  Dense: O((A · #reachable)³) time.
    """
    H, S = open_hs.shape
    basis = np.zeros((H * S * A, dimension(open_hs, A)))
    if A == 1:
        return basis  # one point
    scale_hsa = np.ones((H, S, A)) if scale_hsa is None else scale_hsa
    places = int(open_hs.sum())
    number_hs = np.cumsum(open_hs).reshape(H, S) - 1  # of the open places alone
    flow = np.zeros((places, places, A))
    for h in range(H):
        here = np.flatnonzero(open_hs[h])
        i = number_hs[h, here]
        flow[i, i] = scale_hsa[h, here]
        if h + 1 < H:
            to = np.flatnonzero(open_hs[h + 1])
            step_sas = transition_tsas[h if transition_tsas.shape[0] > 1 else 0][here][:, :, to]
            flow[np.ix_(number_hs[h + 1, to], i)] = -np.moveaxis(step_sas * scale_hsa[h, here][:, :, None], -1, 0)
    rows = flow.reshape(places, places * A)
    basis[np.repeat(open_hs.ravel(), A)] = np.linalg.svd(rows)[2][places:].T
    return basis


def require_converged(decrement: float) -> None:
    """Newton's method has come close enough; not to do so means numbers beyond double precision."""
    if not decrement <= GOOD_ENOUGH:
        raise AggbanditError(
            f"Newton's method over occupancies stopped at a decrement of {decrement:.3g}, but should come below "
            f"{GOOD_ENOUGH:g}: the losses estimated so far are too large for double precision. Lower step_scale."
        )
