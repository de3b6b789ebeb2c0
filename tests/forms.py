"""Every registered learner in every form that it takes: what `dynamics=`, `feedback=` and the like choose."""

import numpy as np

from aggbandit import learners

UNKNOWN = {"dynamics": "unknown"}
FEATURES = np.eye(6).reshape(3, 2, 6).tolist()  # of every (s, a) of three states and two actions

CHOSEN = [
    ("dapo", UNKNOWN),
    ("dapo", {"feedback": "aggregate"}),
    ("dapo", {"feedback": "aggregate", **UNKNOWN}),
    ("dlb", UNKNOWN),
    ("dlb", {**UNKNOWN, "radius_scale": 1e-3, "step_scale": 1e3, "boost_scale": 0.0, "growth": 30.0}),
    ("doubling", {"learner": "dlb"}),
    ("doubling", {"learner": {"name": "o-reps", "arguments": {"feedback": "semi-bandit"}}}),
    ("ftrl-logbarrier", {"charge": "all"}),
    ("ftrl-logbarrier", UNKNOWN),
    ("ftrl-tsallis", UNKNOWN),
    ("ftrl-tsallis", {**UNKNOWN, "beta_scale": 1e-4, "radius_scale": 0.0, "bonus_scale": 0.0}),
    ("natural-pg", {"batch": 1}),
    ("o-reps", {"feedback": "semi-bandit"}),
    ("po-dilated", UNKNOWN),
    ("po-known", {"step_size": "main"}),
    ("po-practical", UNKNOWN),
    ("po-unknown", {"radius_scale": 0.01}),
    ("pomd", {"losses": "adversarial"}),
    ("re-lsvi", {"features": FEATURES}),
    ("repo", {"features": FEATURES}),
    ("rs-ucbvi-ts", {"growth": 0.1}),
    ("scrible", {"sampling": "poles"}),
    ("uc-o-reps", {"step_size": "balanced"}),
    ("ucbvi", {"bonus": "bf"}),
    ("ucbvi-ts", {"noise": "none", "bonus_scale": 0.0, "v_scale": 1e-3}),
]
FORMS = [(name, {}) for name in learners.names()] + CHOSEN


def title(form):
    """As pytest shows it."""
    name, arguments = form
    shown = {key: "..." if key == "features" else value for key, value in arguments.items()}
    return ":".join([name, *(f"{key}={value}" for key, value in shown.items())])
