"""Where a run is played: on the CPU, or its replicas split over GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit.errors import InvalidInputError

if TYPE_CHECKING:
    from aggbandit.simulation.engines.cuda.device import Device

DTYPES: dict[str, np.dtype[Any]] = {"float64": np.dtype(np.float64), "float32": np.dtype(np.float32)}


@dataclass(frozen=True)
class Places:
    """GPUs, one for each share of the replicas, or none; and the number type of the policies."""

    gpus: tuple[Device, ...] = ()
    dtype: np.dtype[Any] = DTYPES["float64"]

    @classmethod
    def parse(cls, device: Any, dtype: Any) -> Places:
        """What the arguments `device` and `dtype` stand for; raises where this machine does not have it."""
        indices = gpus_of(device)
        number = require_dtype(dtype, bool(indices))
        if not indices:
            return CPU
        from aggbandit.simulation.engines.cuda.device import open_devices

        return cls(tuple(open_devices(indices)), number)

    @property
    def name(self) -> str:
        """For results: `cpu`, or `cuda` and the names of the GPUs."""
        return f"cuda ({', '.join(gpu.name for gpu in self.gpus)})" if self.gpus else "cpu"


CPU = Places()


def gpus_of(device: Any) -> list[int]:
    """The GPUs that a `device` argument names, one for each share of the replicas; none for the CPU."""
    if device == "cpu":
        return []
    found = re.fullmatch(r"cuda(?::(\d+(?:,\d+)*))?", device) if isinstance(device, str) else None
    if not found:
        raise InvalidInputError(
            "device must be 'cpu', 'cuda' (the first GPU), 'cuda:1' (the second), or a list such as 'cuda:0,1' over "
            f"which replicas are split, but is {device!r}."
        )
    return [int(index) for index in (found[1] or "0").split(",")]


def require_dtype(dtype: Any, on_gpu: bool) -> np.dtype[Any]:
    """The number type that is asked for, where it can be had."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidInputError(f"dtype must be 'float64' or 'float32', but is {dtype!r}.")
    if dtype != "float64" and not on_gpu:
        raise InvalidInputError(f"dtype={dtype!r} is for device='cuda'; on the CPU all is float64.")
    return DTYPES[dtype]
