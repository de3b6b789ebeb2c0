"""`aggbandit bench`: how fast this machine plays the frozen workloads."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggbandit import _files
from aggbandit.cli import output
from aggbandit.reporting import numbers

if TYPE_CHECKING:
    from aggbandit.experiments.bench.measure import Measurement


def add_parser(commands: Any) -> None:
    """`bench` and its options."""
    command = commands.add_parser(
        "bench",
        help="measure how fast this machine plays",
        formatter_class=output.HelpFormatter,
        description="Plays frozen workloads, each in a process of its own on one core (but for those that say "
        "otherwise), sampling and exact regret included, and compares them with a plain NumPy loop and with a matrix "
        "product of the same shape, timed in turn within the same run. On a busy machine trust the ratios.",
    )
    command.add_argument("names", nargs="*", metavar="WORKLOAD", help="only these (default: the quick ones)")
    command.add_argument("--all", action="store_true", help="the long workloads too")
    command.add_argument("--repeats", type=int, default=3, metavar="N", help="best of so many (default: 3)")
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what is measured (default: cpu)")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the figures and the machine as JSON")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    from aggbandit._checks import require_integer, require_known
    from aggbandit.experiments.bench.measure import machine, measured_apart
    from aggbandit.experiments.bench.workloads import WORKLOADS

    require_integer("--repeats", arguments.repeats, low=1)
    if arguments.device == "cuda":
        return _on_gpu(arguments)
    for name in arguments.names:
        require_known("workload", name, (workload.name for workload in WORKLOADS))
    chosen = arguments.names or [workload.name for workload in WORKLOADS if workload.quick or arguments.all]
    about = machine()
    print(numbers.simple(f"{about['processor']}, {about['cores']} cores, NumPy {about['numpy']}, {about['system']}"))
    found: list[Measurement] = []
    for measurement in measured_apart(chosen, arguments.repeats):
        found.append(measurement)
        print(f"{measurement.name}: {measurement.episodes_per_second:,.0f} episodes/s", file=sys.stderr, flush=True)
    table = output.table("workload", "episodes/s", "× NumPy loop", "GFLOP/s", "of a product's", "peak MiB")
    for one in found:
        output.add_row(
            table,
            one.name,
            f"{one.episodes_per_second:,.0f}",
            _shown(one.ratio_to_numpy, "{:.0f}"),
            _shown(one.gflops, "{:.1f}"),
            _shown(None if one.share_of_product is None else 100 * one.share_of_product, "{:.0f} %"),
            _shown(one.peak_mib, "{:.0f}"),
        )
    output.print_table(table)
    _keep(arguments.out, about, found)
    if arguments.out is not None:
        print(arguments.out)
    return 0


def _on_gpu(arguments: argparse.Namespace) -> int:
    """The same on a GPU."""
    from aggbandit._checks import require_known
    from aggbandit.experiments.bench import gpu
    from aggbandit.experiments.bench.measure import machine
    from aggbandit.simulation.engines.places import Places

    for name in arguments.names:
        require_known("workload", name, (workload.name for workload in gpu.WORKLOADS))
    Places.parse("cuda", "float64")  # raises where there is none
    about = {**machine(), **gpu.card()}
    print(
        f"{about['gpu']}, matrix product {about['product_float64_tflops']} TFLOP/s in float64 and "
        f"{about['product_float32_tflops']} in float32, memory {about['copy_tb_per_second']} TB/s"
    )
    # plain lines, the figures kept after each: a card is often lent for minutes, on a machine with little installed
    print(
        f"{'workload':26} {'replicas':>9} {'K':>8} {'M episodes/s':>12} {'TFLOP/s':>8} {'of a product':>12}", flush=True
    )
    found = []
    for one in gpu.measured(arguments.names or [workload.name for workload in gpu.WORKLOADS], arguments.repeats):
        found.append(one)
        share = None if one.share_of_product is None else 100 * one.share_of_product
        line = (
            f"{one.name:26} {numbers.grouped(one.replicas):>9} {numbers.grouped(one.episodes):>8} "
            f"{one.episodes_per_second / 1e6:12,.1f} {_shown(one.tflops, '{:.1f}'):>8} {_shown(share, '{:.0f} %'):>12}"
        )
        print(numbers.simple(line), flush=True)
        _keep(arguments.out, about, found)
    if arguments.out is not None:
        print(arguments.out)
    return 0


def _keep(path: Path | None, about: dict[str, Any], found: Sequence[Any]) -> None:
    """The figures and the machine as JSON, where wanted."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"machine": about, "workloads": [asdict(one) for one in found]}
    _files.write_atomically(path, (json.dumps(record, indent=2, allow_nan=True) + "\n").encode())


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None or value != value else form.format(value)
