"""Episodes as others hand them over: records of JSON lines or mappings, read for `Agent.warm_start`."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aggbandit.agent import values
from aggbandit.errors import InvalidInputError

Step = tuple[bytes, int, float | None, bytes | None]  # state, action, probability if told, what was on offer


def records(log: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(log, (str, os.PathLike)):
        if isinstance(log, Mapping) or not isinstance(log, Iterable):
            raise InvalidInputError(f"log must be a list of episodes or a file of them, but is a {type(log).__name__}.")
        yield from log
        return
    with open(log, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInputError(f"{os.fspath(log)}, line {number}, is no JSON: {error}.") from None


def told(value: Any) -> Any:
    """A state or action as a record has it: itself, or in the form that a JSON file needs."""
    return values.from_json(value) if isinstance(value, dict) else value


def shares(episodes: list[list[Step]]) -> dict[tuple[int, bytes, int], float]:
    """How often each action was taken at each (step, state), as a share."""
    times: dict[tuple[int, bytes, int], int] = {}
    visits: dict[tuple[int, bytes], int] = {}
    for steps in episodes:
        for step, (key, action, _, _) in enumerate(steps):
            times[step, key, action] = times.get((step, key, action), 0) + 1
            visits[step, key] = visits.get((step, key), 0) + 1
    return {(step, key, action): n / visits[step, key] for (step, key, action), n in times.items()}
