"""Calling a named factory with arguments that somebody typed: what does not fit is told by name."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec

from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP, with_origin

P = ParamSpec("P")


def instance(name: str) -> Callable[[Callable[P, TabularMDP]], Callable[P, TabularMDP]]:
    """Decorator: what the factory returns remembers that it is the instance `name`, made with these arguments."""

    def decorate(factory: Callable[P, TabularMDP]) -> Callable[P, TabularMDP]:
        signature = inspect.signature(factory)

        @wraps(factory)
        def made(*args: P.args, **kwargs: P.kwargs) -> TabularMDP:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return with_origin(factory(*args, **kwargs), name, bound.arguments)

        return made

    return decorate


def call(kind: str, name: str, factory: Callable[..., Any], arguments: Mapping[str, Any], *given: Any) -> Any:
    """`factory(*given, **arguments)` once every argument is one that it takes and none that it needs is missing."""
    takes = {
        parameter.name: parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    listed = ", ".join(
        parameter.name if parameter.default is inspect.Parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in takes.values()
    )
    way_out = f" It takes: {listed}." if takes else " It takes none."
    for argument in arguments:
        if argument not in takes:
            near = get_close_matches(argument, takes, n=1, cutoff=0.4)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidInputError(f"{kind} {name!r} has no argument {argument!r}.{hint}{way_out}")
    for parameter in takes.values():
        if parameter.default is inspect.Parameter.empty and parameter.name not in arguments:
            raise InvalidInputError(f"{kind} {name!r} needs the argument {parameter.name!r}.{way_out}")
    return factory(*given, **arguments)
