"""Tables of names: an id stands for "module:attribute", imported only when asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from aggbandit._checks import require_known


def resolve(kind: str, name: str, table: Mapping[str, str]) -> Any:
    """The object that `name` stands for in `table`; an unknown name suggests the nearest."""
    require_known(kind, name, table)
    module, attribute = table[name].split(":")
    return getattr(import_module(module), attribute)
