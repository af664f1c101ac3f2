"""Which cases of a long list `make test` runs. The others are marked slow: CI runs them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


def split(cases: Iterable[Any], quick: Container[Any]) -> list[Any]:
    """All cases, of which ``make test`` runs these. A tuple has a value for each parameter."""
    return [case if case in quick else slow(case) for case in cases]


def sampled(cases: Iterable[Any], every: int, first: int = 0) -> list[Any]:
    """All cases, of which ``make test`` runs every so-manieth."""
    return [case if number % every == first else slow(case) for number, case in enumerate(cases)]


def slow(case: Any) -> Any:
    """A case for CI only."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
