"""The errors a user can cause, each a sentence with the offending value and what to do."""

__all__ = ["ButforError", "GraphError", "InputError", "ModelError", "StoreError", "one_line"]

LONGEST = 1000


class ButforError(Exception):
    """Something the user gave cannot be used; the message says what, and what to do.

    It is always one line, whatever the value that it shows looks like.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> try:
        ...     butfor.explain(model, data, -1)
        ... except butfor.ButforError as problem:
        ...     print(type(problem).__name__, "-", problem)
        InputError - node -1 is not in this graph (0 to 870)
    """

    def __str__(self) -> str:
        said = " ".join(super().__str__().split())
        return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


class InputError(ButforError, ValueError):
    """An argument is out of range, unknown or contradicts another.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, 605, goal=butfor.Goal(wanted="leaf"))
        Traceback (most recent call last):
            ...
        butfor.errors.InputError: wanted: 'leaf' is no class of this graph (base, motif)
    """


class GraphError(ButforError, ValueError):
    """A graph is malformed: an edge index out of range, NaN features, a file that cannot be read.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> import butfor
        >>> model, data = butfor.example()
        >>> broken = Data(x=data.x, edge_index=torch.tensor([[0, 1], [1, 5000]]))
        >>> butfor.explain(model, broken, 0)
        Traceback (most recent call last):
            ...
        butfor.errors.GraphError: edge 1 points to node 5000, but this graph has nodes 0 to 870
    """


class ModelError(ButforError, ValueError):
    """A model does not fit the graph, its weights do not fit it, or it cannot be explained this way.

    Examples:
        >>> import torch
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(torch.nn.Linear(10, 2), data, 605)
        Traceback (most recent call last):
            ...
        butfor.errors.ModelError: Linear.forward takes (input), but is called as forward(x, edge_index, ...);
            wrap it in a module whose forward(self, x, edge_index) calls it with Data(x=x,
            edge_index=edge_index)
    """


class StoreError(ButforError, OSError):
    """A result file belongs to another run, is damaged, or cannot be written.

    Examples:
        >>> import butfor
        >>> butfor.load_results("no-such-file.jsonl")
        Traceback (most recent call last):
            ...
        butfor.errors.StoreError: cannot read no-such-file.jsonl: No such file or directory
    """


def one_line(error: BaseException) -> str:
    """What an exception of somebody else's code says, with its kind, in one line.

    Args:
        error: the exception.

    Examples:
        >>> from butfor.errors import one_line
        >>> try:
        ...     int("seven")
        ... except ValueError as problem:
        ...     print(one_line(problem))
        ValueError: invalid literal for int() with base 10: 'seven'
    """
    kind = type(error).__name__
    try:
        said = str(error).strip().splitlines()
    except Exception:  # an exception of somebody else's may fail even at this
        return kind
    return f"{kind}: {said[0]}" if said else kind
