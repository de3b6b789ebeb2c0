"""A cell: one configuration, one seed, all its replicas.  A pure function whose arguments are its canonical form.

The canonical form is JSON with sorted keys: instance, adversary and learner with every argument (defaults written
out) and the learner's version, then episodes, replicas, seed and checkpoints; and, where it is played on a GPU, the
device and the number type, since bits differ there.  A cell's id is its SHA-256.  So the
same id means the same numbers, and an algorithm that changes its numbers raises its version and gets new ids.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit._checks import keywords_of
from aggbandit._files import digest
from aggbandit.errors import InvalidInputError

if TYPE_CHECKING:
    from aggbandit.adversaries import LossSequence
    from aggbandit.learners.base import Learner
    from aggbandit.mdp.tabular import TabularMDP
    from aggbandit.simulation.run import Simulation

FORMAT = 1  # of the canonical form: raised when the same form comes to mean another computation
KINDS = ("instance", "adversary", "learner")
INSTANCES_KEPT = 8  # cells come in rows that share an instance


@dataclass(frozen=True)
class Cell:
    """A cell by its canonical form, with the names that people see."""

    text: str  # the canonical form
    instance: str  # as it was written in the spec, likewise the next two
    adversary: str
    learner: str

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return digest(self.text.encode())

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The canonical form as a dict."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def episodes(self) -> int:
        """K."""
        return int(self.parameters["episodes"])

    @property
    def replicas(self) -> int:
        """R."""
        return int(self.parameters["replicas"])

    @property
    def seed(self) -> int:
        """Of the draws; also of the instance and the losses where the spec gives those none."""
        return int(self.parameters["seed"])

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""
        return str(self.parameters.get("device", "cpu"))

    @property
    def dtype(self) -> str:
        """The number type of policies."""
        return str(self.parameters.get("dtype", "float64"))

    def on(self, device: str, dtype: str) -> Cell:
        """The same cell played on that device."""
        form = {key: value for key, value in self.parameters.items() if key not in ("device", "dtype")}
        where = {"device": device, "dtype": dtype} if device != "cpu" else {}
        return replace(self, text=canonical_text({**form, **where}))

    @property
    def name(self) -> str:
        """All of it in one line."""
        return f"{self.learner} on {self.instance}, {self.adversary} losses, K = {self.episodes}, seed {self.seed}"

    def made(self) -> tuple[TabularMDP, LossSequence, Learner[Any]]:
        """The instance, the losses and the learner; raises where this version means something else by them."""
        from aggbandit import adversaries, learners

        found = self.parameters
        if found["format"] != FORMAT:
            raise InvalidInputError(f"a cell of format {found['format']} cannot be played: this version has {FORMAT}.")
        chosen = found["learner"]
        learner = learners.make(chosen["id"], **_given("learner", chosen))
        if learner.version != chosen["version"]:
            raise InvalidInputError(
                f"the cell asks for version {chosen['version']} of {chosen['id']}, but here it is {learner.version}. "
                "Install the same aggbandit everywhere."
            )
        mdp = _instance(found["instance"])
        losses = adversaries.make(found["adversary"]["id"], mdp, **_given("adversary", found["adversary"]))
        return mdp, losses, learner

    def simulation(self, learner: Learner[Any] | None = None, replicas: int | None = None) -> Simulation:
        """The run, ready to be played; or a run like it, of another learner or with fewer replicas."""
        from aggbandit.learners.base import Problem
        from aggbandit.simulation.engines.places import Places
        from aggbandit.simulation.losses import LossReader
        from aggbandit.simulation.run import Simulation, checkpoint_episodes

        mdp, losses, own = self.made()
        learner = learner or own
        K = self.episodes
        problem = Problem.of(mdp, K, learner.needs)
        delay = self.parameters["delays"]
        return Simulation(
            mdp,
            LossReader(losses, mdp, K),
            learner.bound(problem),
            problem,
            replicas=replicas or self.replicas,
            seed=self.seed,
            checkpoints=checkpoint_episodes(self.parameters["checkpoints"], K),
            evaluate_every=self.parameters["evaluate_every"],
            delays=np.full(K, delay, dtype=np.int64) if delay else None,
            places=Places.parse(self.device, self.dtype),
        )


def canonical(value: Any) -> Any:
    """The one way to write a value: 2.0 as 2, tuples as lists; raises InvalidInputError for what JSON cannot hold."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not np.isfinite(value):
            raise InvalidInputError(f"must be finite, but is {value!r}.")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return {str(key): canonical(item) for key, item in value.items()}
    raise InvalidInputError(f"must be a number, a string, true, false or a list of those, but is {value!r}.")


def canonical_text(parameters: Mapping[str, Any]) -> str:
    """The bytes that are hashed, as text."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def factory(kind: str, name: str) -> Callable[..., Any]:
    """What makes the instance, adversary or learner of this name."""
    from aggbandit import adversaries, learners
    from aggbandit.mdp import instances

    kinds: dict[str, Callable[[str], Any]] = {
        "instance": instances.get, "adversary": adversaries.get, "learner": learners.get,
    }  # fmt: skip
    found: Callable[..., Any] = kinds[kind](name)
    return found


_DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {}


def defaults(kind: str, name: str) -> dict[str, Any]:
    """The defaults of its keyword arguments, in canonical form; those that JSON cannot hold are left out."""
    key = kind, name
    if key not in _DEFAULTS:
        found = {}
        for argument, parameter in keywords_of(factory(kind, name)).items():
            if parameter.default is not parameter.empty:
                try:
                    found[argument] = canonical(parameter.default)
                except InvalidInputError:
                    continue
        _DEFAULTS[key] = found
    return _DEFAULTS[key]


def _given(kind: str, what: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that differ from today's defaults: only those are passed on.

    A default that was a tuple is a list in the canonical form, and is better left as it is.
    """
    known = defaults(kind, what["id"])
    return {name: value for name, value in what["arguments"].items() if name not in known or known[name] != value}


_INSTANCES: OrderedDict[str, TabularMDP] = OrderedDict()
_LOCK = threading.Lock()


def _instance(what: Mapping[str, Any]) -> TabularMDP:
    """The instance; the last few are kept, since they never change and many cells share one."""
    from aggbandit.mdp import instances

    key = canonical_text(what)
    with _LOCK:
        if key in _INSTANCES:
            _INSTANCES.move_to_end(key)
            return _INSTANCES[key]
    made = instances.make(what["id"], **_given("instance", what))
    with _LOCK:
        _INSTANCES[key] = made
        while len(_INSTANCES) > INSTANCES_KEPT:
            _INSTANCES.popitem(last=False)
    return made
