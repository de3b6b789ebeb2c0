"""Answers from the definitions: slow, plain, and independent of the package."""
