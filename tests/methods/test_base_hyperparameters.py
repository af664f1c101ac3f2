"""Every method checks its hyper-parameters: a fraction is refused, not cut to a whole number."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pytest

from butfor.errors import InputError
from butfor.methods import Method
from butfor.methods.base import field_types
from butfor.problem.proposal import Proposal
from method_list import ALL

if TYPE_CHECKING:
    from butfor.problem.problem import Problem

WHOLE = [
    (name, field)
    for name, method in ALL.items()
    for field, kind in field_types(type(method)).items()
    if int in (kind, *get_args(kind)) and float not in get_args(kind)
]


def test_most_methods_have_whole_numbers() -> None:
    assert {("exact", "k"), ("exact", "threads"), ("greedy", "width"), ("cf-gnn", "epochs")} <= set(WHOLE)
    assert {("random", "samples"), ("remove-subgraph", "size"), ("prbcd", "block_size")} <= set(WHOLE)


@pytest.mark.parametrize(("name", "field"), WHOLE)
def test_fractions_are_refused_not_cut(name: str, field: str) -> None:
    for value in (1.5, 2.0, True, "1"):
        if isinstance(value, str) and field == "size":
            value = "some"  # it may be a word, but not any
        with pytest.raises(InputError, match=rf"{field} .*{value}"):
            replace(ALL[name], **{field: value})
    assert getattr(replace(ALL[name], **{field: np.int64(3)}), field) == 3


@dataclass(frozen=True)
class Annotated(Method):
    """A hyper-parameter of each kind of annotation."""

    whole: int = 1
    number: float = 1.0
    switch: bool = False
    width: int | None = None
    inner: Method | None = None
    word: Literal["one", "two"] = "one"
    size: int | Literal["all"] = "all"
    either: int | float = 1
    any_of: int | float | bool | None = None
    rate: float | Literal["auto"] = "auto"
    other: int | str = 1

    def solve(self, problem: Problem) -> Proposal:
        return Proposal()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("whole", (2, np.int64(2))),
        ("number", (2, 1.5, np.float32(1.5))),
        ("switch", (True, False)),
        ("width", (2, None)),
        ("inner", (ALL["greedy"], None)),
        ("word", ("two",)),
        ("size", (2, "all")),
        ("either", (2, 1.5, np.int64(2), np.float64(1.5))),
        ("any_of", (2, 1.5, True, None)),
        ("rate", (2, 1.5, "auto")),
        ("other", (2, "some")),
    ],
)
def test_a_value_that_fits_any_part_of_its_annotation_is_taken(field: str, values: tuple[object, ...]) -> None:
    for value in values:
        assert getattr(Annotated(**{field: value}), field) is value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("whole", (1.5, True, "1", None), "a whole number"),
        ("number", (math.nan, math.inf, True, "1", None), "a finite number"),
        ("switch", (1, "yes", None), "True or False"),
        ("width", (1.5, True, "1"), "a whole number or None"),
        ("inner", (1, "greedy"), "a method such as butfor.Greedy() or None"),
        ("word", (1.5, True, None), "one of the words for it"),
        ("size", (1.5, True, None), "one of the words for it"),
        ("either", (math.nan, True, "1", None), "a whole number or a finite number"),
        ("any_of", (math.nan, "1"), "a whole number or a finite number or True or False or None"),
        ("rate", (math.nan, True, None), "one of the words for it"),
    ],
)
def test_a_value_that_fits_no_part_is_refused(field: str, values: tuple[object, ...], expected: str) -> None:
    for value in values:
        with pytest.raises(InputError) as caught:
            Annotated(**{field: value})  # type: ignore[arg-type]
        assert str(caught.value) == f"{field} is {value!r}; give {expected}"
