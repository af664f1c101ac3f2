"""The errors a user can cause, each a sentence with the offending value and what to do."""

__all__ = ["ButforError", "GraphError", "InputError", "ModelError", "StoreError", "one_line"]

LONGEST = 1000


class ButforError(Exception):
    """Something the user gave cannot be used; the message says what, and what to do.

    It is always one line, whatever the value that it shows looks like.
    """

    def __str__(self) -> str:
        said = " ".join(super().__str__().split())
        return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


class InputError(ButforError, ValueError):
    """An argument is out of range, unknown or contradicts another."""


class GraphError(ButforError, ValueError):
    """A graph is malformed: an edge index out of range, NaN features, a file that cannot be read."""


class ModelError(ButforError, ValueError):
    """A model does not fit the graph, its weights do not fit it, or it cannot be explained this way."""


class StoreError(ButforError, OSError):
    """A result file belongs to another run, is damaged, or cannot be written."""


def one_line(error: BaseException) -> str:
    """What an exception of somebody else's code says, with its kind, in one line."""
    kind = type(error).__name__
    try:
        said = str(error).strip().splitlines()
    except Exception:  # an exception of somebody else's may fail even at this
        return kind
    return f"{kind}: {said[0]}" if said else kind
