"""All deterministic policies that differ where they go: the vertices of the occupancy polytope."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Problem
from aggbandit.learners.parts.occupancy_polytope import dense_transition, dimension, reachable

MOST_POLICIES = 60_000
MOST_ENTRIES = 5_000_000  # of all occupancies together: a few policies over many places take as much as many over few
WAY_OUT = "Take a smaller instance, or a learner that needs no enumeration: po-known, scrible, dlb."


class Vertices(NamedTuple):
    actions_nhs: IntArray  # what each policy does; -1 where it never comes
    occupancy_nhsa: FloatArray  # where it goes: no two are equal
    dimension: int  # of their linear span


def count(problem: Problem, who: str) -> int:
    """How many vertices there are; refuses where they are too many, or too long, without enumerating them."""
    H, S, A = problem.shape
    transition_tsas = dense_transition(problem)
    ways = {frozenset(np.flatnonzero(problem.initial > 0.0).tolist()): 1}  # reached states -> partial policies
    for h in range(H):
        step_sas = transition_tsas[h if transition_tsas.shape[0] > 1 else 0]
        following: dict[frozenset[int], int] = {}
        for reached, number in ways.items():
            unions: dict[frozenset[int], int] = {frozenset(): number}
            for s in reached:
                grown: dict[frozenset[int], int] = {}
                for a in range(A):
                    to = frozenset(np.flatnonzero(step_sas[s, a] > 0.0).tolist()) if h + 1 < H else frozenset()
                    for union, n in unions.items():
                        grown[union | to] = grown.get(union | to, 0) + n
                unions = grown
                if sum(unions.values()) > MOST_POLICIES:
                    _refuse(problem, who, int(reachable(transition_tsas, problem.initial, H).sum()))
            for union, n in unions.items():
                following[union] = following.get(union, 0) + n
        ways = following
        if sum(ways.values()) > MOST_POLICIES:
            _refuse(problem, who, int(reachable(transition_tsas, problem.initial, H).sum()))
    number = sum(ways.values())
    if number * H * S * A > MOST_ENTRIES:
        raise InvalidInputError(
            f"{who} keeps the occupancy of every deterministic policy, at most {MOST_ENTRIES} numbers in all, but here "
            f"are {number} policies of H · S · A = {H * S * A} numbers each. {WAY_OUT}"
        )
    return number


def _refuse(problem: Problem, who: str, places: int) -> NoReturn:
    raise InvalidInputError(
        f"{who} weighs every deterministic policy, at most {MOST_POLICIES} of them, but with (H, S, A) = "
        f"{problem.shape} and {places} reachable places there are more, up to {problem.A}^{places}. {WAY_OUT}"
    )


def vertices(problem: Problem, who: str) -> Vertices:
    """The vertices of the occupancy polytope, one policy each.

    What a policy would do at places where it never comes makes no difference, so that only the reached ones are
    enumerated: with deterministic transitions there are A^H, with positive ones A^(1 + (H - 1) S).
    """
    count(problem, who)
    H, S, A = problem.shape
    transition_tsas = dense_transition(problem)
    actions_nhs = np.full((1, H, S), -1, dtype=np.int64)
    reach_ns = problem.initial[None, :]
    reaches_nhs = np.zeros((1, H, S))
    for h in range(H):
        for s in range(S):
            copies_n = np.where(reach_ns[:, s] > 0.0, A, 1)
            first_n = np.cumsum(copies_n) - copies_n
            origin_n = np.repeat(np.arange(copies_n.size), copies_n)
            branch_n = np.arange(origin_n.size) - first_n[origin_n]
            actions_nhs, reaches_nhs, reach_ns = actions_nhs[origin_n], reaches_nhs[origin_n], reach_ns[origin_n]
            actions_nhs[:, h, s] = np.where(reach_ns[:, s] > 0.0, branch_n, -1)
        reaches_nhs[:, h] = reach_ns
        if h + 1 < H:
            step_sas = transition_tsas[h if transition_tsas.shape[0] > 1 else 0]
            taken_nss = step_sas[np.arange(S)[None, :], np.maximum(actions_nhs[:, h], 0)]
            reach_ns = (reach_ns[:, :, None] * taken_nss).sum(axis=1)
    occupancy_nhsa = reaches_nhs[:, :, :, None] * (actions_nhs[:, :, :, None] == np.arange(A))
    return Vertices(actions_nhs, occupancy_nhsa, span_dimension(problem))


def span_dimension(problem: Problem) -> int:
    """d = 1 + (A − 1) · #reachable (h, s), the dimension of the linear span of all occupancies."""
    open_hs = reachable(dense_transition(problem), problem.initial, problem.H)
    return 1 + dimension(open_hs, problem.A)


def span_coordinates(rows_nj: FloatArray, dimension: int) -> FloatArray:
    """The rows in coordinates (n, d) of their linear span, chosen so that Σ z z^T / n is the identity.

    Every estimator ⟨z_i, (Σ p z z^T)^{-1} z_k⟩ is the same in all coordinates.  Columns are scaled first, so that
    places of tiny probability are as well conditioned as others.
    """
    greatest_j = np.abs(rows_nj).max(axis=0)
    scaled_nj = rows_nj[:, greatest_j > 0.0] / greatest_j[greatest_j > 0.0]
    left_nd = np.linalg.svd(scaled_nj, full_matrices=False)[0][:, :dimension]
    z_nd: FloatArray = np.ascontiguousarray(left_nd) * np.sqrt(rows_nj.shape[0])
    return z_nd


def as_policy(actions_hs: IntArray, A: int) -> FloatArray:
    """One deterministic policy as (H, S, A), uniform where it never comes."""
    policy_hsa: FloatArray = np.where(
        actions_hs[:, :, None] < 0, 1.0 / A, actions_hs[:, :, None] == np.arange(A)
    ).astype(np.float64)
    return policy_hsa
