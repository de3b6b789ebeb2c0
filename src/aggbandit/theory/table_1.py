"""Table 1 of the paper: the regret bounds compared, logarithms and lower orders left out.  [eq:LM25-table-1]"""

from math import sqrt
from typing import NamedTuple


class Row(NamedTuple):
    """One line: √(H^h S^s A^a K).

    Constants are in the papers for the paper's own rows alone: `known_regret_bound`, `unknown_regret_bound` and
    `lower_bound`.  The others are stated up to a constant, or in abstracts only.
    """

    algorithm: str
    dynamics: str
    losses: str
    learner: str  # the id here, or "" for a bound that nobody plays
    h: int
    s: int
    a: int
    condition: str  # when it holds

    def regret(self, *, H: int, S: int, A: int, K: int) -> float:
        """The bound without logarithms, lower orders or constants."""
        return sqrt(float(H) ** self.h * float(S) ** self.s * float(A) ** self.a * K)


TABLE_1 = (
    Row("Reduction to efficient linear bandits", "known", "adversarial", "volumetric", 4, 2, 2, "in expectation"),
    Row("Algorithm 1", "known", "adversarial", "po-known", 4, 1, 1,
        "with probability 1 - δ; S A >= H², or H³ √K leads; K >= 9 ι, or the step is lowered"),
    Row("Lower bound", "known", "adversarial", "", 4, 1, 1,
        "in the mean over the instance; K >= S A (H - 1)², and up to a logarithm"),
    Row("UCBVI-TS", "unknown", "stochastic", "ucbvi-ts", 7, 4, 3, "i.i.d. losses"),
    Row("REPO for tabular MDPs", "unknown", "stochastic", "repo", 7, 4, 3, "i.i.d. losses"),
    Row("Reduction to DBOLO", "unknown", "adversarial", "dlb", 10, 12, 5, "in expectation"),
    Row("Algorithm 2", "unknown", "adversarial", "po-unknown", 6, 2, 1,
        "with probability 1 - δ; K >= H² S⁴ A ι², or H⁴ S³ A ι² leads; K >= 16 ι, or the step is lowered"),
)  # fmt: skip
