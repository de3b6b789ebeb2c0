"""The project's own checkers, run from the repository root: `python -m tools.links` and so on."""
