"""Every method checks its hyper-parameters: a fraction is refused, not cut to a whole number."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from butfor.errors import InputError
from butfor.methods.base import field_types
from method_list import ALL

WHOLE = [
    (name, field)
    for name, method in ALL.items()
    for field, kind in field_types(type(method)).items()
    if int in (kind, *get_args(kind))
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
