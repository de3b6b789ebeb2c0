"""aggbandit.mdp.instances: finding a world by name, and what each of them is."""

import inspect
import pickle
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import planning
from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.mdp import TabularMDP, _seeded, instances
from aggbandit.mdp.instances import chain, dialogue, grid, registry

IDS = ["chain", "dialogue", "grid", "hand-worked", "layered", "lower-bound", "multitask", "random"]


def test_names():
    assert instances.names() == IDS
    assert set(registry.LOSSES) < set(IDS)


@pytest.mark.parametrize("name", IDS)
def test_every_instance_has_defaults_a_docstring_and_an_origin(name):
    factory = instances.get(name)
    assert factory.__doc__
    parameters = inspect.signature(factory).parameters
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters.values())
    for parameter in parameters:
        assert parameter in factory.__doc__  # `aggbandit show` prints nothing else about it
    mdp = instances.make(name)
    assert isinstance(mdp, TabularMDP)
    assert mdp.origin is not None
    assert mdp.origin.name == name
    assert dict(mdp.origin.arguments) == {key: p.default for key, p in parameters.items()}
    assert f"instance={name!r}" in repr(mdp)
    again = instances.make(mdp.origin.name, **dict(mdp.origin.arguments))
    assert again.digest() == factory().digest() == mdp.digest()
    assert pickle.loads(pickle.dumps(mdp)).origin == mdp.origin


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"^There is no instance 'dialog'\. Did you mean 'dialogue'\? Known: ch"):
        instances.make("dialog")


def test_an_unknown_argument_suggests_the_nearest():
    message = (
        r"^instance 'grid' has no argument 'heigth'\. Did you mean 'height'\? It takes: width, height, slip, horiz"
    )
    with pytest.raises(InvalidInputError, match=message):
        instances.make("grid", heigth=3)


BAD_ARGUMENTS = [
    ("random", {"states": 0}, r"^states must be at least 1, but is 0"),
    ("random", {"actions": 2.0}, r"^actions must be an integer, but is 2\.0"),
    ("random", {"horizon": 0}, r"^horizon must be at least 1"),
    ("random", {"sparsity": 11}, r"^sparsity must be between 1 and 10, but is 11"),
    ("random", {"concentration": 0.01}, r"^concentration must be a finite number, at least 0\.1, but is 0\.01"),
    ("random", {"seed": -1}, r"^seed must be between 0 and 18446744073709551615, but is -1"),
    ("random", {"seed": 0.5}, r"^seed must be an integer"),
    ("random", {"stationary": "no"}, r"^stationary must be True or False, but is 'no'"),
    ("random", {"sparse": "no", "sparsity": 2}, r"^sparse must be True or False, but is 'no'"),
    ("random", {"sparse": True}, r"^sparse=True keeps only a row's successors, so sparsity= must say how many"),
    (
        "random",
        {"states": 10_000, "stationary": True},
        r"^states=10000, actions=4 would take 3\.2 GB as a dense table\. Give sparsity= \(successors per row\) and",
    ),
    ("chain", {"states": 0}, r"^states must be at least 1"),
    ("chain", {"actions": 0}, r"^actions must be at least 1"),
    ("chain", {"horizon": 0}, r"^horizon must be at least 1"),
    ("chain", {"slip": 1.5}, r"^slip must be a finite number, at least 0 and at most 1, but is 1\.5"),
    ("grid", {"width": 0}, r"^width must be at least 1"),
    ("grid", {"height": 0}, r"^height must be at least 1"),
    ("grid", {"horizon": 0}, r"^horizon must be at least 1"),
    ("grid", {"slip": -0.1}, r"^slip must be a finite number, at least 0 and at most 1, but is -0\.1"),
    ("layered", {"width": 0}, r"^width must be at least 1"),
    ("layered", {"actions": 0}, r"^actions must be at least 1"),
    ("layered", {"horizon": 0}, r"^horizon must be at least 1"),
    ("layered", {"concentration": 0}, r"^concentration must be a finite number, at least 0\.1"),
    ("dialogue", {"horizon": 0}, r"^horizon must be at least 1"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused(name, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        instances.make(name, **arguments)


@pytest.mark.parametrize("name", IDS)
def test_natural_losses_belong_to_the_world_but_are_not_in_it(name):
    mdp = instances.make(name)
    table = instances.natural_loss(mdp)
    assert (table is not None) == (name in registry.LOSSES)
    if table is None:
        return
    assert table.shape == mdp.shape
    assert table.dtype == np.float64
    assert not table.flags.writeable
    assert table.min() >= 0.0
    assert table.max() <= 1.0
    # a learner with known dynamics may hold the MDP: nothing in it may be the losses
    assert not any(isinstance(value, np.ndarray) and value.shape == table.shape for value in vars(mdp).values())
    np.testing.assert_array_equal(instances.natural_loss(pickle.loads(pickle.dumps(mdp))), table)


def test_a_users_own_mdp_has_no_natural_losses():
    assert instances.natural_loss(TabularMDP([[[1.0]]], 2)) is None


# --- random numbers behind them


def test_uniforms_do_not_move():
    # named instances are referred to by id and seed: their numbers must survive every upgrade
    found = _seeded.uniforms("random", 0, (2, 2))
    pinned = [[0.18471647772292477, 0.23784501145936277], [0.6938437395909732, 0.5658297927051689]]
    np.testing.assert_array_equal(found, pinned)


def test_uniforms_of_two_streams_differ():
    assert not (_seeded.uniforms("random", 0, (4,)) == _seeded.uniforms("losses", 0, (4,))).any()


def test_uniforms_never_touch_0_or_1(monkeypatch):
    for word, expected in ((0, 2.0**-53), (2**64 - 1, 1.0 - 2.0**-53)):

        class Stuck:
            def __init__(self, seed):
                pass

            def random_raw(self, size, word=word):
                return np.full(size, word, dtype=np.uint64)

        monkeypatch.setattr(np.random, "PCG64", Stuck)
        assert _seeded.uniforms("random", 0, (1,))[0] == expected


def test_subsets_are_all_equally_likely(monkeypatch):
    # 2 of 5: the first draw decides among 4 numbers, the second among 5; every such pair once
    grid_of_draws = np.array([((i + 0.5) / 4, (j + 0.5) / 5) for i in range(4) for j in range(5)])
    monkeypatch.setattr(_seeded, "uniforms", lambda stream, seed, shape: grid_of_draws.reshape(shape))
    found = [tuple(row) for row in _seeded.subsets("any", 0, (20,), 2, 5)]
    assert sorted(found) == sorted(2 * list(combinations(range(5), 2)))


@pytest.mark.parametrize("concentration", [0.1, 0.5, 1.0, 4.0])
def test_dirichlet_has_its_mean_and_variance(concentration):
    n = 4
    found = _seeded.dirichlet("any", 3, (20_000, n), concentration)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-14)
    # Var = (1/n) (1 - 1/n) / (n c + 1); over 20 000 rows the mean is off by 0.003 and the variance by 2 % at most
    np.testing.assert_allclose(found.mean(axis=0), 1 / n, atol=0.01)
    np.testing.assert_allclose(found.var(axis=0), (1 / n) * (1 - 1 / n) / (n * concentration + 1), rtol=0.05)


# --- random


def test_random_is_horizon_dependent_unless_asked():
    mdp = instances.make("random", states=5, actions=3, horizon=4, seed=1)
    assert mdp.shape == (4, 5, 3)
    assert mdp.stored.shape == (4, 5, 3, 5)
    assert (mdp.stored > 0).all()
    assert len({step.tobytes() for step in mdp.stored}) == 4
    once = instances.make("random", states=5, actions=3, horizon=4, stationary=True, seed=1)
    assert once.is_stationary
    assert once.shape == (4, 5, 3)


def test_random_follows_its_seed():
    def digest(**arguments):
        return instances.make("random", states=3, actions=2, horizon=3, **arguments).digest()

    assert digest(seed=1) == digest(seed=1)
    assert len({digest(seed=0), digest(seed=1), digest(concentration=2.0), digest(sparsity=2)}) == 4


@given(st.integers(1, 6), st.integers(1, 6), st.booleans(), st.integers(0, 2**64 - 1))
def test_sparsity_is_the_number_of_successors(S, n, stationary, seed):
    n = min(n, S)
    arguments = {"states": S, "actions": 2, "horizon": 3, "sparsity": n, "stationary": stationary, "seed": seed}
    dense = instances.make("random", **arguments)
    assert ((dense.stored > 0).sum(axis=-1) == n).all()
    sparse = instances.make("random", sparse=True, **arguments)
    assert sparse.is_sparse
    assert sparse.next_states.shape[-1] == n
    np.testing.assert_array_equal(sparse.transition, dense.transition)


def test_random_takes_large_sparse_worlds():
    mdp = instances.make("random", states=10_000, actions=4, horizon=50, sparsity=4, stationary=True, sparse=True)
    assert mdp.next_states.shape == (1, 10_000, 4, 4)
    assert (np.diff(mdp.next_states) > 0).all()


# --- chain


@pytest.mark.parametrize(("S", "A", "seed"), [(4, 2, 0), (4, 3, 1), (5, 2, 2), (2, 3, 3), (1, 2, 0), (3, 1, 0)])
def test_one_sequence_of_actions_opens_the_chain(S, A, seed):
    mdp = instances.make("chain", states=S, actions=A, seed=seed)
    assert mdp.shape == (S, S, A)
    assert mdp.is_stationary
    opened = []
    for actions in product(range(A), repeat=S - 1):
        s = 0
        for a in actions:
            s = int(np.argmax(mdp.stored[0, s, a]))
        if s == S - 1:
            opened.append(actions)
    assert opened == [tuple(chain.combination(S, A, seed))]


def test_chain_combination_depends_on_the_seed():
    assert len({tuple(chain.combination(12, 3, seed)) for seed in range(5)}) == 5


def test_chain_rows():
    mdp = instances.make("chain", states=3, actions=2, slip=0.25, seed=0)
    right = chain.combination(3, 2, 0)
    np.testing.assert_array_equal(mdp.stored[0, 0, right[0]], [0.25, 0.75, 0])
    np.testing.assert_array_equal(mdp.stored[0, 0, 1 - right[0]], [1, 0, 0])
    np.testing.assert_array_equal(mdp.stored[0, 1, right[1]], [0, 0.25, 0.75])
    np.testing.assert_array_equal(mdp.stored[0, 1, 1 - right[1]], [1, 0, 0])
    np.testing.assert_array_equal(mdp.stored[0, 2], [[0, 0, 1]] * 2)
    assert mdp.state_names == ("0 of 2 right", "1 of 2 right", "open")


@pytest.mark.parametrize(("S", "H"), [(8, None), (30, None), (4, 9)])
def test_chain_losses_reward_only_the_whole_combination(S, H):
    mdp = instances.make("chain", states=S, actions=2, horizon=H, seed=4)
    loss = instances.natural_loss(mdp)
    actions, value = planning.best_policy(mdp, loss)
    assert value == pytest.approx(S - 1)
    right = chain.combination(S, 2, 4)
    assert all(actions[h, h] == right[h] for h in range(S - 1))
    never = np.zeros(mdp.shape)
    never[:, np.arange(S - 1), 1 - right] = 1.0
    never[:, S - 1, 0] = 1.0
    assert planning.values(mdp, never, loss)[0, 0] == pytest.approx(mdp.H - 0.5)


# --- grid


def test_grid_moves_and_slips():
    mdp = instances.make("grid", width=3, height=3, slip=0.2)
    up, right, down, left = range(4)
    assert mdp.action_names == ("up", "right", "down", "left")
    p = mdp.stored[0].reshape(3, 3, 4, 3, 3)  # (row, column, action, next row, next column)
    np.testing.assert_allclose(p[1, 1, up], [[0, 0.8, 0], [0.1, 0, 0.1], [0, 0, 0]])
    np.testing.assert_allclose(p[1, 1, right], [[0, 0.1, 0], [0, 0, 0.8], [0, 0.1, 0]])
    np.testing.assert_allclose(p[1, 1, down], [[0, 0, 0], [0.1, 0, 0.1], [0, 0.8, 0]])
    np.testing.assert_allclose(p[1, 1, left], [[0, 0.1, 0], [0.8, 0, 0], [0, 0.1, 0]])
    np.testing.assert_allclose(p[0, 0, up], [[0.9, 0.1, 0], [0, 0, 0], [0, 0, 0]])  # against the wall twice
    np.testing.assert_allclose(p[2, 2, :, 2, 2], 1)  # the goal is never left


def test_a_grid_need_not_be_square():
    mdp = instances.make("grid", width=4, height=2, slip=0.0)
    assert mdp.shape == (8, 8, 4)
    up, right, down, left = range(4)
    moves = {
        (0, right): 1,
        (0, down): 4,
        (0, up): 0,
        (0, left): 0,
        (3, right): 3,
        (3, down): 7,
        (4, up): 0,
        (6, left): 5,
    }
    assert {(s, a): int(np.argmax(mdp.stored[0, s, a])) for s, a in moves} == moves
    assert mdp.state_names[6] == "row 1 column 2"


@pytest.mark.parametrize(("width", "height"), [(4, 4), (5, 2), (1, 3), (1, 1)])
def test_grid_losses_count_the_steps(width, height):
    mdp = instances.make("grid", width=width, height=height, slip=0.0)
    shortest = width + height - 2
    assert max(1, 2 * shortest) == mdp.H
    _, value = planning.best_policy(mdp, instances.natural_loss(mdp))
    assert value == shortest
    assert grid.loss_table(width=2, height=2, slip=0.0, horizon=3).shape == (3, 4, 4)


# --- layered


def test_layers_follow_each_other():
    W, A, H = 3, 2, 4
    mdp = instances.make("layered", width=W, actions=A, horizon=H, seed=5)
    assert mdp.shape == (H, W * H, A)
    for s, a, s_next in product(range(W * H), range(A), range(W * H)):
        forward = s_next // W == s // W + 1
        unused = s // W == H - 1 and s_next == s
        assert (mdp.stored[0, s, a, s_next] > 0) == (forward or unused)
    assert mdp.state_names[0] == "layer 1 state 1"
    assert mdp.state_names[-1] == "layer 4 state 3"


def test_at_step_h_an_episode_is_in_layer_h():
    mdp = instances.make("layered", width=2, actions=2, horizon=4)
    reach = planning.occupancy(mdp, np.full(mdp.shape, 0.5))
    np.testing.assert_allclose(reach.reshape(4, 4, 2).sum(axis=-1), np.eye(4), atol=1e-15)
    assert reach[0, 0] == 1.0


# --- dialogue


def test_dialogue_is_best_led_step_by_step():
    mdp = instances.make("dialogue")
    assert mdp.shape == (6, 7, 4)
    assert mdp.state_names == ("new", "greeted", "understood", "interested", "annoyed", "sold", "gone")
    assert mdp.action_names == ("greet", "ask", "offer", "close")
    assert set(dialogue.NEXT) == set(product(dialogue.STATES[:5], dialogue.ACTIONS))
    loss = instances.natural_loss(mdp)
    actions, value = planning.best_policy(mdp, loss)
    best = [mdp.action_names[actions[h, h]] for h in range(4)]  # new, greeted, understood, interested
    assert best == ["greet", "ask", "offer", "close"]
    assert mdp.action_names[actions[2, 4]] == "greet"  # an annoyed visitor is won back
    uniform = planning.values(mdp, np.full(mdp.shape, 0.25), loss)[0, 0]
    assert value < 0.6 * uniform  # there is something to learn


def test_dialogue_losses():
    loss = dialogue.loss_table(horizon=2)
    assert loss.shape == (2, 7, 4)
    assert loss[1, 0, 0] == 0.6
    assert loss[1, 0, 2] == pytest.approx(0.7)  # an offer gives something away
    np.testing.assert_array_equal(loss[:, 5], 0.0)
    np.testing.assert_array_equal(loss[:, 6], 1.0)


# --- hand-worked

# The policy of the arithmetic below, π_h(a|s): steps, then states x, y, then actions a, b.
POLICY = np.array([[[1 / 2, 1 / 2], [1, 0]], [[1 / 2, 1 / 2], [1 / 4, 3 / 4]], [[1 / 2, 1 / 2], [1, 0]]])


@pytest.fixture
def hand_worked():
    mdp = instances.make("hand-worked")
    return mdp, POLICY, instances.natural_loss(mdp)


def test_hand_worked_tables_are_those_of_its_docstring(hand_worked):
    mdp, _, loss = hand_worked
    lines = inspect.getdoc(instances.get("hand-worked")).splitlines()
    numbers = {"1/2": 1 / 2, "1/4": 1 / 4, "3/4": 3 / 4, "0": 0.0, "1": 1.0}
    rows = [line.replace(",", "").split() for line in lines if line.strip().startswith(("x, ", "y, "))]
    assert [row[:2] for row in rows] == [["x", "a"], ["x", "b"], ["y", "a"], ["y", "b"]] * 2
    moves = [[numbers[cell] for cell in row[2:6]] for row in rows[:4]]
    costs = [[numbers[cell] for cell in row[2:]] for row in rows[4:]]
    expected = np.array(moves).reshape(2, 2, 2, 2)  # (state, action, step, next state)
    np.testing.assert_array_equal(mdp.transition[:2], np.moveaxis(expected, 2, 0))
    np.testing.assert_array_equal(loss, np.moveaxis(np.array(costs).reshape(2, 2, 3), 2, 0))


def test_hand_worked_occupancy(hand_worked):
    mdp, policy, _ = hand_worked
    # μ_1 = (1, 0), the start.
    # μ_2(x) = 1/2·1 (a) + 1/2·1/2 (b) = 3/4,  μ_2(y) = 1/2·1/2 (b) = 1/4.
    # μ_3(x) = 3/4·(1/2·1/2 + 1/2·0) + 1/4·(1/4·1 + 3/4·1/4) = 3/16 + 7/64 = 19/64,  μ_3(y) = 45/64.
    expected = [[1, 0], [3 / 4, 1 / 4], [19 / 64, 45 / 64]]
    np.testing.assert_allclose(planning.occupancy(mdp, policy), expected, rtol=1e-15)


def test_hand_worked_values(hand_worked):
    mdp, policy, loss = hand_worked
    # V_3(x) = 1/2·1 + 1/2·0 = 1/2,  V_3(y) = 1·1/4 = 1/4.
    # Q_2(x,a) = 1/2 + 1/2·1/2 + 1/2·1/4 = 7/8,   Q_2(x,b) = 0 + 1/4 = 1/4,  V_2(x) = 7/16 + 1/8 = 9/16.
    # Q_2(y,a) = 1 + 1/2 = 3/2,  Q_2(y,b) = 1/4 + 1/4·1/2 + 3/4·1/4 = 9/16,   V_2(y) = 1/4·3/2 + 3/4·9/16 = 51/64.
    # Q_1(x,a) = 0 + 9/16,  Q_1(x,b) = 1/2 + 1/2·9/16 + 1/2·51/64 = 151/128,  V_1(x) = 9/32 + 151/256 = 223/256.
    # Q_1(y,a) = 1 + 51/64 = 115/64,  Q_1(y,b) = 0 + 9/16,                    V_1(y) = 115/64.
    q = [[[9 / 16, 151 / 128], [115 / 64, 9 / 16]], [[7 / 8, 1 / 4], [3 / 2, 9 / 16]], [[1, 0], [1 / 4, 1]]]
    v = [[223 / 256, 115 / 64], [9 / 16, 51 / 64], [1 / 2, 1 / 4]]
    np.testing.assert_allclose(planning.action_values(mdp, policy, loss), q, rtol=1e-15)
    np.testing.assert_allclose(planning.values(mdp, policy, loss), v, rtol=1e-15)


def test_hand_worked_trajectory_values(hand_worked):
    mdp, policy, loss = hand_worked
    # c_h(s) = E[(losses before h)·1{s_h = s}], and W_h(s) = c_h(s) / μ_h(s), 0 where nothing leads.
    # c_2(x) = 1/2·0·1 + 1/2·1/2·1/2 = 1/8,  W_2(x) = 1/8 / 3/4 = 1/6.
    # c_2(y) = 1/2·1/2·1/2 = 1/8,            W_2(y) = 1/8 / 1/4 = 1/2.
    # c_3(s') = Σ_s Σ_a (c_2(s) + μ_2(s) ℓ_2(s,a)) π_2(a|s) p_2(s'|s,a):
    #   x,a: (1/8 + 3/4·1/2)·1/2 = 1/4,  half to each;   x,b: (1/8 + 0)·1/2 = 1/16, all to y;
    #   y,a: (1/8 + 1/4·1)·1/4 = 3/32, all to x;         y,b: (1/8 + 1/4·1/4)·3/4 = 9/64, 1/4 to x, 3/4 to y.
    # c_3(x) = 1/8 + 3/32 + 9/256 = 65/256,    W_3(x) = 65/256 / 19/64 = 65/76.
    # c_3(y) = 1/8 + 1/16 + 27/256 = 75/256,   W_3(y) = 75/256 / 45/64 = 5/12.
    # Check: E[ℓ_1 + ℓ_2] = 1/4 + 19/64 = 35/64 = c_3(x) + c_3(y), and with step 3 19/64·1/2 + 45/64·1/4 more: 223/256.
    w = np.array([[0, 0], [1 / 6, 1 / 2], [65 / 76, 5 / 12]])
    np.testing.assert_allclose(planning.prefix_values(mdp, policy, loss), w, rtol=1e-14)
    # U = Q + W.  Nothing leads to y at step 1: there U = Q.
    u = [
        [[9 / 16, 151 / 128], [115 / 64, 9 / 16]],
        [[7 / 8 + 1 / 6, 1 / 4 + 1 / 6], [2, 17 / 16]],
        [[141 / 76, 65 / 76], [2 / 3, 17 / 12]],
    ]
    np.testing.assert_allclose(planning.trajectory_values(mdp, policy, loss), u, rtol=1e-14)


def test_hand_worked_best_policy(hand_worked):
    mdp, _, loss = hand_worked
    # Step 3: x b (0), y a (1/4).  Step 2: x a 1/2 + 1/8 = 5/8, b 1/4; y a 1 + 0, b 1/4 + 3/16 = 7/16: b and b.
    # Step 1: x a 0 + 1/4, b 1/2 + 1/2·1/4 + 1/2·7/16 = 27/32;  y a 1 + 7/16, b 0 + 1/4: a and b.  V*_1(x) = 1/4.
    actions, value = planning.best_policy(mdp, loss)
    np.testing.assert_array_equal(actions, [[0, 1], [1, 1], [1, 0]])
    assert value == 1 / 4
