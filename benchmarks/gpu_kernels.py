"""What the compiler makes of the GPU's kernels: registers, spills, shared memory and occupancy.  Needs nvcc, no GPU.

    python -m benchmarks.gpu_kernels [WORKLOAD ...] [--nvcc FILE] [--arch sm_90] [--keep DIR]

Every kernel of every frozen workload of `aggbandit bench --device cuda`, and of the claim theorem-1-long, is compiled
as the engines would: same sizes, same flags, for the grid that an H200 would be given.  `--keep` leaves the sources
(.cu) and machine code (.cubin, to be read with `nvdisasm -c`) in a folder.  A kernel that does not compile ends it with
the compiler's message.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggbandit.experiments.bench.gpu import WORKLOADS, GpuWorkload, known
from aggbandit.kernels.cuda.sources import source
from aggbandit.learners.base import Problem
from aggbandit.simulation.engines.cuda.device import OPTIONS, WARP, Device, Kernel
from aggbandit.simulation.engines.places import DTYPES
from aggbandit.simulation.engines.registry import choose_on_gpu
from aggbandit.simulation.losses import LossReader

CLAIM = known(3, 4, 2, 1_000, 10**8, "float64")  # theorem-1-long, each of its K

# one multiprocessor of an H100 or H200
REGISTERS, REGISTERS_AT_ONCE = 65_536, 256  # a warp's are a multiple of the latter
MOST_WARPS, MOST_BLOCKS = 64, 32
SHARED_BYTES, SHARED_OF_A_BLOCK = 228 * 1024, 1024  # the latter is the system's own


class Nothing:
    """A buffer that holds nothing."""

    def __getitem__(self, index: Any) -> "Nothing":
        return self


class Compiler(Device):
    """An H200 whose kernels are compiled and never run; what was asked for is in `launches`."""

    name = "nvcc"
    multiprocessors = 132
    shared_bytes = 227 * 1024

    def __init__(self) -> None:
        self.launches: dict[tuple[str, str], Launch] = {}

    def upload(self, array: Any) -> Any:
        return Nothing()

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return Nothing()

    def filled(self, shape: tuple[int, ...], value: float, dtype: Any) -> Any:
        return Nothing()

    def write(self, buffer: Any, array: Any) -> None:
        pass

    def download(self, buffer: Any) -> Any:
        raise NotImplementedError

    def address(self, buffer: Any) -> int:
        return 0

    def kernel(self, file: str, name: str, constants: Any) -> Kernel:
        return Recorder(self, file, name, dict(constants))

    def free_bytes(self) -> int:
        return 140 * 10**9

    def synchronize(self) -> None:
        pass


class Recorder(Kernel):
    """Notes what it is launched with."""

    def __init__(self, device: Compiler, file: str, name: str, constants: dict[str, int | str]) -> None:
        self.device, self.file, self.name, self.constants = device, file, name, constants

    def __call__(self, grid: int, block: int, arguments: Any, shared_bytes: int = 0) -> None:
        text = source(self.file, self.constants)
        self.device.launches[self.file, self.name] = Launch(self.name, text, grid, block, shared_bytes)


@dataclass(frozen=True)
class Launch:
    """One kernel and how it is asked for."""

    name: str
    text: str
    grid: int
    block: int
    shared_bytes: int


@dataclass(frozen=True)
class Compiled:
    """What the compiler says of one kernel."""

    registers: int
    stack_bytes: int
    spill_bytes: int  # stores and loads together

    def blocks_at_once(self, launch: Launch) -> int:
        """Blocks that one multiprocessor holds."""
        warps = launch.block // WARP
        of_warp = -(-self.registers * WARP // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
        return min(
            MOST_BLOCKS,
            MOST_WARPS // warps,
            REGISTERS // of_warp // warps,
            SHARED_BYTES // (launch.shared_bytes + SHARED_OF_A_BLOCK),
        )


def launches(workload: GpuWorkload) -> list[Launch]:
    """Every kernel that the workload's engine launches for an episode."""
    mdp = workload.mdp()
    learner = workload.configured()
    problem = Problem.of(mdp, workload.episodes, learner.needs)
    bound = learner.bound(problem)
    device = Compiler()
    cls = choose_on_gpu(mdp, problem, bound, workload.replicas, device)
    assert cls is not None
    engine = cls(mdp, problem, bound, 0, 0, workload.replicas, device=device, dtype=DTYPES[workload.dtype])
    engine.play(LossReader(workload.losses(mdp), mdp, workload.episodes).block(0, 1))
    return list(device.launches.values())


def compiled(launch: Launch, folder: Path, file: str, nvcc: str, arch: str) -> Compiled:
    """Compile it."""
    cu = folder / f"{file}.cu"
    cu.write_text(launch.text, encoding="utf-8")
    command = [nvcc, f"-arch={arch}", *OPTIONS, "-cubin", "-Xptxas", "-v", "-o", str(folder / f"{file}.cubin"), str(cu)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return told(done.stderr, launch.name)


def told(text: str, kernel: str) -> Compiled:
    """What `ptxas -v` says of one kernel; the functions that it calls count with it."""
    about = text.partition(f"Compiling entry function '{kernel}'")[2].partition("Compiling entry function")[0]
    registers = re.search(r"Used (\d+) registers", about)
    assert registers, text
    stacks = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", about)
    return Compiled(
        int(registers[1]), max(int(one[0]) for one in stacks), sum(int(one[1]) + int(one[2]) for one in stacks)
    )


def main() -> None:
    """Print a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = {workload.name: workload for workload in [*WORKLOADS, CLAIM]}
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=f"only these of {', '.join(every)}")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    asked = parser.parse_args()
    print(f"{'workload':28} {'kernel':13} {'grid':>6} {'block':>5} {'shared':>7} {'regs':>4} {'stack':>5} {'spill':>5} "
          f"{'blocks':>6} {'warps':>5}")  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for workload in (every[name] for name in asked.names or every):
            for one in launches(workload):
                found = compiled(one, folder, f"{workload.name}-{one.name}", asked.nvcc, asked.arch)
                blocks = found.blocks_at_once(one)
                print(f"{workload.name:28} {one.name:13} {one.grid:6} {one.block:5} {one.shared_bytes:7} "
                      f"{found.registers:4} {found.stack_bytes:5} {found.spill_bytes:5} {blocks:6} "
                      f"{blocks * one.block // WARP:5}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
