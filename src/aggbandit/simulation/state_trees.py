"""Which NamedTuple classes a saved state may name: those that the learner's own modules know, and this package's."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from aggbandit._files import class_name
from aggbandit.errors import DamagedFileError
from aggbandit.learners.base import Learner, inner_of


def classes_of(learner: Learner[Any]) -> Callable[[str], type]:
    """A resolver of "module:qualname" that imports nothing outside the package.

    The learner's own modules are those of its class, of the classes that it derives from, and of the learner that it
    wraps; they know what they define and what they import.
    """
    classes: list[type] = []
    within: Learner[Any] | None = learner
    while within is not None:
        classes += type(within).__mro__
        within = inner_of(within)
    own = {cls.__module__: sys.modules[cls.__module__] for cls in classes if cls.__module__ in sys.modules}
    imported = {
        class_name(each): each for module in own.values() for each in vars(module).values() if isinstance(each, type)
    }

    def find(path: str) -> type:
        module, _, qualname = path.partition(":")
        loaded: Any = imported.get(path)
        if loaded is None:
            if module in own:
                loaded = own[module]
            elif module == "aggbandit" or module.startswith("aggbandit."):
                loaded = import_module(module)
            else:
                raise DamagedFileError(
                    f"The saved state names {path}, which neither aggbandit nor a module of "
                    f"{type(learner).__name__} knows: define or import it where the learner is defined."
                )
            for part in qualname.split("."):
                loaded = getattr(loaded, part, None)
        if not (isinstance(loaded, type) and issubclass(loaded, tuple) and hasattr(loaded, "_fields")):
            raise DamagedFileError(f"The saved state names {path}, which is no NamedTuple here.")
        return loaded

    return find
