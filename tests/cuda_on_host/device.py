"""A `Device` whose kernels are the CUDA sources compiled for the CPU, with threads and barriers by `host.hpp`."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from aggbandit.kernels.cuda.sources import source
from aggbandit.simulation.engines.cuda.device import Device, Kernel

HERE = Path(__file__).resolve().parent
COMPILER = shutil.which("g++") or shutil.which("c++")
REQUIRED = "AGGBANDIT_COMPILER_REQUIRED"  # set by .ci/run: a test that would be skipped fails instead

needs_compiler = pytest.mark.skipif(
    COMPILER is None and not os.environ.get(REQUIRED),
    reason="no C++ compiler on PATH to play CUDA kernels on the CPU (Debian: apt-get install g++)",
)


class HostDevice(Device):
    name = "a GPU played on the CPU"
    multiprocessors = 2
    shared_bytes = 227 * 1024

    def upload(self, array):
        return np.array(array, order="C")

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def filled(self, shape, value, dtype):
        return np.full(shape, value, dtype)

    def write(self, buffer, array):
        buffer[...] = np.asarray(array).reshape(buffer.shape)

    def download(self, buffer):
        return buffer.copy()

    def address(self, buffer):
        return buffer.ctypes.data

    def kernel(self, file, name, constants):
        return HostKernel(library(source(file, constants), name), name)

    def free_bytes(self):
        return 2**33

    def synchronize(self):
        pass


class HostKernel(Kernel):
    def __init__(self, path, name):
        self._launch = getattr(ctypes.CDLL(str(path)), f"launch_{name}")

    def __call__(self, grid, block, arguments, shared_bytes=0):
        self._launch(ctypes.c_void_p(arguments.ctypes.data), grid, block, shared_bytes)


def library(text, name):
    """The shared library of one kernel, compiled once for each text."""
    whole = f"{(HERE / 'host.hpp').read_text()}\n{text}\nHOST_LAUNCHER({name})\n"
    folder = Path(tempfile.gettempdir()) / f"aggbandit-cuda-on-host-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{hashlib.sha256(whole.encode()).hexdigest()[:24]}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "made.so"
            # no contraction: as on the GPU, only what is written as fused is fused
            command = [
                COMPILER,
                "-O1",
                "-march=native",
                "-ffp-contract=off",
                "-Wno-unknown-pragmas",
                "-std=c++17",
                "-fPIC",
                "-shared",
                "-Wl,-Bsymbolic",
            ]
            subprocess.run([*command, "-x", "c++", "-", "-o", str(made)], input=whole.encode(), check=True)
            made.replace(path)
    return path
