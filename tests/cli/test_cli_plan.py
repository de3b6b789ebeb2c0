"""`aggbandit plan`: what a run needs, and how much it would learn."""

import re

import pytest

SIZE = ("--H", 6, "--S", 10, "--A", 3)


def test_time_and_memory(aggbandit):
    said = aggbandit("plan", "--H", 3, "--S", 3, "--A", 2, "--episodes", 1000)
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == ["time", "speed", "memory", "starting", "from"]


def test_learning(aggbandit):
    said = aggbandit("plan", *SIZE, "--episodes", 5000, "--learning")
    assert said.code == 0
    assert "regret that po-model-free has left" in said.out
    rows = re.findall(r"^ +([\d ]+?)  +([\d.]+) %  +([\d.]+) % to ([\d.]+) %  +([\d.]+) %$", said.out, re.MULTILINE)
    assert [int(row[0].replace(" ", "")) for row in rows] == [100, 300, 1000, 3000, 5000]
    shares = [[float(x) for x in row[1:]] for row in rows]
    assert all(low <= left <= high for left, low, high, _ in shares)
    assert shares == sorted(shares, reverse=True)
    assert re.search(r"^ 10 % left after [\d ]+ episodes \([\d ]+ to [\d ]+\)$", said.out, re.MULTILINE)
    assert "assumes" in said.out
    told = " ".join(said.out.split())
    assert "spread by 20 % of their range, as losses of 0 or 1 do: 3.0 times the variance" in told
    assert max(map(len, said.out.splitlines())) <= 120


def test_learning_depends_on_the_spread_of_scores(aggbandit):
    left = []
    for spread in (0.1, 0.4):
        said = aggbandit("plan", *SIZE, "--episodes", 1000, "--learning", "--spread", spread)
        assert f"spread by {100 * spread:.0f} % of their range" in said.out
        left.append(float(re.search(r"^ +1 000 +([\d.]+) %", said.out, re.MULTILINE)[1]))
    assert 2 * left[0] < left[1]


def test_learning_of_another_learner_far_out(aggbandit):
    command = ("plan", "--H", 6, "--S", 500, "--A", 3, "--episodes", 10**8, "--learning")
    said = aggbandit(*command, "--learner", "po-practical:dynamics=unknown")
    assert said.code == 0
    told = " ".join(said.out.split())
    assert "outside of the stored ones; episodes needed are taken to grow in proportion" in told
    assert re.search(r"The curves end at [\d ]+ episodes; less is left after that\.", told)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--learning", "--learner", "po-known"), "There are no stored curves of po-known"),
        (("--learning", "--spread", 0.7), "spread must be"),
        (("--learning", "--spread", 0), "spread must be"),
        (("--spread", 0.1), "--spread is for --learning"),
        (("--learning", "--stationary"), "--stationary is not for --learning"),
        (("--learning", "--successors", 3), "--successors is not for --learning"),
    ],
)
def test_bad_questions(aggbandit, arguments, message):
    said = aggbandit("plan", *SIZE, "--episodes", 100, *arguments)
    assert said.code != 0
    assert message in said.err
