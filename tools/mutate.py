"""Break the code on purpose, one line at a time; some test must notice each.  `python -m tools.mutate [PART OF A NAME]`

Each mutation is a replacement in one file that must occur there exactly once.  It is applied to a copy of the tree, and
the tests named beside it are run there.  Red is what we want; a mutation that stays green is a hole in the tests.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools import learner_mutations

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "tools", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", ".ci")


@dataclass(frozen=True)
class Mutation:
    """One replacement, and the tests that should notice it."""

    file: str  # below src/aggbandit
    old: str
    new: str
    tests: str  # files or folders below tests/, separated by blanks

    @property
    def name(self) -> str:
        """What a person reads: the file and the change."""
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r}"


PHILOX = "kernels/test_philox.py"
FILES = "test_files.py"
CHECKS = "test_checks.py"
STEPS = "learners/parts/test_step_sizes.py"
VALUES = "kernels/test_value_kernels.py"
BOUNDS = "kernels/test_occupancy_bounds_kernels.py"
KNOWN = "learners/test_po_known.py"
UNKNOWN = "learners/test_po_unknown.py"
SWEEP = "kernels/test_po_unknown_kernels.py kernels/test_eights_kernels.py"
ENGINE = "simulation/test_engine_po_unknown.py"
SETS = "learners/parts/test_confidence_sets.py learners/parts/test_transition_counts.py"

MUTATIONS = [
    # random numbers
    Mutation("kernels/philox.py", "for _ in range(10):", "for _ in range(9):", PHILOX),
    Mutation("kernels/philox.py", "k1 = uint32(uint64(seed) >> uint64(32))", "k1 = uint32(0)", PHILOX),
    Mutation("kernels/philox.py", "(uint64(low) >> uint64(11))", "(uint64(low) >> uint64(12))", PHILOX),
    Mutation("kernels/philox.py", "return unit(x0, x1), unit(x2, x3)", "return unit(x0, x1), unit(x1, x3)", PHILOX),
    Mutation("kernels/philox.py", "first_step + i, stream, seed)\n", "first_step, stream, seed)\n", PHILOX),
    # files
    Mutation("_files.py", "            os.fsync(file.fileno())\n", "", FILES),
    Mutation("_files.py", "os.replace(temporary, target)", "target.write_bytes(data)", FILES),
    Mutation("_files.py", "        os.fsync(handle)\n", "        pass\n", FILES),
    Mutation("_files.py", "digest(said.encode() + payload)", "digest(payload)", FILES),
    Mutation("_files.py", "    if len(payload) > length:", "    if False:", FILES),
    Mutation("_files.py", "if found_version != version:", "if found_version > version:", FILES),
    Mutation("_files.py", 'struct.pack(">d", node).hex()', 'struct.pack(">d", float(repr(node))).hex()', FILES),
    Mutation("_files.py", "        if buffers.read(1):", "        if False:", FILES),
    Mutation("_files.py", "!= fields:\n", "!= fields and False:\n", FILES),
    # checks of input
    Mutation("_checks.py", "number <= low if low_open", "number < low if low_open", CHECKS),
    Mutation("_checks.py", "if not np.isfinite(number) or too_low", "if too_low", CHECKS),
    Mutation(
        "_checks.py", "inside = (array >= low) & (array <= high)", "inside = ~((array < low) | (array > high))", CHECKS
    ),
    Mutation(
        "_checks.py", "off = ~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE)", "off = np.abs(sums - 1.0) > 1e-6", CHECKS
    ),
    # step sizes
    Mutation(
        "learners/parts/step_sizes.py", "log(H * S * A * K / confidence)", "log(H * S * A * K) / confidence", STEPS
    ),
    Mutation("learners/parts/step_sizes.py", "+ H * H * sqrt(K))", "+ H * sqrt(K))", STEPS),
    Mutation("learners/parts/step_sizes.py", "max(4.0 * H * H, greatest_bonus)", "(4.0 * H * H)", STEPS),
    Mutation("learners/parts/step_sizes.py", "return 2.0 * step * H if", "return step * H if", STEPS),
    # planning
    Mutation(
        "kernels/occupancy_bounds.py",
        "sign * value_s[order_s[j - 1]] < sign * value_s[s]",
        "value_s[order_s[j - 1]] < value_s[s]",
        BOUNDS,
    ),
    Mutation("kernels/occupancy_bounds.py", "        if room >= rest:\n", "        if room > 2.0:\n", BOUNDS),
    # confidence sets
    Mutation("learners/parts/confidence_sets.py", "log(10.0 * H", "log(6.0 * H", SETS),
    Mutation("learners/parts/confidence_sets.py", "+ 10.0 * ratio", "+ 5.0 * ratio", SETS),
    Mutation("learners/parts/confidence_sets.py", "np.where(unseen, 1.0, ", "np.where(unseen, mean + radius, ", SETS),
    Mutation("learners/parts/transition_counts.py", "states[1:]] += 1.0", "states[:-1]] += 1.0", SETS),
    # Algorithm 2
    Mutation("kernels/po_unknown.py", "if n > 0.0:", "if n > 1.0:", SETS),
    Mutation("kernels/po_unknown.py", "fma(width, x, spread(3.0 * exploration))", "spread(3.0 * exploration)", UNKNOWN),
    Mutation("kernels/po_unknown.py", "/ fma(most, x, spread(exploration))", "/ (most + spread(exploration))", UNKNOWN),
    Mutation("kernels/po_unknown.py", "total / (chance + exploration)", "total / exploration", UNKNOWN),
    Mutation(
        "kernels/po_unknown.py",
        "    for h in range(p.H - 1):\n        s, a",
        "    for h in range(p.H - 2):\n        s, a",
        UNKNOWN,
    ),
    Mutation("kernels/po_unknown.py", "x = fma(spread(step), load", "x = fma(spread(-step), load", UNKNOWN),
    Mutation("kernels/po_unknown.py", "filled < rest - ROUNDING:", "filled < 0.9 * rest:", SWEEP),
    Mutation("kernels/po_unknown.py", "numbers[p.boxes + h] += is_box - was_box", "numbers[p.boxes + h] += 0", SWEEP),
    Mutation("kernels/po_unknown.py", "+= is_raised - was_raised", "+= 0", SWEEP),
    Mutation("kernels/po_unknown.py", "store(scratch, key + 8 * t, spread(-1.0e300))", "pass", SWEEP),
    Mutation("kernels/po_unknown.py", "tag(x, p.mask, t)", "tag(x, p.mask // 2, t)", SWEEP),
    Mutation("kernels/po_unknown.py", "if least == 1 and greatest_of(zero - lowest) == 0.0:", "if least == 1:", SWEEP),
    Mutation("kernels/po_unknown.py", "                count += width\n", "                count += 8\n", SWEEP),
    Mutation("kernels/po_unknown.py", "1.0 if S == 1 else 0.0", "0.0", SWEEP),
    Mutation("kernels/po_unknown.py", "value += initial_s[live[j]] *", "value += initial_s[j] *", SWEEP),
    Mutation("kernels/eights.py", "(3, 6), (1, 2), (3, 4)", "(3, 6), (3, 4)", SWEEP),
    Mutation("kernels/eights.py", "rows[j] = builder.select(above, y, x)", "rows[j] = y", SWEEP),
    Mutation("kernels/po_unknown.py", "numbers[p.depth_b + block // 8] = depth", "pass", SWEEP),
    Mutation(
        "kernels/po_unknown.py",
        "if 10.0 * log_term * radius_scale < n:",
        "if 20.0 * log_term * radius_scale < n:",
        UNKNOWN,
    ),
    Mutation("kernels/po_unknown.py", "            if u < total:\n", "            if u <= total:\n", SWEEP),
    Mutation("kernels/po_unknown.py", "        if row != held:", "        if held < 0:", ENGINE),
    # Algorithm 1
    Mutation("kernels/po_known.py", "out_value_s[s] = bonus * ratios + mean", "out_value_s[s] = bonus * ratios", KNOWN),
    Mutation("kernels/po_known.py", "estimate = step_size * (total / reached)", "estimate = step_size * total", KNOWN),
    Mutation("kernels/po_known.py", "            product *= factor\n", "            product /= factor\n", KNOWN),
    Mutation(
        "kernels/po_known.py", "log_policy_a[a] if policy_a[a] < TINY", "log_policy_a[a] if policy_a[a] < 0.0", KNOWN
    ),
    # the others
    *(
        Mutation(file, old, new, tests)
        for (file, tests), changes in learner_mutations.MUTATIONS.items()
        for old, new in changes
    ),
]


def applied(text: str, mutation: Mutation) -> str:
    """The source with the mutation in it."""
    count = text.count(mutation.old)
    if count != 1:
        raise ValueError(f"the text occurs {count} times, but must occur once; mend tools/mutate.py")
    return text.replace(mutation.old, mutation.new)


def copy_tree(target: Path) -> None:
    """What tests need, without caches."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
        else:
            shutil.copy(source, target / name)


def run_tests(tree: Path, tests: str) -> tuple[int, str]:
    """pytest's exit code (0 green, 1 red) and output for these tests, run on the code in `tree`."""
    environment = dict(os.environ)
    # before the installed package's path; every tree compiles for itself
    environment["PYTHONPATH"] = str(tree / "src")
    environment["NUMBA_CACHE_DIR"] = str(tree / "compiled")
    places = [str(tree / "tests" / place) for place in tests.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *places]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def verdict(mutation: Mutation | None, tests: str) -> str:
    """What became of one mutation: "noticed", "SURVIVED", or why that cannot be said; None checks the tests alone."""
    changed = ""
    if mutation is not None:
        try:
            changed = applied((ROOT / "src" / "aggbandit" / mutation.file).read_text(encoding="utf-8"), mutation)
        except ValueError as error:
            return f"does not fit: {error}"
    with tempfile.TemporaryDirectory(prefix="aggbandit-mutant-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        if mutation is not None:
            (tree / "src" / "aggbandit" / mutation.file).write_text(changed, encoding="utf-8")
        code, output = run_tests(tree, tests)
    tail = "\n".join(output.splitlines()[-15:])
    if mutation is None:
        return "green" if code == 0 else f"not green without any mutation:\n{tail}"
    if code == 1:
        return "noticed"
    return "SURVIVED" if code == 0 else f"pytest could not judge it (exit code {code}):\n{tail}"


def judge(mutations: Sequence[Mutation], workers: int) -> list[str]:
    """The mutations that no test noticed, with the reason; first the tests must be green without any."""
    with ThreadPoolExecutor(workers) as pool:
        suites = sorted({mutation.tests for mutation in mutations})
        for tests, found in zip(suites, pool.map(lambda tests: verdict(None, tests), suites), strict=True):
            if found != "green":
                raise SystemExit(f"{tests}: {found}")
        holes = []
        for mutation, found in zip(mutations, pool.map(lambda m: verdict(m, m.tests), mutations), strict=True):
            print(f"{found:9} {mutation.name}", flush=True)
            if found != "noticed":
                holes.append(f"{mutation.name} ({mutation.tests}): {found}")
    return holes


def main() -> None:
    part = " ".join(sys.argv[1:])
    mutations = [mutation for mutation in MUTATIONS if part in mutation.name]
    if not mutations:
        raise SystemExit(f"No mutation's name contains {part!r}.")
    holes = judge(mutations, os.cpu_count() or 1)
    print(f"{len(mutations) - len(holes)} of {len(mutations)} mutations were noticed.")
    if holes:
        print(*holes, sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
