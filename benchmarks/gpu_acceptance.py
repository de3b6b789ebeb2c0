"""Everything that is asked of one H200, in one call of under ten minutes; the figures go to a JSON file as they come.

    PYTHONPATH=src python3 -m benchmarks.gpu_acceptance benchmarks/results/h200.json [--seconds 560] [PART ...]

Parts, in this order:
  workloads   those of `aggbandit bench --device cuda`, beside what is asked of each
  checks      float64 against the CPU's policies, two halves against the whole, float32 against float64's band
  claim       theorem-1-long in full: K = 10³ ... 10⁸ at once, a thousand replicas each
  profile     the profiler's figures (Nsight Compute, where `ncu` is on PATH) of the largest kernels
Needs NumPy, SciPy, Numba and CuPy, nothing else of what the package asks for, so that a machine lent for minutes will
do.  A part that fails, or for which no time is left, is noted as such and the others go on; a claim that is not done
when the time is over keeps the K that were.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

import aggbandit as ab
from aggbandit import _files, learners
from aggbandit.experiments.bench import gpu
from aggbandit.experiments.bench.measure import machine
from aggbandit.experiments.claims import theorem_1_long as claim
from aggbandit.experiments.claims.base import slope_between
from aggbandit.learners.base import Problem
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.run import Simulation

# episodes a second, or share of the card's own float64 matrix product
WANTED = {
    "known-10-10-4-float32": 200e6,
    "known-10-10-4-float64": 130e6,
    "known-5-5-3-float32": 1_000e6,
    "unknown-10-10-4": 10e6,
    "unknown-10-10-4-long": 4e6,
    "unknown-10-10-4-narrow": 2e6,
}
WANTED_SHARE = {"known-20-100-10-float64": 0.20}
WANTED_SECONDS = 360.0  # of the claim
TOP = 8  # its greatest K is 10 to this
CHECKED = [  # learner, its arguments, (H, S, A), replicas, K
    ("po-known", {}, (10, 10, 4), 8, 3_000),
    ("po-known", {}, (6, 60, 4), 9, 300),
    ("po-unknown", {}, (10, 10, 4), 3, 2_000),
    ("po-unknown", {"radius_scale": 0.01}, (10, 10, 4), 3, 1_000),
    ("po-practical", {}, (10, 10, 4), 8, 2_000),
    ("po-model-free", {}, (10, 10, 4), 8, 2_000),
]
SINGLE = [("po-known", (5, 5, 3), 256, 100_000), ("po-unknown", (3, 3, 2), 64, 20_000)]
PROFILED = {  # kernels by pattern: workload, replicas, episodes, launches left out first, launches looked at
    "^(reach|improve)$": ("known-20-100-10-float64", 32_768, 5, 60, 40),
    "^play$": ("unknown-10-10-4", 660, 200, 3, 1),
}
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "SchedulerStats", "WarpStateStats",
            "LaunchStats", "Occupancy")  # fmt: skip
RESERVE = 15.0  # seconds kept for writing and ending

Report = dict[str, Any]
Keep = Callable[[], None]


def world(H: int, S: int, A: int) -> tuple[ab.TabularMDP, Any]:
    """An instance and losses that change."""
    mdp = ab.instances.make("random", states=S, actions=A, horizon=H, seed=0)
    return mdp, ab.adversaries.make("switching", mdp, blocks=8, period=250, seed=1)


def on_cpu(name: str, arguments: dict[str, Any], shape: tuple[int, int, int], replicas: int, K: int) -> Any:
    """The CPU's last policies, without what `run` needs besides."""
    mdp, losses = world(*shape)
    learner = learners.make(name, **arguments)
    problem = Problem.of(mdp, K, learner.needs)
    simulation = Simulation(
        mdp, LossReader(losses, mdp, K), learner.bound(problem), problem, replicas=replicas, seed=0,
        checkpoints=np.array([K]),
    )  # fmt: skip
    simulation.play()
    return simulation.result().policy


def workloads(found: Report, keep: Keep, repeats: int) -> None:
    """Speeds."""
    for one in gpu.measured([workload.name for workload in gpu.WORKLOADS], repeats):
        found[one.name] = record = asdict(one)
        told = f"{one.name}: {one.episodes_per_second / 1e6:,.1f} M episodes/s"
        if one.name in WANTED:
            record["wanted"], record["reached"] = WANTED[one.name], one.episodes_per_second >= WANTED[one.name]
            told += f", wanted {WANTED[one.name] / 1e6:,.0f}"
        if one.name in WANTED_SHARE:
            share = one.share_of_product or 0.0
            record["wanted_share"], record["reached"] = WANTED_SHARE[one.name], share >= WANTED_SHARE[one.name]
            told += f", {share:.1%} of the card's product, wanted {WANTED_SHARE[one.name]:.0%}"
        print(told, flush=True)
        keep()


def checks(found: Report, keep: Keep, here: list[Future[Any]], seconds: float) -> None:
    """That the numbers are right; `here` are the CPU's policies, or will be."""
    ends = time.monotonic() + seconds
    for (name, arguments, shape, replicas, K), answer in zip(CHECKED, here, strict=True):
        there = ab.run(
            *world(*shape), learners.make(name, **arguments), episodes=K, replicas=replicas, device="cuda",
            checkpoints=1,
        ).policy  # fmt: skip
        apart = float(abs(there - answer.result(max(1.0, ends - time.monotonic()))).max())
        case = " ".join([name, *(f"{key}={value}" for key, value in arguments.items()), str(shape), f"K={K}"])
        found[case] = {"policies differ from the CPU's by": apart}
        print(f"{case}: policies differ from the CPU's by {apart:.1e}", flush=True)
        keep()
    mdp, losses = world(5, 5, 3)
    whole, halves = (
        ab.run(mdp, losses, "po-known", episodes=500, replicas=1001, device=device) for device in ("cuda", "cuda:0,0")
    )
    found["two halves are the whole"] = bool(
        np.array_equal(whole.regret, halves.regret) and np.array_equal(whole.policy, halves.policy)
    )
    for name, shape, replicas, K in SINGLE:
        double, single = (
            ab.run(*world(*shape), name, episodes=K, replicas=replicas, device="cuda", dtype=dtype, checkpoints=1)
            .regret[:, -1] for dtype in ("float64", "float32")
        )  # fmt: skip
        half = 1.96 * double.std(ddof=1) / np.sqrt(replicas)
        found[f"float32 {name} {shape} K={K}"] = {
            "float64": float(double.mean()), "half of its band": float(half), "float32": float(single.mean())
        }  # fmt: skip
        keep()


def profile(found: Report, keep: Keep, seconds: float) -> None:
    """What the profiler counts."""
    ncu = shutil.which("ncu")
    if ncu is None:
        found["left out"] = "no ncu on PATH"
        return
    ends = time.monotonic() + seconds
    for pattern, (workload, replicas, episodes, skipped, looked_at) in PROFILED.items():
        command = [
            ncu, "--clock-control", "none", "--csv", "--page", "details", "--kernel-name", f"regex:{pattern}",
            "--launch-skip", str(skipped), "--launch-count", str(looked_at),
            *(word for section in SECTIONS for word in ("--section", section)),
            sys.executable, "-m", "benchmarks.gpu_acceptance", "--play", workload, str(replicas), str(episodes),
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=max(1.0, ends - time.monotonic())
        )
        rows = csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"'))
        values: dict[str, list[float]] = {}
        for row in rows:
            kernel, name, unit = row["Kernel Name"].partition("(")[0], row["Metric Name"], row["Metric Unit"]
            try:
                number = float(row["Metric Value"].replace(",", ""))
            except ValueError:
                continue  # a setting in words
            values.setdefault(f"{kernel}: {name} [{unit}]", []).append(number)
        found[workload] = {name: float(np.mean(numbers)) for name, numbers in values.items()}
        if not values:
            found[workload] = {"failed": (done.stderr + done.stdout)[-2000:]}
        keep()


def play(name: str, replicas: int, episodes: int) -> None:
    """One workload, for the profiler to look at."""
    workload = next(one for one in gpu.WORKLOADS if one.name == name)
    mdp = workload.mdp()
    ab.run(
        mdp, workload.losses(mdp), workload.configured(), episodes=episodes, replicas=replicas, checkpoints=1,
        keep_policy=False, device="cuda", dtype=workload.dtype,
    )  # fmt: skip


def slope(found: Report, keep: Keep, seconds: float, Ks: list[int], replicas: int) -> None:
    """Theorem 1's slope, all K at once."""
    lines: list[str] = []
    found |= {"K": Ks, "replicas": replicas, "done": lines}
    answers: list[Any] = []
    failed: list[str] = []

    def tell(text: str) -> None:
        lines.append(text)
        print(text, flush=True)
        keep()

    def play_all() -> None:
        try:
            answers.extend(claim.finals_of(Ks, replicas, "cuda", tell))
        except Exception:  # noqa: BLE001 whatever it is, the report tells it
            failed.append(traceback.format_exc())

    began = time.perf_counter()
    player = threading.Thread(target=play_all, daemon=True)  # which does not outlive the time that there is
    player.start()
    player.join(seconds)
    if failed or not answers:
        found["left out"] = failed[0] if failed else f"stopped after {seconds:.0f} s"
        return
    took = time.perf_counter() - began
    found_slope = slope_between([answers[-5], answers[-1]], [Ks[-5], Ks[-1]])
    found |= {
        "seconds": took,
        "slope": found_slope._asdict(),
        "regret": [float(one.mean()) for one in answers],
        "reached": bool(took <= WANTED_SECONDS and claim.LOWEST <= found_slope.value <= claim.HIGHEST),
    }
    print(
        f"theorem-1-long: slope {found_slope}, wanted {claim.LOWEST} to {claim.HIGHEST}; {took:.0f} s, wanted "
        f"{WANTED_SECONDS:.0f}",
        flush=True,
    )


def main() -> None:
    """Play the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--seconds", type=float, default=560.0, help="of all parts together (default: 560)")
    parser.add_argument("--repeats", type=int, default=2, help="of each workload, the best counts (default: 2)")
    parser.add_argument("--play", nargs=3, metavar=("WORKLOAD", "REPLICAS", "EPISODES"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.play:
        play(asked.play[0], int(asked.play[1]), int(asked.play[2]))
        return
    ends = time.monotonic() + asked.seconds
    parts = {
        "workloads": lambda found, left: workloads(found, keep, asked.repeats),
        "checks": lambda found, left: checks(found, keep, here, left),
        "claim": lambda found, left: slope(found, keep, left, claim.sizes(TOP), claim.REPLICAS),
        "profile": lambda found, left: profile(found, keep, left),
    }
    unknown = [name for name in asked.parts if name not in parts]
    if asked.out is None or unknown:
        parser.error(f"OUT, then any of {', '.join(parts)}" + (f"; not {unknown[0]}" if unknown else ""))
    record: Report = {"machine": {**machine(), **gpu.card()}}

    def keep() -> None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        _files.write_atomically(asked.out, (json.dumps(record, indent=2) + "\n").encode())

    keep()
    print(record["machine"], flush=True)
    chosen = [name for name in parts if not asked.parts or name in asked.parts]
    here: list[Future[Any]] = []
    if "checks" in chosen:  # the CPU compiles and plays while the GPU is measured
        pool = ProcessPoolExecutor(min(len(CHECKED), os.cpu_count() or 1), mp_context=get_context("spawn"))
        here = [pool.submit(on_cpu, *case) for case in CHECKED]
    for name in chosen:
        record[name] = {}
        left = ends - time.monotonic() - RESERVE
        began = time.monotonic()
        try:
            if left <= 0:
                record[name]["left out"] = "no time left"
            else:
                parts[name](record[name], left)
        except Exception:  # noqa: BLE001 the other parts go on
            record[name]["left out"] = traceback.format_exc()
            print(record[name]["left out"], file=sys.stderr, flush=True)
        record[name]["seconds of this part"] = round(time.monotonic() - began, 1)
        keep()
    print(asked.out, flush=True)
    for process in active_children():
        process.terminate()
    os._exit(0)  # a claim that was stopped still holds the card


if __name__ == "__main__":
    main()
