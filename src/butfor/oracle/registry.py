"""The fast oracles: each recognises the models it can answer for, and gives the same answers as the general one.

Which oracle answers for a target is decided in `butfor.problem.builder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.oracle.gcn.oracle import gcn_oracle
from butfor.oracle.program.oracle import program_oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.oracle.base import Oracle
    from butfor.oracle.general import ModelOracle

__all__ = ["FAST_ORACLES", "fast_oracle"]

# Builders, the first that fits wins: each returns None for a model that it does not recognise.
FAST_ORACLES: list[Callable[[ModelOracle], Oracle | None]] = [gcn_oracle, program_oracle]


def fast_oracle(general: ModelOracle) -> Oracle | None:
    """The fast oracle for this model and graph; None where none recognises it."""
    return next((oracle for build in FAST_ORACLES if (oracle := build(general)) is not None), None)
