"""A GPU as the engines see it: memory, and kernels compiled for given sizes.

CuPy is imported here and nowhere else, when a GPU is asked for.  The tests put another `Device` in its place, which
compiles the same kernels for the CPU.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from aggbandit._arrays import AnyArray
from aggbandit.errors import InvalidInputError, MissingExtraError

WARP = 32
FREELY_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking
OPTIONS = ("--std=c++17", "--fmad=false")  # no contraction: what is fused is written as fused, as on the CPU


class Kernel(ABC):
    """A compiled kernel: called with the grid, the threads of a block, its arguments and its shared memory."""

    @abstractmethod
    def __call__(self, grid: int, block: int, arguments: Any, shared_bytes: int = 0) -> None:
        """Ask for a launch; `arguments` are `Device.prepared`."""


class Device(ABC):
    """What an engine needs of a GPU; whoever shares one plays one after the other."""

    name: str  # as its maker calls it
    multiprocessors: int
    shared_bytes: int  # most that a block may ask for

    @abstractmethod
    def upload(self, array: AnyArray) -> Any:
        """The array on the device."""

    @abstractmethod
    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array on the device."""

    @abstractmethod
    def filled(self, shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> Any:
        """A new array on the device, the same number everywhere."""

    @abstractmethod
    def write(self, buffer: Any, array: AnyArray) -> None:
        """Overwrite what is on the device."""

    @abstractmethod
    def download(self, buffer: Any) -> AnyArray:
        """A copy of what is on the device, after all that was asked of it."""

    @abstractmethod
    def address(self, buffer: Any) -> int:
        """Where a buffer lies on the device."""

    @abstractmethod
    def kernel(self, file: str, name: str, constants: Mapping[str, int | str]) -> Kernel:
        """The kernel `name` of kernels/cuda/`file`.cu for these sizes."""

    @abstractmethod
    def free_bytes(self) -> int:
        """How much memory may still be asked for."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all that was asked is done."""

    def prepared(self, arguments: bytes) -> Any:
        """Packed arguments where kernels read them."""
        return self.upload(np.frombuffer(arguments, np.uint8))

    def packed(self, *values: Any) -> bytes:
        """A kernel's `Arguments`: whole numbers, floating-point numbers and buffers, eight bytes each, in order."""
        parts = []
        for value in values:
            if isinstance(value, (float, np.floating)):
                parts.append(struct.pack("<d", value))
            elif isinstance(value, (int, np.integer)):
                parts.append(struct.pack("<Q", int(value) % 2**64))
            else:
                parts.append(struct.pack("<Q", 0 if value is None else self.address(value)))
        return b"".join(parts)


class CudaDevice(Device):
    """A GPU through CuPy, with a stream of its own: engines on one GPU do not wait for one another."""

    def __init__(self, index: int) -> None:
        self._cupy = cupy()
        self._index = index
        with self._cupy.cuda.Device(index):
            self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self.name = self._cupy.cuda.runtime.getDeviceProperties(index)["name"].decode()
        attributes = self._cupy.cuda.Device(index).attributes
        self.multiprocessors = int(attributes["MultiProcessorCount"])
        self.shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"])

    @contextmanager
    def _here(self) -> Iterator[None]:
        """What is asked of CuPy within is asked of this GPU and this stream."""
        try:
            with self._cupy.cuda.Device(self._index), self._stream:
                yield
        except MemoryError as error:  # CuPy's own is one
            raise InvalidInputError(
                f"the memory of GPU {self._index} is full ({' '.join(str(error).split())}). Play fewer replicas at a "
                "time, a smaller instance, or less beside it on this GPU."
            ) from error

    def upload(self, array: AnyArray) -> Any:
        with self._here():
            buffer = self._cupy.asarray(array)
            self._stream.synchronize()  # the caller may change its array
        return buffer

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        with self._here():
            return self._cupy.zeros(shape, dtype)

    def filled(self, shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> Any:
        with self._here():
            return self._cupy.full(shape, value, dtype)

    def write(self, buffer: Any, array: AnyArray) -> None:
        with self._here():
            buffer.set(np.ascontiguousarray(array, dtype=buffer.dtype).reshape(buffer.shape))
            self._stream.synchronize()

    def download(self, buffer: Any) -> AnyArray:
        with self._here():
            array: AnyArray = self._cupy.asnumpy(buffer, stream=self._stream)
            self._stream.synchronize()
        return array

    def address(self, buffer: Any) -> int:
        return int(buffer.data.ptr)

    def kernel(self, file: str, name: str, constants: Mapping[str, int | str]) -> Kernel:
        return _CudaKernel(self, _compiled(self._index, file, name, tuple(constants.items())))

    def free_bytes(self) -> int:
        with self._cupy.cuda.Device(self._index):
            free, _ = self._cupy.cuda.runtime.memGetInfo()
            return int(free) + int(self._cupy.get_default_memory_pool().free_bytes())

    def synchronize(self) -> None:
        self._stream.synchronize()

    def launch(self, function: Any, grid: int, block: int, arguments: Any, shared_bytes: int) -> None:
        with self._here():
            if shared_bytes > FREELY_SHARED:
                function.max_dynamic_shared_size_bytes = shared_bytes
            function((grid,), (block,), (arguments,), shared_mem=shared_bytes)


class _CudaKernel(Kernel):
    def __init__(self, device: CudaDevice, function: Any) -> None:
        self._device = device
        self.function = function

    def __call__(self, grid: int, block: int, arguments: Any, shared_bytes: int = 0) -> None:
        self._device.launch(self.function, grid, block, arguments, shared_bytes)


@lru_cache(maxsize=256)
def _compiled(index: int, file: str, name: str, constants: tuple[tuple[str, int | str], ...]) -> Any:
    from aggbandit.kernels.cuda.sources import source

    with cupy().cuda.Device(index):
        module = cupy().RawModule(code=source(file, dict(constants)), options=OPTIONS)
        return module.get_function(name)


def cupy() -> Any:
    """The CuPy module, or an error that names the extra."""
    try:
        import cupy as module
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "device='cuda' needs CuPy, which is not installed here. Install it with: pip install aggbandit[cuda]"
        ) from error
    except ImportError as error:  # it is there, but a library that it wants is not, or not in that version
        raise MissingExtraError(
            f"device='cuda' needs CuPy, which cannot be loaded here ({' '.join(str(error).split())}). Install it anew "
            "with: pip install --force-reinstall aggbandit[cuda]"
        ) from error
    return module


def open_devices(indices: list[int]) -> list[Device]:
    """A `Device` for each; two shares on one GPU get a stream each."""
    module = cupy()
    try:
        count = int(module.cuda.runtime.getDeviceCount())
    except module.cuda.runtime.CUDARuntimeError as error:
        raise InvalidInputError(
            f"device='cuda' needs an NVIDIA GPU, and none was found ({error}). Leave the argument out to play on the "
            "CPU."
        ) from error
    beyond = [index for index in indices if index >= count]
    if beyond or count == 0:
        raise InvalidInputError(
            f"device names GPU {beyond[0] if beyond else 0}, but this machine has {count}, counted from 0."
        )
    return [CudaDevice(index) for index in indices]
