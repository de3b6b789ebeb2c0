"""What all tests share: one thread a process, and Hypothesis without chance or clock."""

import os

# Before NumPy and Numba are imported: xdist already runs one process a core.
for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings  # noqa: E402

# derandomize: the same examples every time, so that a red test stays red until someone mends it.
# deadline=None: the first example of a kernel compiles it.
settings.register_profile(
    "aggbandit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("aggbandit")
