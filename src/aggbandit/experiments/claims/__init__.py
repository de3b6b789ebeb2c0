"""The paper's claims, each a file: what it says, how it is put to the test, and what would show it false."""

from importlib import import_module

from aggbandit._checks import require_known
from aggbandit.experiments.claims.base import Claim

MODULES = {
    "theorem-1": "theorem_1",
    "theorem-1-long": "theorem_1_long",
    "theorem-2": "theorem_2",
    "theorem-3": "theorem_3",
    "identities": "identities",
    "table-1": "table_1",
    "closed-form": "closed_form",
    "semi-bandit": "semi_bandit",
    "looseness": "looseness",
}
ON_GPU = ("theorem-1-long",)  # whose K no CPU reaches


def names(device: str = "cpu") -> list[str]:
    """The claims in the order of the paper that are put to the test on such a device."""
    return [name for name in MODULES if (name in ON_GPU) == (device == "cuda")]


def get(name: str) -> Claim:
    """One claim."""
    require_known("claim", name, MODULES)
    claim: Claim = import_module(f"{__name__}.{MODULES[name]}").CLAIM
    return claim
