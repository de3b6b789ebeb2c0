"""What all tests share: one thread a process, compiled code that is never stale, Hypothesis without chance or clock."""

import hashlib
import os
import re
import signal
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def compiled_code_folder() -> str:
    """Where compiled code is cached: a folder named after the kernel files that other kernel files import.

    Numba looks only at the file that holds a cached function, so an edit to a helper in another file would go
    unnoticed, and the tests would judge the code of yesterday.
    """
    kernels = ROOT / "src" / "aggbandit" / "kernels"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(kernels.rglob("*.py"))}
    imported = re.compile(r"^from aggbandit\.kernels(?:\.([\w.]+))? import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
    helpers = set()
    for source in sources.values():
        for module, several, one in imported.findall(source):
            helpers.update([module] if module else re.findall(r"\w+", several or one))
    digest = hashlib.sha256()
    for path, source in sources.items():
        if ".".join(path.relative_to(kernels).with_suffix("").parts) in helpers:
            digest.update(source.encode())
    return str(ROOT / "build" / "numba" / digest.hexdigest()[:16])


# A job in a shell's background begins with Ctrl-C ignored, and hands that on to what the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before NumPy and Numba are imported: xdist already runs one process a core.
for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("NUMBA_CACHE_DIR", compiled_code_folder())
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings  # noqa: E402

# derandomize: the same examples every time, so that a red test stays red until someone mends it.
# deadline=None: the first example of a kernel compiles it.
settings.register_profile(
    "aggbandit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("aggbandit")
