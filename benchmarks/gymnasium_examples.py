"""FrozenLake, CliffWalking and Taxi from totals alone, against the optimal policy by dynamic programming.

python -m benchmarks.gymnasium_examples            # the table of docs/howto/gymnasium.md, about ten minutes
python -m benchmarks.gymnasium_examples --part 0.1  # a tenth of the episodes
"""

import argparse
import time

import gymnasium
import numpy as np

import aggbandit as ab
from aggbandit._arrays import FloatArray
from aggbandit.interop import gymnasium as gym

EXAMPLES = (  # environment, horizon, and how many episodes each learner plays
    ("FrozenLake", 50, {"po-model-free": 500_000, "po-practical": 200_000}),
    ("CliffWalking", 50, {"po-model-free": 200_000, "po-practical": 50_000}),
    ("Taxi", 30, {"po-model-free": 2_000_000, "po-practical": 50_000}),
)


def latest(name: str) -> str:
    """The newest version of an environment that this Gymnasium has."""
    versions = [spec.version or 0 for spec in gymnasium.registry.values() if spec.name == name]
    return f"{name}-v{max(versions)}"


def mean_return(made: gym.Converted, policy: FloatArray) -> float:
    """The expected return of a policy, by dynamic programming."""
    reach = ab.planning.occupancy(made.mdp, policy)
    return float(made.losses.reward((reach[:, :, None] * policy * made.losses.mean_table).sum()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=float, default=1.0, help="of the episodes")
    given = parser.parse_args()
    for name, horizon, plans in EXAMPLES:
        made = gym.from_env(latest(name), horizon)
        _, best = ab.planning.best_policy(made.mdp, made.losses.mean_table)
        uniform = mean_return(made, np.full(made.mdp.shape, 1.0 / made.mdp.A))
        print(f"{name} (H = {horizon}): optimal {made.losses.reward(best):.3f}, uniform {uniform:.3f}")
        for learner, planned in plans.items():
            episodes = max(100, int(planned * given.part))
            begun = time.perf_counter()
            result = ab.run(
                *made, learner, episodes=episodes, replicas=4, checkpoints=1, evaluate_every=max(1, episodes // 20)
            )
            found = [mean_return(made, policy) for policy in (() if result.policy is None else result.policy)]
            told = ", ".join(f"{value:.3f}" for value in found)
            print(
                f"  {learner:<16}{episodes:>10,} episodes: mean {np.mean(found):.3f} ({told}), "
                f"{time.perf_counter() - begun:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
