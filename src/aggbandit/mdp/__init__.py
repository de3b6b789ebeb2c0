"""What the world is: `TabularMDP`, and named instances of it in `instances`."""

from aggbandit.mdp.tabular import TabularMDP, as_initial_distribution

__all__ = ["TabularMDP", "as_initial_distribution"]
