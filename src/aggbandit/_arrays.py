"""Array aliases, so that signatures say what an array holds."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
AnyArray: TypeAlias = npt.NDArray[Any]


def frozen(array: AnyArray) -> AnyArray:
    """The same data behind a view that refuses writes; the caller's own array keeps its flags."""
    view = array.view()
    view.flags.writeable = False
    return view
