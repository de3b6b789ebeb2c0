"""Checks of users' inputs, used once at the public edge.

Every message gives the subject, the rule, the value received, the first place where it fails, and the way out.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit.errors import InvalidInputError, UnknownNameError

ROW_SUM_TOLERANCE = 1e-9


def place(name: str, index: Iterable[int]) -> str:
    """`name[i, j]` for the position of an entry, `name` itself for a scalar."""
    inner = ", ".join(str(int(i)) for i in index)
    return f"{name}[{inner}]" if inner else name


def require_integer(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """`value` as an int within [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Integral, np.integer)):
        raise InvalidInputError(f"{name} must be an integer, but is {value!r}.")
    number = int(value)
    if number < low or (high is not None and number > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InvalidInputError(f"{name} must be {rule}, but is {number}.")
    return number


def require_number(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """`value` as a finite float within the interval; `*_open` leaves the end out."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, np.floating, np.integer)):
        raise InvalidInputError(f"{name} must be a number, but is {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the greatest double
        number = float("inf")
    too_low = low is not None and (number <= low if low_open else number < low)
    too_high = high is not None and (number >= high if high_open else number > high)
    if not np.isfinite(number) or too_low or too_high:
        ends = [
            "" if low is None else f"{'greater than' if low_open else 'at least'} {low:g}",
            "" if high is None else f"{'less than' if high_open else 'at most'} {high:g}",
        ]
        rule = " and ".join(end for end in ends if end)
        raise InvalidInputError(f"{name} must be a finite number{', ' if rule else ''}{rule}, but is {value!r}.")
    return number


def require_flag(name: str, value: Any) -> bool:
    """`value` as a bool; texts such as "no" are not taken for True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name} must be True or False, but is {value!r}.")
    return bool(value)


def require_shape(name: str, array: AnyArray, shape: tuple[int, ...], axes: str) -> None:
    """`array` has exactly this shape; `axes` says what it means, for instance "(H, S, A)"."""
    if array.shape != shape:
        raise InvalidInputError(f"{name} must have shape {axes} = {shape}, but has {array.shape}.")


def as_array(name: str, values: Any) -> AnyArray:
    """`values` as an array of whatever dtype, not copied when it is one."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        first = np.argwhere(np.ma.getmaskarray(values))[0]
        raise InvalidInputError(f"{place(name, first)} is masked, but every entry must be there. Fill it in.")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInputError(
            f"{name} must be an array, but its rows differ in length. Pad them, or look for one that is cut short."
        ) from None


def as_numbers(name: str, values: Any) -> FloatArray:
    """`values` as a float64 array (not copied when it is one); text, complex numbers and objects are not converted."""
    array = as_array(name, values)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be an array of real numbers, but its dtype is {array.dtype}.")
    return array.astype(np.float64, copy=False)


def as_floats(name: str, values: Any) -> FloatArray:
    """The same, every entry finite."""
    array = as_numbers(name, values)
    require_finite(name, array)
    return array


def require_finite(name: str, array: FloatArray) -> None:
    """No entry is NaN or infinite."""
    finite = np.isfinite(array)
    if not finite.all():
        first = np.argwhere(~finite)[0] if array.ndim else ()
        raise InvalidInputError(f"{place(name, first)} is {array[tuple(first)]}, but every entry must be finite.")


def require_within(name: str, array: FloatArray, low: float, high: float, way_out: str = "") -> None:
    """Every entry lies in [low, high]; NaN does not."""
    inside = (array >= low) & (array <= high)
    if not inside.all():
        first = np.argwhere(~inside)[0] if array.ndim else ()
        raise InvalidInputError(
            f"{place(name, first)} is {float(array[tuple(first)])!r}, but every entry must lie in "
            f"[{low:g}, {high:g}].{' ' + way_out if way_out else ''}"
        )


def require_distributions(name: str, array: FloatArray) -> None:
    """Every row along the last axis is a probability distribution within 1e-9."""
    require_within(name, array, 0.0, float("inf"), "Probabilities cannot be negative.")
    sums = array.sum(axis=-1)
    off = ~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE)
    if off.any():
        first = np.argwhere(off)[0] if off.ndim else ()
        coarse = " In float64: single precision is too coarse." if abs(sums[tuple(first)] - 1.0) < 1e-5 else ""
        raise InvalidInputError(
            f"{place(name, first)} sums to {sums[tuple(first)]:.12g}, but every row must sum to 1 "
            f"within {ROW_SUM_TOLERANCE:g}. Divide by the row sums if that is meant.{coarse}"
        )


def require_known(kind: str, name: Any, known: Iterable[str]) -> str:
    """`name` is one of `known`; otherwise the error suggests the nearest."""
    names = sorted(set(known))
    if isinstance(name, str) and name in names:
        return name
    near = get_close_matches(name, names, n=1, cutoff=0.4) if isinstance(name, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownNameError(f"There is no {kind} {name!r}.{hint} Known: {', '.join(names)}.")


def keywords_of(made_by: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments that a class or a factory takes by name.

    A factory's positional ones are handed over by us; a class, which may be a user's, can leave out `kw_only`.
    """
    found = inspect.signature(made_by).parameters
    by_place = isinstance(made_by, type)
    return {
        name: one
        for name, one in found.items()
        if one.kind is one.KEYWORD_ONLY or (by_place and one.kind is one.POSITIONAL_OR_KEYWORD)
    }


def require_arguments(kind: str, name: str, made_by: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """`arguments` are keywords that `made_by` takes, and none that it needs is missing."""
    parameters = keywords_of(made_by)
    for key in arguments:
        if key not in parameters:
            near = get_close_matches(key, parameters, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            takes = f"It takes: {', '.join(parameters)}." if parameters else "It takes none."
            raise InvalidInputError(f"{kind} {name!r} has no argument {key!r}.{hint} {takes}")
    missing = [key for key, p in parameters.items() if p.default is p.empty and key not in arguments]
    if missing:
        raise InvalidInputError(f"{kind} {name!r} needs the argument {missing[0]!r}.")
