"""`ab.Agent`: decide, decide, decide, and tell how it went; everything durable, nothing tuned, no simulator."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer, require_number
from aggbandit._files import write_atomically
from aggbandit.agent import evaluation, explanation, values
from aggbandit.agent import log as log_files
from aggbandit.agent.beliefs import Act, Beliefs
from aggbandit.agent.configuration import check_expiry, given_configuration, listed
from aggbandit.agent.errors import NotDurableError
from aggbandit.agent.journal import FROZEN, GIVEN, KEPT, LEARNED, LIVED, THAWED, Journal, Statement, snapshot_statements
from aggbandit.agent.lock import FileLock
from aggbandit.errors import InvalidInputError, OutOfOrderError, UnknownNameError
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree

LIVE_LIMIT = 10_000  # episodes kept in memory; all others are read from the file when asked for
ROUNDING = 1e-12  # scores closer than this share of the bounds are the same one, told as a loss and as a reward
SNAPSHOT_EVERY = 5_000  # scores between snapshots, or as many as there are rows where that is more

Probabilities = Mapping[Any, float]
Policy = Callable[[Any, int], Any]


class _Live:
    """One episode as memory has it; `batch` is the write that makes its latest change durable."""

    __slots__ = ("acts", "batch", "begun", "id", "loss", "number", "source", "steps")

    def __init__(self, name: str) -> None:
        self.id = name
        self.number: int | None = None  # None: nothing of it is in the journal yet
        self.source = LIVED
        self.begun = 0.0
        self.acts: list[Act] = []
        self.steps: int | None = None  # set once ended
        self.loss: float | None = None  # set once scored
        self.batch: _Batch | None = None


class _Batch:
    """Statements that one commit makes durable together."""

    __slots__ = ("done", "failure", "statements")

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.done = False
        self.failure: str | None = None  # why it has not happened


class Agent:
    """Learns which action to take in a process of a few steps that is scored once, at the end or later.

    actions   what can be chosen: a list of names, numbers, Enum members or tuples of these
    horizon   the most steps an episode may have; fewer are fine
    path      where everything is kept; None keeps it in memory only.  An existing file is continued, and then actions,
              horizon and bounds may be left out; where given they must be the same.  Actions that are Enum members
              should be given: the file has their names alone
    bounds    (low, high) of an episode's total, whether losses or rewards are told.  A reward r counts as the loss
              low + high - r
    seed      of the agent's own choices
    expire_after   an episode whose score has not come when so many later ones have begun (an int), or so long after
              its first act (a timedelta), is given up: it can no longer act or be scored.  None: never
    step_scale, exploration, forget   as in the learner `po-model-free`, which this is

    One agent may be shared by threads.  A second process on the same file is refused.  What a call has returned is on
    the disk; what has raised has not happened.

    >>> agent = Agent(actions=["ask", "offer", "close"], horizon=6, bounds=(0, 6))
    >>> with agent.episode(id="first") as episode:
    ...     action = episode.act("greeted", actions=["ask"])
    ...     episode.end(loss=2.0)
    >>> action, agent.score("first", loss=2.0)
    ('ask', None)
    """

    def __init__(
        self,
        actions: Sequence[Any] | None = None,
        horizon: int | None = None,
        path: str | os.PathLike[str] | None = None,
        bounds: tuple[float, float] | None = None,
        *,
        seed: int = 0,
        expire_after: int | timedelta | None = None,
        step_scale: float | None = None,
        exploration: float | None = None,
        forget: float | None = None,
    ) -> None:
        from aggbandit.kernels import philox

        self._uniforms: Any = philox.uniforms
        check_expiry(expire_after)
        self._expire_after = expire_after
        actions = None if actions is None else listed(actions)
        given = given_configuration(actions, horizon, bounds, seed, step_scale, exploration, forget)
        where = None if path is None else Path(os.path.realpath(path))
        self._name = "an agent in memory" if where is None else str(path)
        self._file_lock = None if where is None else FileLock(where)
        try:
            if given.complete is None and (where is None or not where.exists()):
                raise InvalidInputError(f"A new agent needs {given.missing}.")
            self._journal = Journal(where)
            try:
                stored = self._journal.configuration()
                if stored is None:
                    if given.complete is None:
                        raise InvalidInputError(f"{self._name} is new, and a new agent needs {given.missing}.")
                    self._journal.configure(given.complete)
                    stored = given.complete
                self._configure(given.against(stored, self._name), actions)
                self._lock = threading.RLock()  # memory
                self._commit_lock = threading.Lock()  # the journal; taken before the other one where both are
                self._process = os.getpid()
                self._closed = False
                self._load()
            except BaseException:
                self._journal.close()
                raise
        except BaseException:
            if self._file_lock is not None:
                self._file_lock.release()
            raise

    def _configure(self, stored: dict[str, Any], actions: Sequence[Any] | None) -> None:
        keys = [bytes.fromhex(key) for key in stored["actions"]]
        self.actions: tuple[Any, ...] = tuple(map(values.decode, keys)) if actions is None else tuple(actions)
        self.horizon: int = stored["horizon"]
        self.bounds: tuple[float, float] = tuple(stored["bounds"])
        self._action_of = {key: index for index, key in enumerate(keys)}
        self._seed = np.uint64(stored["seed"])
        self._learner = PolicyOptimizationModelFree(**stored["learner"])
        self._uniforms(0, 0, 0, 0, self._seed)  # loads what is compiled now, not in the first act

    def _load(self) -> None:
        """Memory from the journal: the last snapshot, then every event after it."""
        self._beliefs = Beliefs(self.horizon, len(self.actions), self._learner)
        self._frozen = False
        self._last_event = 0
        found = self._journal.snapshot()
        if found is not None:
            self._last_event, tree = found
            self._frozen = bool(tree.pop("frozen"))
            self._beliefs.restore(tree)
        self._snapshot_event = self._last_event
        for event, kind, loss, acts in self._journal.events_after(self._last_event):
            if kind == LEARNED and loss is not None:
                self._beliefs.learn(acts, self._total(loss), loss)
            elif kind in (FROZEN, THAWED):
                self._frozen = kind == FROZEN
            self._last_event = event
        self._states = {key: number for number, key in self._journal.query("SELECT number, key FROM states")}
        self._next_number = 1 + (self._journal.query("SELECT max(number) FROM episodes")[0][0] or 0)
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._batch = _Batch()

    def episode(self, id: str | None = None) -> Episode:
        """A new episode, or the one with this id taken up again, here or after a restart.

        Taken up again it starts at its first step: an act repeated there returns what was decided then.  To go on
        behind what is journaled, pass `step=episode.steps` to `act`.
        """
        with self._lock:
            self._alive()
            if id is None:
                id = f"{time.time_ns():016x}-{secrets.token_hex(4)}"  # by time, so that they lie together in the file
                self._keep(_Live(id))
            else:
                self._find(id, create=True)
        return Episode(self, id)

    def act(self, id: str, step: int, state: Any, actions: Sequence[Any] | None = None) -> Any:
        """Decide at this step of an episode; `Episode.act` counts for itself.  A repeat returns what was decided."""
        key = values.encode(state)
        allowed = self._allowed(actions)
        step = require_integer("step", step, low=0, high=self.horizon - 1)
        with self._lock:
            self._alive()
            live = self._find(id, create=True)
            number = self._states.get(key)
            if step < len(live.acts):
                done = live.acts[step]
                if done.state != number or done.allowed != allowed:
                    raise OutOfOrderError(self._told_differently(live, step, state, done, number))
                action = done.action
            else:
                self._may_act(live, step)
                batch = self._batch
                self._begin(live)
                if number is None:
                    number = len(self._states) + 1
                    self._states[key] = number
                    batch.statements.append(("INSERT INTO states VALUES (?, ?)", (number, key)))
                policy_a = self._beliefs.probabilities(step, number, allowed)
                action, probability = self._draw(policy_a, live.number, step)
                live.acts.append(Act(number, action, probability, allowed))
                batch.statements.append(
                    ("INSERT INTO acts VALUES (?, ?, ?, ?, ?, ?)", (live.number, step, *live.acts[-1]))
                )
                live.batch = batch
            waits_for = live.batch
        self._make_durable(waits_for)
        return self.actions[action]

    def end(self, id: str, *, loss: float | None = None, reward: float | None = None) -> None:
        """No more acts in this episode; with a score, as `score`.  The same again is safe."""
        scored = None if loss is None and reward is None else self._as_loss(loss, reward)
        with self._lock:
            self._alive()
            live = self._find(id, create=True)
            if scored is not None:
                self._score(live, scored)
            elif live.steps is None:
                self._begin(live)
                live.steps, live.batch = len(live.acts), self._batch
                self._batch.statements.append(
                    ("UPDATE episodes SET steps = ? WHERE number = ?", (live.steps, live.number))
                )
            waits_for = live.batch
        self._make_durable(waits_for)

    def score(self, id: str, *, loss: float | None = None, reward: float | None = None) -> None:
        """How an episode went: its total loss or reward, within `bounds`.

        In any order, after any delay; the same again is safe, another value is refused.  An episode still open ends.
        """
        value = self._as_loss(loss, reward)
        with self._lock:
            self._alive()
            live = self._find(id, create=False)
            self._score(live, value)
            waits_for = live.batch
        self._make_durable(waits_for)

    def _score(self, live: _Live, loss: float) -> None:
        if live.loss is not None and self._is_same(live.loss, loss):
            return
        self._may_score(live, loss)
        self._begin(live)
        batch = self._batch
        live.loss, live.batch = loss, batch
        live.steps = len(live.acts)
        self._last_event += 1
        kind = KEPT if self._frozen else LEARNED
        batch.statements += [
            ("UPDATE episodes SET steps = ?, loss = ? WHERE number = ?", (live.steps, loss, live.number)),
            ("INSERT INTO events VALUES (?, ?, ?)", (self._last_event, kind, live.number)),
        ]
        if kind == LEARNED:
            self._beliefs.learn(live.acts, self._total(loss), loss)
        if self._last_event - self._snapshot_event >= max(SNAPSHOT_EVERY, len(self._beliefs)):
            self._snapshot(batch)

    def _snapshot(self, batch: _Batch) -> None:
        tree = self._beliefs.state() | {"frozen": self._frozen}
        batch.statements += snapshot_statements(self._last_event, tree)
        self._snapshot_event = self._last_event

    def policy(self, state: Any, step: int, actions: Sequence[Any] | None = None) -> dict[Any, float]:
        """The probability of every action that is on offer, if this state came now at this step."""
        key = values.encode(state)
        step = require_integer("step", step, low=0, high=self.horizon - 1)
        allowed = self._allowed(actions)
        with self._lock:
            self._alive()
            policy_a = self._beliefs.probabilities(step, self._states.get(key, 0), allowed)
            return {
                action: float(p)
                for i, (action, p) in enumerate(zip(self.actions, policy_a, strict=True))
                if allowed is None or allowed[i]
            }

    def explain(self, state: Any) -> str:
        """What the agent believes about this state, at each step where it was met, and from how many episodes."""
        key = values.encode(state)
        with self._lock:
            self._alive()
            number = self._states.get(key, 0)
            seen = []
            for step in range(self.horizon):
                record = self._beliefs.record(step, number)
                if record is not None:
                    seen.append((step, record, self._beliefs.probabilities(step, number).copy()))
            return explanation.tell(
                state, seen, self.actions, self._beliefs.episodes, self.horizon, self.bounds, self._frozen
            )

    @property
    def frozen(self) -> bool:
        """Whether scores are kept without being learned from."""
        return self._frozen

    def freeze(self) -> None:
        """From now on act by today's policy: scores are kept, but not learned from, until `thaw`."""
        self._set_frozen(True)

    def thaw(self) -> None:
        """Learn again, from the scores that come from now on."""
        self._set_frozen(False)

    def _set_frozen(self, frozen: bool) -> None:
        with self._lock:
            self._alive()
            batch = self._batch
            if frozen != self._frozen:
                self._frozen = frozen
                self._last_event += 1
                batch.statements.append(
                    ("INSERT INTO events VALUES (?, ?, NULL)", (self._last_event, FROZEN if frozen else THAWED))
                )
        self._make_durable(batch)

    def warm_start(self, log: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> int:
        """Learn from episodes that others decided; returns how many were new.

        `log`: records as `export` gives them, or a file that it wrote.  A record needs "steps", each with "state" and
        "action", and "loss" or "reward"; "id" makes a repeat safe.  A step may carry the "probability" with which its
        action was chosen; without it the share of the action at this step and state within the log stands in.
        """
        records = list(log_files.records(log))
        parsed = [self._parsed(record, index) for index, record in enumerate(records)]
        shares = log_files.shares([steps for _, steps, _ in parsed])
        with self._lock:
            self._alive()
            fresh = self._fresh(parsed)
            batch = self._batch
            for name, (steps, loss) in fresh.items():
                live = self._live[name] = _Live(name)
                live.source = GIVEN
                self._begin(live)
                for step, (key, action, probability, allowed) in enumerate(steps):
                    number = self._states.get(key)
                    if number is None:
                        number = self._states[key] = len(self._states) + 1
                        batch.statements.append(("INSERT INTO states VALUES (?, ?)", (number, key)))
                    if probability is None:
                        probability = shares[step, key, action]
                    live.acts.append(Act(number, action, probability, allowed))
                    batch.statements.append(
                        ("INSERT INTO acts VALUES (?, ?, ?, ?, ?, ?)", (live.number, step, *live.acts[-1]))
                    )
                if loss is not None:
                    self._score(live, loss)
        self._make_durable(batch)
        return len(fresh)

    def evaluate(self, policy: Policy | str = "current", *, confidence: float = 0.95) -> evaluation.Evaluation:
        """What another policy would have cost an episode on average, from this agent's own scored episodes.

        `policy`: "current" (as the agent would act now), "uniform", or a function of (state, step) that returns an
        action or a mapping of actions to probabilities.  Episodes are weighted by how much more, or less, likely the
        policy is to act as they did; the interval says how far that can be trusted.
        """
        require_number("confidence", confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        chances = self._chances(policy)
        weighted: list[tuple[float, float]] = []
        for record in self._scored():
            weight = 1.0
            for step, act in enumerate(record[1]):
                weight *= chances(step, act) / act.probability
                if weight == 0.0:
                    break
            weighted.append((weight, record[0]))
        return evaluation.weighted_mean(weighted, self.bounds, confidence)

    def export(self, path: str | os.PathLike[str] | None = None) -> Iterator[dict[str, Any]] | None:
        """Every episode in the order of beginning: an iterator of records, or a file of JSON lines at `path`."""
        if path is None:
            return self._exported()
        lines = []
        for record in self._exported():
            for step in record["steps"]:
                step["state"], step["action"] = values.to_json(step["state"]), values.to_json(step["action"])
                if step["actions"] is not None:
                    step["actions"] = [values.to_json(action) for action in step["actions"]]
            lines.append(json.dumps(record) + "\n")
        write_atomically(path, "".join(lines).encode())
        return None

    @property
    def unscored(self) -> list[str]:
        """The ids of episodes that have begun and have no score, oldest first, expired ones left out."""
        with self._lock:
            self._alive()
            found = self._journal.query("SELECT number, id, begun FROM episodes WHERE loss IS NULL ORDER BY number")
            return [name for number, name, begun in found if not self._is_expired(number, begun)]

    @property
    def episodes(self) -> int:
        """How many scored episodes have been learned from."""
        return self._beliefs.episodes

    def close(self) -> None:
        """Write a snapshot and let go of the file; the agent answers no more."""
        if self._closed or self._process != os.getpid():
            return
        try:
            with self._lock:
                batch = self._batch
                if self._last_event > self._snapshot_event:
                    self._snapshot(batch)
            self._make_durable(batch)
        except NotDurableError:
            pass  # the journal has all that a snapshot would say
        finally:
            with self._commit_lock, self._lock:
                self._closed = True
                self._journal.close()
                if self._file_lock is not None:
                    self._file_lock.release()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.episodes} episodes learned from"
        return f"<Agent {self._name}: {len(self.actions)} actions, horizon {self.horizon}, {state}>"

    # What follows holds self._lock, unless it says otherwise.

    def _alive(self) -> None:
        if self._closed:
            raise OutOfOrderError(f"{self._name} is closed; make a new Agent on its path to go on.")
        if self._process != os.getpid():
            raise OutOfOrderError(
                f"{self._name} was opened by process {self._process}, and this is a child of it ({os.getpid()}): "
                "open the agent in the process that uses it."
            )

    def _lookup(self, name: str) -> _Live | None:
        """The episode of this id from memory or the journal; None where neither has it."""
        live = self._live.get(name)
        if live is not None:
            self._live.move_to_end(name)
            return live
        found = self._journal.episode(name)
        if found is None:
            return None
        row, acts = found
        live = _Live(name)
        live.number, live.source, live.begun, live.steps, live.loss = row.number, *row[2:]
        live.acts = acts
        self._keep(live)
        return live

    def _find(self, name: str, create: bool) -> _Live:
        live = self._lookup(_as_id(name))
        if live is None or (live.number is None and not create):
            if not create:
                raise UnknownNameError(
                    f"There is no episode {name!r} here: none with this id has acted or ended. Ids are those of "
                    "`episode.id`, letter for letter."
                )
            live = _Live(name)
            self._keep(live)
        return live

    def _keep(self, live: _Live) -> None:
        """Hold it in memory, and let the longest unused durable ones go."""
        self._live[live.id] = live
        while len(self._live) > LIVE_LIMIT:
            oldest = next(iter(self._live.values()))
            if oldest.batch is not None and not oldest.batch.done:
                break
            del self._live[oldest.id]

    def _begin(self, live: _Live) -> None:
        if live.number is not None:
            return
        live.number, live.begun = self._next_number, time.time()
        self._next_number += 1
        self._batch.statements.append(
            (
                "INSERT INTO episodes(number, id, source, begun) VALUES (?, ?, ?, ?)",
                (live.number, live.id, live.source, live.begun),
            )
        )

    def _may_act(self, live: _Live, step: int) -> None:
        if live.steps is not None:
            raise OutOfOrderError(
                f"Episode {live.id!r} has ended after {live.steps} steps; there is no act at step {step}."
            )
        if step > len(live.acts):
            raise OutOfOrderError(
                f"Episode {live.id!r} has {len(live.acts)} acts, so the next one is at step {len(live.acts)}, not "
                f"{step}."
            )
        self._not_expired(live)

    def _may_score(self, live: _Live, loss: float) -> None:
        if live.loss is not None and not self._is_same(live.loss, loss):
            raise OutOfOrderError(
                f"Episode {live.id!r} was scored with a loss of {live.loss!r} already, and is now given {loss!r}. The "
                "first score stays."
            )
        self._not_expired(live)

    def _is_same(self, one: float | None, other: float | None) -> bool:
        """Whether two losses are one score, but for the rounding of a reward.  Needs no lock."""
        if one is None or other is None:
            return one is other
        return abs(one - other) <= ROUNDING * max(map(abs, self.bounds))

    def _not_expired(self, live: _Live) -> None:
        if live.number is not None and live.loss is None and self._is_expired(live.number, live.begun):
            raise OutOfOrderError(
                f"Episode {live.id!r} has expired: its score did not come within expire_after = {self._expire_after}."
            )

    def _is_expired(self, number: int, begun: float) -> bool:
        if self._expire_after is None:
            return False
        if isinstance(self._expire_after, timedelta):
            return time.time() - begun > self._expire_after.total_seconds()
        return self._next_number - 1 - number > self._expire_after

    def _told_differently(self, live: _Live, step: int, state: Any, done: Act, number: int | None) -> str:
        if done.state == number:
            return (
                f"Episode {live.id!r} acted at step {step} with other actions on offer; a repeat must offer the same."
            )
        was = values.decode(next(key for key, known in self._states.items() if known == done.state))
        return (
            f"Episode {live.id!r} acted at step {step} in state {was!r:.80}, but is now told {state!r:.80} there. A "
            f"repeat must tell the same; to go on behind its {len(live.acts)} acts, pass step=episode.steps."
        )

    def _allowed(self, actions: Sequence[Any] | None) -> bytes | None:
        """One byte for each action, 1 where on offer; None where all are.  Needs no lock."""
        if actions is None:
            return None
        mask = bytearray(len(self.actions))
        for action in listed(actions):
            mask[self._action(action)] = 1
        if not any(mask):
            raise InvalidInputError("actions must offer at least one action, but is empty.")
        return None if all(mask) else bytes(mask)

    def _action(self, action: Any) -> int:
        index = self._action_of.get(values.encode(action, "action"))
        if index is None:
            known = ", ".join(map(repr, self.actions))
            raise UnknownNameError(f"There is no action {action!r}. Known: {known}.")
        return index

    def _draw(self, policy_a: FloatArray, number: int | None, step: int) -> tuple[int, float]:
        """The first action with u below the running sum, and its probability; u belongs to (seed, episode, step)."""
        u, _ = self._uniforms(0, number, step, 0, self._seed)
        total, last = 0.0, 0
        chances = policy_a.tolist()
        for action, p in enumerate(chances):
            if p > 0.0:
                last = action
                total += p
                if u < total:
                    break
        return last, chances[last]

    def _as_loss(self, loss: float | None, reward: float | None) -> float:
        """The score as a loss within the bounds.  Needs no lock."""
        if (loss is None) == (reward is None):
            raise InvalidInputError("A score is either loss= or reward=, exactly one of them.")
        low, high = self.bounds
        name: str = "loss" if reward is None else "reward"
        value: Any = loss if reward is None else reward
        if isinstance(value, np.generic):
            value = value.item()
        try:
            number = require_number(name, value, low=low, high=high)
        except InvalidInputError as error:
            raise InvalidInputError(f"{error} These are the agent's bounds; nothing was changed.") from None
        return number if reward is None else min(high, max(low, low + high - number))

    def _total(self, loss: float) -> float:
        low, high = self.bounds
        return (loss - low) * (self.horizon / (high - low))

    def _make_durable(self, batch: _Batch | None) -> None:
        """Wait until this batch is on the disk; called without the lock.  Whoever comes first writes for all."""
        if batch is None:
            return
        with self._commit_lock:
            if not batch.done:
                with self._lock:
                    self._batch = _Batch()
                if batch.statements:
                    try:
                        self._journal.append(batch.statements)
                    except BaseException as error:
                        with self._lock:
                            self._fail([batch, self._batch], error)
                        raise
                batch.done = True
                batch.statements = []
        if batch.failure is not None:
            raise NotDurableError(batch.failure)

    def _fail(self, batches: list[_Batch], error: BaseException) -> None:
        """These have not happened, and what came after them stood on them: back to what the journal says."""
        for batch in batches:
            batch.failure, batch.done, batch.statements = str(error) or repr(error), True, []
        self._load()

    def _parsed(self, record: Mapping[str, Any], index: int) -> tuple[str, list[log_files.Step], float | None]:
        """(id, steps, loss) of a record to warm-start from, checked."""
        place = f"log[{index}]"
        try:
            raw = list(record["steps"])
            if len(raw) > self.horizon:
                raise InvalidInputError(f"it has {len(raw)} steps, more than the horizon {self.horizon}.")
            loss, reward = record.get("loss"), record.get("reward")
            scored = None if loss is None and reward is None else self._as_loss(loss, reward)
            steps: list[log_files.Step] = []
            for step in raw:
                probability = step.get("probability")
                if probability is not None:
                    require_number("probability", probability, low=0.0, high=1.0, low_open=True)
                action = self._action(log_files.told(step["action"]))
                offer = None if step.get("actions") is None else [log_files.told(item) for item in step["actions"]]
                allowed = self._allowed(offer)
                if allowed is not None and not allowed[action]:
                    raise InvalidInputError(f"it takes {step['action']!r}, which was not on offer.")
                steps.append((values.encode(log_files.told(step["state"])), action, probability, allowed))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"{place} must be a mapping with 'steps', each with 'state' and 'action', but {error!r}."
            ) from None
        except (InvalidInputError, UnknownNameError) as error:
            raise InvalidInputError(f"{place}: {error} Nothing was changed.") from None
        name = record.get("id")
        return f"given-{secrets.token_hex(8)}" if name is None else _as_id(name), steps, scored

    def _fresh(
        self, parsed: list[tuple[str, list[log_files.Step], float | None]]
    ) -> dict[str, tuple[list[log_files.Step], float | None]]:
        """What of a log is new, by id, after checking all that is not: nothing may have changed where it raises."""
        fresh: dict[str, tuple[list[log_files.Step], float | None]] = {}
        for name, steps, loss in parsed:
            told = [(key, action) for key, action, _, _ in steps]
            if name in fresh:
                before, scored = fresh[name]
                same = told == [(key, action) for key, action, _, _ in before] and self._is_same(loss, scored)
                here = "twice in the log, and differently"
            elif (known := self._lookup(name)) is not None and known.number is not None:
                numbers = [(self._states.get(key), action) for key, action in told]
                same = numbers == [(act.state, act.action) for act in known.acts] and self._is_same(loss, known.loss)
                here = "here already, and differs from the one in the log"
            else:
                fresh[name] = steps, loss
                continue
            if not same:
                raise OutOfOrderError(f"Episode {name!r} is {here}. Nothing was changed.")
        return fresh

    def _chances(self, policy: Policy | str) -> Callable[[int, Act], float]:
        """How likely a policy is to act as an episode did; needs no lock."""
        with self._lock:
            self._alive()
            state_of = {number: key for key, number in self._states.items()}
        cache: dict[tuple[int, int, bytes | None], FloatArray] = {}

        def of(step: int, act: Act) -> float:
            place = step, act.state, act.allowed
            if place not in cache:
                if policy == "current":
                    with self._lock:
                        cache[place] = self._beliefs.probabilities(*place).copy()
                elif policy == "uniform":
                    cache[place] = self._among(np.ones(len(self.actions)), act.allowed)
                elif callable(policy):
                    state = values.decode(state_of[act.state])
                    cache[place] = self._among(self._as_probabilities(policy(state, step), state, step), act.allowed)
                else:
                    raise InvalidInputError(
                        f"policy must be 'current', 'uniform' or a function of (state, step), but is {policy!r}."
                    )
            return float(cache[place][act.action])

        return of

    def _among(self, weight_a: FloatArray, allowed: bytes | None) -> FloatArray:
        mask = np.ones(len(weight_a)) if allowed is None else np.frombuffer(allowed, np.uint8).astype(float)
        weight_a = weight_a * mask
        total = weight_a.sum()
        return weight_a / total if total > 0.0 else weight_a

    def _as_probabilities(self, told: Any, state: Any, step: int) -> FloatArray:
        weight_a = np.zeros(len(self.actions))
        if not isinstance(told, Mapping):
            weight_a[self._action(told)] = 1.0
            return weight_a
        for action, p in told.items():
            weight_a[self._action(action)] = require_number("probability", p, low=0.0, high=1.0)
        if abs(weight_a.sum() - 1.0) > 1e-6:
            raise InvalidInputError(
                f"policy({state!r}, {step}) sums to {weight_a.sum():.9g}, but its probabilities must sum to 1."
            )
        return weight_a

    def _scored(self) -> Iterator[tuple[float, list[Act]]]:
        """(loss, acts) of every scored episode that has acts, a thousand at a time; takes the lock in between."""
        for row, acts in self._rows():
            if row[3] is not None and acts:
                yield row[3], acts

    def _rows(self) -> Iterator[tuple[tuple[str, int, int | None, float | None], list[Act]]]:
        """((id, source, steps, loss), acts) of every episode in the journal, a thousand at a time."""
        last = 0
        while True:
            with self._lock:
                self._alive()
                found = self._journal.query(
                    "SELECT number, id, source, steps, loss FROM episodes WHERE number > ? ORDER BY number LIMIT 1000",
                    (last,),
                )
                if not found:
                    return
                first, last = found[0][0], found[-1][0]
                acts: dict[int, list[Act]] = {}
                for episode, *act in self._journal.query(
                    "SELECT episode, state, action, probability, allowed FROM acts WHERE episode BETWEEN ? AND ? "
                    "ORDER BY episode, step",
                    (first, last),
                ):
                    acts.setdefault(episode, []).append(Act(*act))
            for number, *row in found:
                yield (row[0], row[1], row[2], row[3]), acts.get(number, [])

    def _exported(self) -> Iterator[dict[str, Any]]:
        with self._lock:
            self._alive()
            state_of = {number: values.decode(key) for key, number in self._states.items()}
        for (name, source, steps, loss), acts in self._rows():
            yield {
                "id": name,
                "source": "given" if source == GIVEN else "lived",
                "ended": steps is not None,
                "loss": loss,
                "steps": [
                    {
                        "state": state_of[act.state],
                        "action": self.actions[act.action],
                        "probability": act.probability,
                        "actions": None
                        if act.allowed is None
                        else [action for action, on in zip(self.actions, act.allowed, strict=True) if on],
                    }
                    for act in acts
                ],
            }


class Episode:
    """One episode of an agent: `act` at each step, then `end`.

    As a context manager it ends when the block is left, with or without a score; leaving it by an exception leaves the
    episode open, to be taken up again by its id.
    """

    def __init__(self, agent: Agent, id: str) -> None:
        self._agent = agent
        self.id = id
        self._step = 0

    @property
    def steps(self) -> int:
        """How many acts are journaled."""
        with self._agent._lock:
            return len(self._agent._find(self.id, create=True).acts)

    @property
    def loss(self) -> float | None:
        """Its score as a loss; None while there is none."""
        with self._agent._lock:
            return self._agent._find(self.id, create=True).loss

    def act(self, state: Any, actions: Sequence[Any] | None = None, *, step: int | None = None) -> Any:
        """Decide in this state: one of the agent's actions, or of those listed here.  On the disk when it returns.

        `step` counts itself, from 0; a step that has its act already returns that one.
        """
        step = self._step if step is None else require_integer("step", step, low=0)
        if step >= self._agent.horizon:
            raise OutOfOrderError(
                f"Episode {self.id!r} has used all {self._agent.horizon} steps of the agent's horizon; end it."
            )
        action = self._agent.act(self.id, step, state, actions)
        self._step = step + 1
        return action

    def end(self, *, loss: float | None = None, reward: float | None = None) -> None:
        """No more acts; with the score, if it is known already."""
        self._agent.end(self.id, loss=loss, reward=reward)

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.steps:
            self.end()

    def __repr__(self) -> str:
        return f"<Episode {self.id!r} at step {self._step}>"


def _as_id(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"id must be a string with something in it, but is {value!r}.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInputError(f"id must be a text that UTF-8 can hold, but is {value!r}.") from None
    return value
