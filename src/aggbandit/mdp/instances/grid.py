"""A slippery grid to be crossed from one corner to the other."""

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer, require_number
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP

# clockwise, so that the two sides of a direction are its neighbours in this list
DIRECTIONS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


@instance("grid")
def grid(*, width: int = 4, height: int = 4, slip: float = 0.1, horizon: int | None = None) -> TabularMDP:
    """A slippery grid: walk from the top left corner to the bottom right one.

    The actions up, right, down and left move one cell; a move against the wall stays.  With probability `slip` the
    step goes to one of the two sides instead, half of it to each.  The goal is never left.

    Its own losses count the steps: 1 everywhere but at the goal, where it is 0, so that the total of an episode is the
    number of steps that it took to arrive.

    width, height   in cells; S = width * height, state = row * width + column
    slip            probability of a step to the side
    horizon         H; None: twice the shortest way
    """
    W = require_integer("width", width, low=1)
    N = require_integer("height", height, low=1)
    slip = require_number("slip", slip, low=0.0, high=1.0)
    H = _steps(W, N, horizon)
    moves = list(DIRECTIONS.values())
    transition = np.zeros((W * N, len(moves), W * N))
    for s in range(W * N):
        landing = [_step(s, move, W, N) for move in moves]
        for a in range(len(moves)):
            transition[s, a, landing[a]] += 1.0 - slip
            transition[s, a, landing[a - 1]] += slip / 2.0
            transition[s, a, landing[(a + 1) % len(moves)]] += slip / 2.0
    goal = W * N - 1
    transition[goal] = 0.0
    transition[goal, :, goal] = 1.0
    names = [f"row {s // W} column {s % W}" for s in range(W * N)]
    return TabularMDP(transition, horizon=H, state_names=names, action_names=list(DIRECTIONS))


def loss_table(*, width: int, height: int, slip: float, horizon: int | None) -> FloatArray:
    """1 everywhere but at the goal: (H, S, A)."""
    loss = np.ones((_steps(width, height, horizon), width * height, len(DIRECTIONS)))
    loss[:, -1] = 0.0
    return loss


def _steps(width: int, height: int, horizon: int | None) -> int:
    if horizon is None:
        return max(1, 2 * (width + height - 2))
    return require_integer("horizon", horizon, low=1)


def _step(s: int, move: tuple[int, int], width: int, height: int) -> int:
    """Where a step in this direction ends."""
    row = min(max(s // width + move[0], 0), height - 1)
    column = min(max(s % width + move[1], 0), width - 1)
    return row * width + column
