"""A GPU is often lent on a machine where little is installed: playing and measuring there need no more."""

import json
import os
import subprocess
import sys
from pathlib import Path

from cuda_on_host.device import needs_compiler

ROOT = Path(__file__).parents[2]
BARE = """
import sys

ABSENT = {"altair", "matplotlib", "msgspec", "pandas", "pyarrow", "rich", "threadpoolctl", "vl_convert", "gymnasium"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
ROOT = WHERE
sys.path[:0] = [ROOT + "/src", ROOT + "/tests", ROOT]

import aggbandit as ab
from aggbandit.experiments.bench import gpu
from cuda_on_host import cupy

gpu.WORKLOADS = [
    gpu.known(3, 3, 2, 5, 4, "float32"),
    gpu.known(2, 49, 1, 3, 2, "float64"),
    gpu.GpuWorkload(name="unknown-3-3-2", learner="po-unknown", H=3, S=3, A=2, episodes=4, replicas=2),
]
gpu.PRODUCT_SIZE, gpu.COPY_BYTES = 16, 1024

def play():
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=0)
    losses = ab.adversaries.make("switching", mdp, blocks=2, period=5, seed=1)
    result = ab.run(mdp, losses, "po-known", episodes=20, replicas=3, device="cuda")
    assert result.device == "cuda (a GPU played on the CPU)"

def bench(out):
    from aggbandit.cli.main import main
    assert main(["bench", "--device", "cuda", "--repeats", "1", "--out", out]) == 0

def acceptance(out):
    from benchmarks import gpu_acceptance as benchmark
    benchmark.WANTED = {"known-3-3-2-float32": 1.0, "unknown-3-3-2": 1e99}
    benchmark.WANTED_SHARE = {"known-2-49-1-float64": 0.0}
    benchmark.CHECKED = [("po-known", {}, (3, 3, 2), 2, 20)]
    benchmark.SINGLE = [("po-known", (3, 3, 2), 4, 20)]
    benchmark.claim.sizes = lambda top: [10, 20, 30, 40, 50]
    benchmark.claim.REPLICAS = 3
    sys.argv = ["gpu_acceptance", out, "--repeats", "1"]
    benchmark.main()

if __name__ == "__main__":
    with cupy.put_in_place():
        WHAT
"""


def bare(tmp_path, what):
    """Run it where none of the absent packages can be imported."""
    script = tmp_path / "bare.py"
    script.write_text(BARE.replace("WHERE", repr(str(ROOT))).replace("WHAT", what))
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"PATH": "/usr/bin:/bin"},
    )  # fmt: skip


@needs_compiler
def test_a_run_needs_no_package_beside_cupy(tmp_path):
    done = bare(tmp_path, "play()")
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_bench_prints_and_keeps_its_figures(tmp_path):
    done = bare(tmp_path, "bench('kept/gpu.json')")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == [
        "known-3-3-2-float32", "known-2-49-1-float64", "unknown-3-3-2", "kept/gpu.json"
    ]  # fmt: skip
    kept = json.loads((tmp_path / "kept" / "gpu.json").read_text())
    assert kept["machine"]["gpu"] == "a GPU played on the CPU"
    assert [one["replicas"] for one in kept["workloads"]] == [5, 3, 2]
    assert all(one["episodes_per_second"] > 0 for one in kept["workloads"])


@needs_compiler
def test_one_call_measures_all_that_is_asked_of_a_gpu(tmp_path):
    done = bare(tmp_path, "acceptance('gpu.json')")
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "gpu.json").read_text())
    assert list(kept) == ["machine", "workloads", "checks", "claim", "profile"]
    speeds = kept["workloads"]
    assert speeds["known-3-3-2-float32"]["reached"] is True
    assert speeds["unknown-3-3-2"]["reached"] is False
    assert speeds["known-2-49-1-float64"]["reached"] is True
    assert kept["checks"]["po-known (3, 3, 2) K=20"]["policies differ from the CPU's by"] < 1e-12
    assert kept["checks"]["two halves are the whole"] is True
    assert len(kept["claim"]["done"]) == 5
    assert len(kept["claim"]["regret"]) == 5
    assert kept["claim"]["slope"]["low"] <= kept["claim"]["slope"]["value"] <= kept["claim"]["slope"]["high"]
    assert kept["profile"]["left out"] == "no ncu on PATH"
