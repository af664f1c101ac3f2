"""What a method is."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from butfor.boundary.arguments import is_finite, is_whole
from butfor.errors import InputError
from butfor.problem.budget import Budget, Meter
from butfor.problem.method_record import MethodRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from butfor.problem.listener import Watch
    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal

__all__ = ["BatchMethod", "Method", "field_types"]


class Method(ABC):
    """A frozen dataclass of hyper-parameters with one verb.

    A method keeps no state between calls, reads no files, shows no progress and does not declare its own success: it
    proposes, and `butfor.result.verify` decides. `butfor.testing.check_method` is the contract.

    Examples:
        >>> from dataclasses import dataclass
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.problem import Proposal
        >>> @dataclass(frozen=True)
        ... class FirstEdge(butfor.methods.Method):
        ...     most: int = 100
        ...     def solve(self, problem):
        ...         edits = range(min(self.most, len(problem.edits)))
        ...         reached = problem.ask([[edit] for edit in edits]).reached
        ...         found = [(edit,) for edit in edits if reached[edit]]
        ...         return Proposal(tuple(found[:1]), problem.least_cost)
        >>> print(butfor.explain(model, data, 597, FirstEdge()))
        Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.
    """

    def __post_init__(self) -> None:
        """Refuse hyper-parameters of another type than declared: 1.5 is no number of epochs.

        Raises:
            InputError: naming the first of them.
        """
        for name, kind in field_types(type(self)).items():
            _check_value(name, getattr(self, name), kind)

    @abstractmethod
    def solve(self, problem: Problem) -> Proposal:
        """Search for the cheapest edits that reach the problem's goal, within ``problem.meter``."""

    def most_evaluations(self, num_edits: int) -> int | None:  # noqa: ARG002
        """An upper limit of what a search among this many edits costs; None where there is none."""
        return None

    def settings(self) -> dict[str, Any]:
        """The hyper-parameters by name; those that no answer depends on are left out."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.repr}  # type: ignore[arg-type]

    def record(self) -> MethodRecord:
        """The method as plain data, for results."""
        return MethodRecord(type(self).__name__, {name: _plain(value) for name, value in self.settings().items()})

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """The default of each hyper-parameter that has one, as plain data."""
        given = {item.name: item.default for item in fields(cls) if item.repr and item.default is not MISSING}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in given.items()}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for verb in ("solve", "solve_batch"):
            own = vars(cls).get(verb)
            if own is not None and "budget" in inspect.signature(own).parameters:
                setattr(cls, verb, _without_budget(own))


class BatchMethod(Method):
    """A method that works on many targets at once.

    Examples:
        >>> from dataclasses import dataclass
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.problem import Proposal
        >>> @dataclass(frozen=True)
        ... class FirstEdge(butfor.methods.BatchMethod):
        ...     def solve_batch(self, problems):
        ...         for position, problem in enumerate(problems):
        ...             edits = range(len(problem.edits))
        ...             reached = problem.ask([[edit] for edit in edits]).reached
        ...             found = [(edit,) for edit in edits if reached[edit]]
        ...             yield position, Proposal(tuple(found[:1]), problem.least_cost)
        >>> [cf.removed_edges for cf in butfor.explain(model, data, [597, 600, 605], FirstEdge())]
        [((596, 597),), ((595, 600),), ()]
    """

    @abstractmethod
    def solve_batch(self, problems: Sequence[Problem]) -> Iterator[tuple[int, Proposal]]:
        """Search for all of them; give the position of each problem with its proposal as it is done."""

    def solve(self, problem: Problem) -> Proposal:
        """A batch of one."""
        ((_, proposal),) = self.solve_batch([problem])
        return proposal


def _plain(value: Any) -> Any:
    """A hyper-parameter as JSON can hold it, so that no result is lost because a file could not hold its method."""
    if isinstance(value, Method):
        return value.record()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


@cache
def field_types(method: type) -> dict[str, Any]:
    """The types of a method's hyper-parameters, as far as they can be known at run time."""
    found = {}
    space = vars(sys.modules[method.__module__])
    for item in fields(method):
        holder = types.SimpleNamespace(__annotations__={item.name: item.type})
        try:
            found.update(get_type_hints(holder, space))
        except NameError:
            continue  # imported for type checkers only
    return found


def _check_value(name: str, value: object, kind: Any) -> None:
    """Check numbers, switches and words; what else there is, methods check themselves."""
    parts = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if (value is None and types.NoneType in parts) or (isinstance(value, str) and _words(parts)):
        return
    checks: dict[Any, tuple[bool, str]] = {
        int: (is_whole(value), "a whole number"),
        float: (is_finite(value), "a finite number"),
        bool: (isinstance(value, bool), "True or False"),
        Method: (isinstance(value, Method), "a method such as butfor.Greedy()"),
    }
    plain = [checks[part] for part in parts if part in checks]
    if any(fits for fits, _ in plain):
        return
    if _words(parts) and not is_whole(value):
        raise InputError(f"{name} is {value!r}; give one of the words for it")
    if plain and all(part in checks or part is types.NoneType or _words((part,)) for part in parts):
        expected = [*(what for _, what in plain), *(["None"] if types.NoneType in parts else [])]
        raise InputError(f"{name} is {value!r}; give {' or '.join(expected)}")


def _words(parts: tuple[Any, ...]) -> bool:
    return any(get_origin(part) is Literal for part in parts)


@dataclass(frozen=True)
class _Running(Budget):
    """A budget whose meter runs already; for methods that still expect to start it themselves."""

    running: Meter | None = None

    def meter(self, watch: Watch | None = None) -> Meter:  # noqa: ARG002 (who watches is known to the running one)
        assert self.running is not None
        return self.running


def _without_budget(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that still takes a budget be called without one."""

    @wraps(verb)
    def called(self: Method, asked: Any) -> Any:
        warnings.warn(
            f"{type(self).__name__}.{verb.__name__} takes a budget; use problem.meter instead, which counts by itself",
            DeprecationWarning,
            stacklevel=2,
        )
        meter = asked.meter if verb.__name__ == "solve" else asked[0].meter
        return verb(self, asked, _Running(meter.budget.evaluations, meter.budget.seconds, meter))

    return called
