"""Table 1 of the paper: the regret bounds compared, logarithms and lower orders left out.  [eq:LM25-table-1]"""

from math import sqrt
from typing import NamedTuple


class Row(NamedTuple):
    """One line: √(H^h S^s A^a K)."""

    algorithm: str
    dynamics: str
    losses: str
    learner: str  # the id here, or "" for a bound that nobody plays
    h: int
    s: int
    a: int

    def regret(self, *, H: int, S: int, A: int, K: int) -> float:
        """The bound without logarithms, lower orders or constants."""
        return sqrt(float(H) ** self.h * float(S) ** self.s * float(A) ** self.a * K)


TABLE_1 = (
    Row("Reduction to efficient linear bandits", "known", "adversarial", "volumetric", 4, 2, 2),
    Row("Algorithm 1", "known", "adversarial", "po-known", 4, 1, 1),
    Row("Lower bound", "known", "adversarial", "", 4, 1, 1),
    Row("UCBVI-TS", "unknown", "stochastic", "ucbvi-ts", 7, 4, 3),
    Row("REPO for tabular MDPs", "unknown", "stochastic", "repo", 7, 4, 3),
    Row("Reduction to DBOLO", "unknown", "adversarial", "dlb", 10, 12, 5),
    Row("Algorithm 2", "unknown", "adversarial", "po-unknown", 6, 2, 1),
)
