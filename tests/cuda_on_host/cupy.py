"""As much of CuPy as the package calls, over the CPU: kernels go through `device.library`.

`put_in_place()` makes `import cupy` find it, so that `CudaDevice` itself is tested where there is no GPU.
"""

import ctypes
import sys
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np

from cuda_on_host.device import library

GPUS = 1
MEMORY = 2**33
OPT_IN = 48 * 1024  # more shared memory than that must be asked for
__version__ = "14.2.0"


class OutOfMemoryError(MemoryError):
    """CuPy's own."""


class Buffer(np.ndarray):
    """An array that knows where it lies."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def set(self, array):
        assert array.dtype == self.dtype
        assert array.shape == self.shape
        self[...] = array


def _require_room(shape, dtype):
    wanted = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if wanted > MEMORY:
        raise OutOfMemoryError(f"Out of memory allocating {wanted} bytes")


def zeros(shape, dtype):
    _require_room(shape, dtype)
    return np.zeros(shape, dtype).view(Buffer)


def full(shape, value, dtype):
    _require_room(shape, dtype)
    return np.full(shape, value, dtype).view(Buffer)


def empty(shape, dtype):
    return zeros(shape, dtype)


def ones(shape, dtype):
    return full(shape, 1, dtype)


def asarray(array):
    _require_room(array.shape, array.dtype)
    return np.array(array, order="C").view(Buffer)


def asnumpy(buffer, stream=None):
    return np.array(buffer)


def matmul(left, right, out):
    return np.matmul(left, right, out=out)


def copyto(target, source):
    target[...] = source


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0)


class Function:
    """A compiled kernel."""

    def __init__(self, code, name):
        self._launch = getattr(ctypes.CDLL(str(library(code, name))), f"launch_{name}")
        self.max_dynamic_shared_size_bytes = None

    def __call__(self, grid, block, arguments, shared_mem):
        assert shared_mem <= (self.max_dynamic_shared_size_bytes or OPT_IN), "more shared memory than was asked for"
        (where,) = arguments
        self._launch(ctypes.c_void_p(where.data.ptr), *grid, *block, shared_mem)


class RawModule:
    """Compiled at once, under the same flags as the tests compile kernels."""

    def __init__(self, code, options):
        assert "--fmad=false" in options
        self._code = code

    def get_function(self, name):
        return Function(self._code, name)


class Stream:
    """Everything is done at once."""

    def __init__(self, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *about):
        pass

    def synchronize(self):
        pass


class Gpu:
    """A GPU by its number."""

    attributes = {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 227 * 1024}

    def __init__(self, index):
        assert 0 <= index < GPUS
        self._context = nullcontext()

    def __enter__(self):
        return self

    def __exit__(self, *about):
        pass


class CUDARuntimeError(RuntimeError):
    """CuPy's own."""


cuda = SimpleNamespace(
    Device=Gpu,
    Stream=Stream,
    get_current_stream=Stream,
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: GPUS,
        getDeviceProperties=lambda index: {
            "name": b"a GPU played on the CPU", "multiProcessorCount": 2, "totalGlobalMem": MEMORY
        },
        memGetInfo=lambda: (MEMORY, MEMORY),
        runtimeGetVersion=lambda: 13000,
    ),
)  # fmt: skip
random = SimpleNamespace(random=lambda shape: np.random.default_rng(0).random(shape))


@contextmanager
def put_in_place():
    """`import cupy` finds this module."""
    before = sys.modules.get("cupy")
    sys.modules["cupy"] = sys.modules[__name__]
    assert isinstance(sys.modules["cupy"], ModuleType)
    try:
        yield
    finally:
        if before is None:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = before
