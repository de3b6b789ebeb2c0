"""How the time of an episode grows with H, S, A and the number of replicas: `python -m benchmarks.growth`.

Around H, S, A = 10, 10, 4, one size changes at a time; one thread; best of three.  The exponent is fitted to
the three or four points, so 1 is linear, 2 quadratic.
"""

from typing import Any

import numpy as np

import aggbandit as ab

BASE = {"H": 10, "S": 10, "A": 4}
STEPS = {"H": (5, 10, 20, 40), "S": (5, 10, 20, 40), "A": (2, 4, 8, 16)}
SECONDS = 0.4


def microseconds(learner: Any, size: dict[str, int], replicas: int) -> float:
    """Time of one episode of one replica, best of three."""
    mdp = ab.instances.make("random", states=size["S"], actions=size["A"], horizon=size["H"], seed=0)
    losses = ab.adversaries.make("fixed", mdp, table="random", seed=0)

    def seconds(episodes: int) -> float:
        return ab.run(
            mdp, losses, learner, episodes=episodes, replicas=replicas, threads=1, checkpoints=1, keep_policy=False
        ).seconds

    episodes = 20
    while seconds(episodes) < SECONDS / 3 and episodes < 200_000:
        episodes *= 3
    return 1e6 * min(seconds(episodes) for _ in range(3)) / (episodes * replicas)


def main() -> None:
    for name, learner, replicas in (
        ("po-known, 64 replicas", ab.learners.make("po-known", step_size="main"), 64),
        ("po-unknown, narrow sets", ab.learners.make("po-unknown", step_size="main", radius_scale=0.01), 1),
        ("po-unknown, paper's radius", ab.learners.make("po-unknown", step_size="main"), 1),
    ):
        print(name)
        for axis, values in STEPS.items():
            times = [microseconds(learner, BASE | {axis: value}, replicas) for value in values]
            exponent = np.polyfit(np.log(values), np.log(times), 1)[0]
            told = ", ".join(f"{axis} = {value}: {time:.3g} µs" for value, time in zip(values, times, strict=True))
            print(f"  {told};  exponent {exponent:.2f}", flush=True)
    known = ab.learners.make("po-known", step_size="main")
    print("po-known by replicas")
    print("  " + ", ".join(f"{n}: {microseconds(known, BASE, n):.3g} µs" for n in (1, 2, 4, 8, 16, 32, 64, 256)))


if __name__ == "__main__":
    main()
