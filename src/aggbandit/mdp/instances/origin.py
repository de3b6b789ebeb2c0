"""How an MDP remembers the instance it was made from."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from aggbandit.mdp.tabular import TabularMDP, with_origin

P = ParamSpec("P")


def instance(name: str) -> Callable[[Callable[P, TabularMDP]], Callable[P, TabularMDP]]:
    """Decorator: what the factory returns has `origin` = (name, the arguments of this call with the defaults)."""

    def decorate(factory: Callable[P, TabularMDP]) -> Callable[P, TabularMDP]:
        signature = inspect.signature(factory)

        @wraps(factory)
        def made(*args: P.args, **kwargs: P.kwargs) -> TabularMDP:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return with_origin(factory(*args, **kwargs), name, bound.arguments)

        return made

    return decorate
