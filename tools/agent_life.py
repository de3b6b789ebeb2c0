"""A scripted life of an agent, lived undisturbed or killed again and again: both must end in the same state.

    python -m tools.agent_life --kills 200 --episodes 250

The script has late, repeated and missing scores, restricted choices, several episodes open at once, freezing and
thawing.  It knows nothing of its own past: after each kill it starts from its first line, and what was acknowledged
before answers as it did then.  Kills are SIGKILL from inside, at a random instruction of SQLite's own machine
(before, within and after transactions), so that every point of a write is hit sooner or later.
"""

import argparse
import os
import random
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aggbandit.agent import Agent
from aggbandit.agent import agent as agent_module
from aggbandit.agent.journal import Journal

ACTIONS = ["ask", "offer", "close", None]


def live(path: Path, episodes: int) -> None:
    """The whole script, from its first line."""
    with Agent(actions=ACTIONS, horizon=4, path=path, bounds=(-1.0, 5.0), seed=3, forget=0.01) as agent:
        late: list[tuple[str, float]] = []
        for k in range(episodes):
            chance = random.Random(k)
            name = f"episode {k}"
            total = 0.0
            episode = agent.episode(id=name)
            for step in range(chance.randint(1, 4)):
                state = (step, chance.choice(["calm", "cross"]), True)
                some = ACTIONS[:2] if chance.random() < 0.2 else None
                action = episode.act(state, actions=some)
                total += ACTIONS.index(action) * 0.4 - 0.1 * step
            fate = chance.random()
            if fate < 0.5:
                episode.end(loss=total)
            elif fate < 0.7:
                episode.end()
                late.append((name, total))
            elif fate < 0.85:
                late.append((name, total))  # scored while still open
            if k % 7 == 3:
                chance.shuffle(late)
                while len(late) > 2:
                    told, value = late.pop()
                    agent.score(told, loss=value)
                    if chance.random() < 0.5:
                        agent.score(told, loss=value)
            # what no answer depends on must be asked for in the same place, or not at all once it has happened
            if k % 50 == 20 and not _later(agent, k):
                agent.freeze()
            if k % 50 == 30 and not _later(agent, k):
                agent.thaw()


def _later(agent: Agent, k: int) -> bool:
    """Whether this life has been beyond episode k before."""
    return agent.episode(id=f"episode {k + 1}").steps > 0


def outcome(path: Path) -> dict[str, Any]:
    """All that a life leaves behind, but for the time of day and where snapshots happened to fall."""
    with Agent(path=path) as agent:
        beliefs = {name: array.tobytes() for name, array in agent._beliefs.state().items()}
        records = list(agent.export() or [])
        frozen = agent.frozen
    with sqlite3.connect(path) as connection:
        events = connection.execute("SELECT * FROM events ORDER BY number").fetchall()
    connection.close()
    return {"beliefs": beliefs, "records": records, "events": events, "frozen": frozen}


def killed_life(path: Path, episodes: int, kills: int, seed: int) -> int:
    """Live it with so many kills, each in a child of its own; how many struck before the script was through."""
    chance = random.Random(seed)
    struck = 0
    # about as many instructions between kills as let all of them strike before the script is through
    reach = max(200, 2 * _instructions(episodes) // max(kills, 1))
    while True:
        after = chance.randrange(1, reach) if struck < kills else None
        child = os.fork()
        if child == 0:
            _run_until_killed(lambda: live(path, episodes), after, within=chance.random() < 0.8)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status) != 0:
                raise SystemExit("the script failed; its error is above")
            return struck
        struck += 1


def _instructions(episodes: int) -> int:
    """How many of SQLite's instructions write one life (measured, roughly)."""
    return 130 * episodes


def _run_until_killed(script: Callable[[], None], after: int | None, within: bool) -> None:
    """In the child: run it, and end by SIGKILL after so many instructions of writing (or, not `within` a transaction,
    at the first one outside after these), or by 0."""
    if after is not None:
        left = after
        connect = Journal._connect

        def counted(journal: Journal) -> sqlite3.Connection:
            connection = connect(journal)

            def tick() -> int:
                nonlocal left
                left -= connection.in_transaction
                if left <= 0 and (within or not connection.in_transaction):
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0

            connection.set_progress_handler(tick, 1)
            return connection

        Journal._connect = counted  # type: ignore[method-assign, assignment]
    try:
        script()
    except BaseException:  # noqa: BLE001  the parent cannot see it, so it is told here
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Compare an undisturbed life with a killed one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--snapshot-every", type=int, default=20, help="scores between snapshots")
    parser.add_argument("--dir", help="where the files lie; the disk to try it on")
    given = parser.parse_args()
    agent_module.SNAPSHOT_EVERY = given.snapshot_every
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        calm, troubled = Path(folder, "calm.db"), Path(folder, "troubled.db")
        live(calm, given.episodes)
        struck = killed_life(troubled, given.episodes, given.kills, given.seed)
        same = outcome(calm) == outcome(troubled)
    print(f"{struck} kills, {given.episodes} episodes: {'the same state' if same else 'DIFFERENT STATES'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
