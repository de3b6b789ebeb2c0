"""How fast an agent decides durably, and whether time and memory stay flat over many episodes.

python -m benchmarks.agent_throughput --dir /var/tmp   # against this disk's own rate of synced commits
python -m benchmarks.agent_throughput --dir /dev/shm --episodes 1000000 --steps 5      # where syncing costs nothing
"""

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from aggbandit.agent import Agent
from aggbandit.agent.journal import Statement

ROUNDS = 1500
ACTIONS = ["ask", "offer", "close"]


def in_turn(folder: Path) -> None:
    """One durable act, one synced commit and one synced write in turn, as a shared disk's own rate wanders."""
    connection = sqlite3.connect(folder / "probe.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
    handle = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)

    def write() -> None:
        os.write(handle, b"x" * 4096)
        os.fdatasync(handle) if hasattr(os, "fdatasync") else os.fsync(handle)

    with Agent(actions=ACTIONS, horizon=50, path=folder / "acts.db", bounds=(0, 1)) as agent:
        episodes = [agent.episode() for _ in range(ROUNDS // 50 + 1)]
        probes: dict[str, Callable[[int], object]] = {
            "durable acts": lambda i: episodes[i // 50].act(i % 20),
            "synced SQLite commits": lambda i: connection.execute("INSERT INTO t(b) VALUES ('a decision')"),
            "synced writes of a page": lambda i: write(),
        }
        taken: dict[str, list[float]] = {title: [] for title in probes}
        for i in range(ROUNDS):
            for title, probe in probes.items():
                begun = time.perf_counter()
                probe(i)
                taken[title].append(time.perf_counter() - begun)
        for title, seconds in taken.items():
            median, mean = statistics.median(seconds), statistics.mean(seconds)
            print(f"{title:<26}{1 / mean:>8,.0f}/s on average, {1 / median:>8,.0f}/s by the median")
    os.close(handle)
    connection.close()


def shared(folder: Path, threads: int) -> None:
    """Durable acts of so many threads sharing one agent, and how many commits carried them."""
    with Agent(actions=ACTIONS, horizon=1000, path=folder / "shared.db", bounds=(0, 1)) as agent:
        append, commits = agent._journal.append, 0

        def counted(statements: Iterable[Statement]) -> None:
            nonlocal commits
            commits += 1
            append(statements)

        agent._journal.append = counted  # type: ignore[method-assign]

        def work() -> None:
            episode = agent.episode()
            for i in range(ROUNDS // threads):
                episode.act(("s", i % 20))

        workers = [threading.Thread(target=work) for _ in range(threads)]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        rate = ROUNDS // threads * threads / (time.perf_counter() - begun)
        print(
            f"{threads} threads: {rate:,.0f} durable acts/s, {ROUNDS // threads * threads / commits:.1f} acts a commit"
        )


def life(folder: Path, episodes: int, steps: int) -> None:
    """Play so many episodes and tell time and memory along the way."""
    path = folder / "life.db"
    chance = random.Random(0)
    with Agent(actions=ACTIONS, horizon=steps, path=path, bounds=(0, steps)) as agent:
        print(f"{'episodes':>10} {'µs an act':>10} {'resident MB':>12} {'file MB':>8}")
        marks = sorted({episodes * part // 10 for part in range(1, 11)})
        done = 0
        for mark in marks:
            begun = time.process_time()
            for _ in range(done, mark):
                with agent.episode() as episode:
                    loss = sum(ACTIONS.index(episode.act((chance.randrange(20), h))) / 2.0 for h in range(steps))
                    episode.end(loss=loss)
            spent = 1e6 * (time.process_time() - begun) / ((mark - done) * steps)
            size = path.stat().st_size / 1e6
            print(f"{mark:>10} {spent:>10.1f} {resident():>12.0f} {size:>8.0f}", flush=True)
            done = mark
    begun = time.perf_counter()
    with Agent(path=path) as agent:
        print(f"opened again in {time.perf_counter() - begun:.2f} s: {agent!r}")


def resident() -> float:
    """Megabytes of memory in use now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Print rates, then a long life."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", help="a folder on the disk to try")
    parser.add_argument("--episodes", type=int, default=0, help="also live so many episodes")
    parser.add_argument("--steps", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = Path(name)
        in_turn(folder)
        shared(folder, 4)
        if given.episodes:
            life(folder, given.episodes, given.steps)


if __name__ == "__main__":
    main()
