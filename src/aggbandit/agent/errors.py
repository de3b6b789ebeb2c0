"""What can go wrong with an agent's file, beyond the errors of the package."""

from aggbandit.errors import AggbanditError


class InUseError(AggbanditError, RuntimeError):
    """Another process, or another agent in this one, holds the file."""


class NotDurableError(AggbanditError, OSError):
    """What was asked could not be made durable (a full disk, say) and has therefore not happened."""
