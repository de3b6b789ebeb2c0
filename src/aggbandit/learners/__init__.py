"""Learners by id: `names()`, `get(id)` for the class, `make(id, **arguments)` for a configured one.

A learner of one's own needs no registration: wherever an id is taken, `"module:Class"` or an instance is too.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from aggbandit._checks import require_arguments
from aggbandit._registry import resolve
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Needs
from aggbandit.learners.registry import TABLE

__all__ = ["as_learner", "get", "make", "names"]


def names() -> list[str]:
    """The ids of all learners that come with the package."""
    return sorted(TABLE)


def get(name: str) -> type[Learner[Any]]:
    """The class behind an id or behind `"module:Class"`."""
    if ":" in str(name):
        return _own(name)
    found: type[Learner[Any]] = resolve("learner", name, TABLE)
    return found


def make(name: str, **arguments: Any) -> Learner[Any]:
    """A configured learner."""
    found = get(name)
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise InvalidInputError(
            f"learner {name!r} cannot be made: its class does not define {', '.join(missing)}. "
            "A learner has needs, init, policy and update; aggbandit.Learner says what each is."
        )
    require_arguments("learner", name, found, arguments)
    return found(**arguments)


def as_learner(learner: Any) -> Learner[Any]:
    """`learner` itself if it is one, else the one that this id names, with its default arguments."""
    if isinstance(learner, Learner):
        return _checked(learner)
    if isinstance(learner, str):
        return _checked(make(learner))
    if isinstance(learner, type) and issubclass(learner, Learner):
        raise InvalidInputError(
            f"learner must be an instance, but is the class {learner.__name__}; call it: {learner.__name__}()."
        )
    raise InvalidInputError(f"learner must be an id or an aggbandit.Learner, but is {type(learner).__name__}.")


def _checked(learner: Learner[Any]) -> Learner[Any]:
    if not isinstance(learner.needs, Needs):
        raise InvalidInputError(
            f"needs of {learner.name} must be an aggbandit.Needs, but is {learner.needs!r}. Write, for instance, "
            'needs = ab.Needs(feedback="aggregate", dynamics="unknown").'
        )
    return learner


def require_told(learner: Learner[Any]) -> None:
    """Its arguments are its fields, where whatever saves it looks for them."""
    makes = next(cls for cls in type(learner).__mro__ if "__init__" in vars(cls))
    written = vars(makes).get("__dataclass_params__")  # its own, not one that it inherits
    if makes is not object and not (written and written.frozen):
        raise InvalidInputError(
            f"{learner.name} must be a frozen dataclass for its arguments to be saved and told, but "
            f"{makes.__name__} has {'changeable fields' if written else 'an __init__ of its own'}. Put "
            "@dataclass(frozen=True, kw_only=True) above the class, and declare each argument as a field of it."
        )


def _own(path: str) -> type[Learner[Any]]:
    module, _, attribute = path.partition(":")
    if module in TABLE:
        raise InvalidInputError(
            f"learner {path!r}: {module!r} takes arguments as {module}:argument=value,... on the command line, and as "
            f"aggbandit.learners.make({module!r}, argument=value) in Python."
        )
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InvalidInputError(f"learner {path!r} is no module:Class, such as mine.learners:Greedy.")
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        here = str(Path.cwd())
        if here in sys.path:
            raise InvalidInputError(f"learner {path!r}: there is no module {module!r}.") from None
        sys.path.insert(0, here)  # a script's own folder is importable; a command line's is made so
        try:
            loaded = import_module(module)
        except ModuleNotFoundError:
            raise InvalidInputError(
                f"learner {path!r}: there is no module {module!r}, neither installed nor in the current folder."
            ) from None
        finally:
            sys.path.remove(here)
    found = getattr(loaded, attribute, None)
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise InvalidInputError(f"learner {path!r}: {attribute!r} in module {module!r} is no aggbandit.Learner class.")
    return found
