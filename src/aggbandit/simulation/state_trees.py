"""Which NamedTuple classes a saved state may name: those of the learner's own module and of this package."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from aggbandit.errors import DamagedFileError
from aggbandit.learners.base import Learner


def classes_of(learner: Learner[Any]) -> Callable[[str], type]:
    """A resolver of "module:qualname" that imports nothing outside the package and the learner's own module."""
    own = type(learner).__module__

    def find(path: str) -> type:
        module, _, qualname = path.partition(":")
        if module == own and module in sys.modules:
            loaded: Any = sys.modules[module]
        elif module == "aggbandit" or module.startswith("aggbandit."):
            loaded = import_module(module)
        else:
            raise DamagedFileError(
                f"The saved state names {path}, which is neither {type(learner).__name__}'s own module nor aggbandit's."
            )
        for part in qualname.split("."):
            loaded = getattr(loaded, part, None)
        if not (isinstance(loaded, type) and issubclass(loaded, tuple) and hasattr(loaded, "_fields")):
            raise DamagedFileError(f"The saved state names {path}, which is no NamedTuple here.")
        return loaded

    return find
