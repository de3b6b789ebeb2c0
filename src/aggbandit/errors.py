"""What can go wrong, by whose hand: every error this package raises on purpose."""


class AggbanditError(Exception):
    """Base of all errors raised on purpose; catch it to catch them all."""


class InvalidInputError(AggbanditError, ValueError):
    """An argument breaks a rule.  The message says which, where it first fails, and the way out."""


class UnknownNameError(AggbanditError, LookupError):
    """No instance, adversary or learner has this id.  The message names the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OutOfOrderError(AggbanditError, RuntimeError):
    """Feedback for an episode that cannot take it: a repeat, an unknown index, one beyond K, or out of turn."""


class DamagedFileError(AggbanditError, OSError):
    """A file is not what it says it is: truncated, altered, or of another kind or version."""


class MissingExtraError(AggbanditError, ImportError):
    """An optional package is absent.  The message gives the command that installs it."""


class StorageError(AggbanditError, OSError):
    """A result cannot be written: the disk is full, the folder is read-only.  What was written before stays."""
