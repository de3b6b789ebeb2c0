"""`device=` from end to end: runs, states, sweeps and the command line, on a GPU that is played on the CPU."""

import sys

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.cli.main import main
from aggbandit.errors import InvalidInputError, MissingExtraError
from aggbandit.experiments.claims.base import FAILS, HOLDS, OPEN
from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Store
from aggbandit.reporting.curves import notes_on
from aggbandit.simulation.engines.cuda import device as devices
from cuda_on_host import cupy
from cuda_on_host.device import HostDevice, needs_compiler

K, R = 150, 6
SIZE = {"states": 3, "actions": 2, "horizon": 3, "seed": 0}


@pytest.fixture
def opened(monkeypatch):
    """GPUs that are played here; what has been asked for."""
    asked = []

    def open_devices(indices):
        asked.append(indices)
        return [HostDevice() for _ in indices]

    monkeypatch.setattr(devices, "open_devices", open_devices)
    return asked


def world(adversary="bernoulli"):
    mdp = ab.instances.make("random", **SIZE)
    return mdp, ab.adversaries.make(adversary, mdp, seed=1)


def run(learner, adversary="bernoulli", **arguments):
    return ab.run(*world(adversary), learner, episodes=K, replicas=R, seed=3, **arguments)


def same(one, other):
    for name in ("regret", "pseudo_regret", "cost", "comparator", "policy", "hindsight_policy"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@needs_compiler
@pytest.mark.parametrize("learner", ["po-known", "po-unknown", "uniform"])
def test_a_run_on_a_gpu_is_the_cpus(opened, learner):
    here, there = run(learner), run(learner, device="cuda")
    assert opened == [[0]]
    assert (here.device, here.dtype) == ("cpu", "float64")
    # a policy that stays is summed up at once, wherever the run is played
    assert there.device == ("cpu" if learner == "uniform" else "cuda (a GPU played on the CPU)")
    assert there.dtype == "float64"
    np.testing.assert_allclose(there.regret, here.regret, rtol=0, atol=1e-10)
    np.testing.assert_allclose(there.pseudo_regret, here.pseudo_regret, rtol=0, atol=1e-10)
    np.testing.assert_allclose(there.policy, here.policy, rtol=0, atol=1e-12)
    assert notes_on(there) == notes_on(here)


@needs_compiler
def test_replicas_are_split_over_gpus_with_the_same_bits(opened):
    whole, halves = run("po-known", device="cuda"), run("po-known", device="cuda:1,0")
    assert opened == [[0], [1, 0]]
    same(whole, halves)
    assert halves.device == "cuda (a GPU played on the CPU, a GPU played on the CPU)"
    few = ab.run(*world(), "po-known", episodes=K, replicas=1, seed=3, device="cuda:0,1")  # fewer replicas than GPUs
    assert np.array_equal(few.regret, whole.regret[:1])


@needs_compiler
@pytest.mark.parametrize("learner", ["po-known", "po-unknown"])
def test_a_stopped_run_continues_bit_for_bit(opened, learner, tmp_path):
    state = tmp_path / "state"

    def stop(progress):
        if progress.done > 20:
            raise KeyboardInterrupt("by hand")

    with pytest.raises(KeyboardInterrupt, match="by hand"):
        run(learner, device="cuda", state_file=state, progress=stop)
    with pytest.raises(InvalidInputError, match="the state of another run"):
        run(learner, state_file=state)  # the CPU's bits may differ
    with pytest.raises(InvalidInputError, match="the state of another run"):
        run(learner, state_file=state, device="cuda", dtype="float32")
    same(run(learner, device="cuda", state_file=state), run(learner, device="cuda"))


@needs_compiler
def test_float32_is_told_wherever_the_result_goes(opened, tmp_path):
    result = run("po-known", device="cuda", dtype="float32")
    assert "policies held in float32" in notes_on(result)
    result.save(tmp_path / "result")
    loaded = ab.RunResult.load(tmp_path / "result")
    assert (loaded.device, loaded.dtype) == (result.device, "float32")


def test_what_cannot_be_played_on_a_gpu_is_refused(opened, monkeypatch, tmp_path, capsys):
    for device in ("gpu", "cuda:", "cuda:a", 0, None):
        with pytest.raises(InvalidInputError, match="device must be 'cpu', 'cuda'"):
            run("po-known", device=device)
    with pytest.raises(InvalidInputError, match="dtype must be 'float64' or 'float32'"):
        run("po-known", device="cuda", dtype="float16")
    with pytest.raises(InvalidInputError, match="on the CPU all is float64"):
        run("po-known", dtype="float32")
    with pytest.raises(InvalidInputError, match="exp2 has no kernel for a GPU: device='cuda' plays .*po-known, po-m"):
        run("exp2", device="cuda")
    with pytest.raises(InvalidInputError, match="late feedback is played on the CPU only"):
        run("po-practical", device="cuda", delays=3)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"not installed here. Install it with: pip install aggbandit\[cuda\]"):
        run("po-known", device="cuda")
    with pytest.raises(InvalidInputError, match="exp2 has no kernel for a GPU"):  # what no machine would do comes first
        run("exp2", device="cuda")
    assert main(["run", "--learner", "exp2", "--device", "cuda", "--out", str(tmp_path)]) == 2
    assert "exp2 has no kernel for a GPU" in capsys.readouterr().err
    for command in (["run", "--out", str(tmp_path)], ["bench"], ["claims"], ["claims", "theorem-1-long"]):
        assert main([*command, "--device", "cuda"]) == 2
        assert "pip install aggbandit[cuda]" in capsys.readouterr().err
    assert main(["claims", "theorem-1-long", "theorem-1", "--device", "cuda"]) == 2
    assert "claim 'theorem-1' is played on the CPU; --device cuda is for theorem-1-long" in capsys.readouterr().err


def test_a_cupy_that_does_not_load_is_told(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "cupy.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')")
    with pytest.raises(
        MissingExtraError, match=r"cannot be loaded here \(libcuda.so.1: cannot open.* --force-reinstall"
    ):
        run("po-known", device="cuda")


@needs_compiler
def test_cupy_is_called_as_it_wants_to_be(monkeypatch):
    """The real `CudaDevice`, over a CuPy whose kernels run on the CPU."""
    with cupy.put_in_place():
        there = run("po-known", device="cuda")
        same(there, run("po-known", device="cuda:0,0"))
        np.testing.assert_allclose(there.regret, run("po-known").regret, rtol=0, atol=1e-10)
        monkeypatch.setattr(cupy, "OPT_IN", 1000)  # more than so much is asked for by name
        monkeypatch.setattr(devices, "FREELY_SHARED", 1000)
        same(there, run("po-known", device="cuda"))
        with pytest.raises(InvalidInputError, match="device names GPU 7, but this machine has 1, counted from 0"):
            run("po-known", device="cuda:7")
        monkeypatch.setattr(cupy, "MEMORY", 4_000)
        monkeypatch.setattr(devices.CudaDevice, "free_bytes", lambda self: 2**40)  # what else is there is not foreseen
        with pytest.raises(InvalidInputError, match=r"the memory of GPU 0 is full \(Out of memory .*fewer replicas"):
            ab.run(*world(), "po-known", episodes=K, replicas=1000, device="cuda")


class FakeCupy:
    """CuPy on a machine with one GPU, or with no driver."""

    class Error(RuntimeError):
        pass

    def __init__(self, count):
        def count_devices():
            if count is None:
                raise self.Error("cudaErrorNoDevice: no CUDA-capable device is detected")
            return count

        self.runtime = self
        self.cuda = self
        self.CUDARuntimeError = self.Error
        self.getDeviceCount = count_devices


def test_a_gpu_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(None))
    with pytest.raises(InvalidInputError, match=r"needs an NVIDIA GPU, and none was found \(cudaErrorNoDevice"):
        run("po-known", device="cuda")
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(1))
    with pytest.raises(InvalidInputError, match="device names GPU 1, but this machine has 1, counted from 0"):
        run("po-known", device="cuda:0,1")


SPEC = """
name = "small"
episodes = 60
replicas = 2
instance = "random:states=3,actions=2,horizon=3"
adversary = "bernoulli"
learner = ["uniform", "po-known"]
"""


def test_a_cell_on_a_gpu_is_another_cell():
    here = Spec.parse(SPEC)
    there = Spec.parse('device = "cuda"\n' + SPEC)
    single = here.on("cuda", "float32")
    ids = [{cell.id for cell in spec.cells} for spec in (here, there, single)]
    assert len(set.union(*ids)) == 6
    assert {cell.id for cell in here.on("cuda", "float64").cells} == ids[1]
    assert {cell.id for cell in single.on("cpu", "float64").cells} == ids[0]
    with pytest.raises(InvalidInputError, match=r"spec, line 1: device = 'gpu': must be 'cpu' or 'cuda'"):
        Spec.parse('device = "gpu"\n' + SPEC)
    with pytest.raises(InvalidInputError, match="on the CPU all is float64"):
        Spec.parse('dtype = "float32"\n' + SPEC)
    with pytest.raises(InvalidInputError, match=r"line 6: learner.*exp2 has no kernel for a GPU"):
        Spec.parse(SPEC.replace('"po-known"', '"exp2"').lstrip() + '\ndevice = "cuda"\n')
    with pytest.raises(InvalidInputError, match="exp2 has no kernel for a GPU"):
        Spec.parse(SPEC.replace("po-known", "exp2")).on("cuda", "float64")


@needs_compiler
def test_the_command_line_plays_on_a_gpu(opened, tmp_path, capsys):
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC)
    out = tmp_path / "out"
    arguments = ["run", str(spec), "--out", str(out), "--no-report", "--device", "cuda"]
    assert main([*arguments, "--dtype", "float32"]) == 0
    assert main(arguments) == 0
    store = Store.open(out)
    found = [store.read(cell) for cell in store.asked()]
    assert [one.metadata["device"] for one in found] == ["cpu", "cuda (a GPU played on the CPU)"]  # uniform needs none
    assert {one.dtype for one in found} == {"float64"}
    assert len(store) == 4
    frame = store.frame(arguments="varying")
    assert set(frame["dtype"]) == {"float32", "float64"}
    assert main([*arguments[:-1], "cuda:1"]) == 2
    assert "--device must be cpu or cuda with a SPEC" in capsys.readouterr().err
    asked = len(opened)
    assert main(["run", str(spec), "--out", str(tmp_path / "other"), "--no-report"]) == 0
    assert len(opened) == asked  # nobody looks for a GPU unasked
    first = ["run", "--learner", "po-known", "--episodes", "60", "--replicas", "2", "--device", "cuda"]
    assert main([*first, "--out", str(tmp_path / "first"), "--dtype", "float32"]) == 0
    assert "policies held in float32" in capsys.readouterr().out
    assert main([*first, "--learner", "exp2", "--out", str(tmp_path / "first")]) == 2
    assert "exp2 has no kernel for a GPU" in capsys.readouterr().err


@needs_compiler
def test_the_long_claim_plays_every_k_at_once(opened, monkeypatch):
    from aggbandit.experiments.claims import theorem_1_long as claim

    monkeypatch.setattr(claim, "REPLICAS", 3)
    Ks = [20, 40, 60, 80, 100]
    finals = claim.finals_of(Ks, 3, "cuda", lambda text: None)
    here = claim.finals_of(Ks, 3, "cpu", lambda text: None)
    for one, other in zip(finals, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)

    def verdict(slope, full, spread=0.01):
        def finals_of(Ks, replicas, device, tell):
            rng = np.random.default_rng(0)
            return [K**slope * rng.uniform(1 - spread, 1 + spread, 200) for K in Ks]

        monkeypatch.setattr(claim, "finals_of", finals_of)
        return claim.play(full, print).findings[0].verdict

    found = {slope: [verdict(slope, full) for full in (False, True)] for slope in (0.4, 0.5, 0.6)}
    assert found == {0.4: [OPEN, OPEN], 0.5: [HOLDS, HOLDS], 0.6: [OPEN, FAILS]}
    assert verdict(0.525, full=True, spread=0.9) == OPEN  # the interval reaches beyond the band


def test_ctrl_c_stops_every_k_of_the_long_claim():
    from aggbandit.experiments.claims import theorem_1_long as claim

    def stop(text):
        raise KeyboardInterrupt("by hand")

    with pytest.raises(KeyboardInterrupt, match="by hand"):
        claim.finals_of([10, 10**9], 1, "cpu", stop)  # the second would take hours
