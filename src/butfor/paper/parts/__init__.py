"""The parts of the reproduction. Each says which results it needs, and makes a section of the report from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from butfor.paper.parts import (
    departures,
    figures,
    hyperparameter_search,
    running_time,
    significance,
    table_1,
    table_2,
    table_3,
)

if TYPE_CHECKING:
    from butfor.paper.experiment import Experiment
    from butfor.paper.jobs import Job
    from butfor.paper.sections import Section

__all__ = ["PARTS", "Part"]


class Part(Protocol):
    """A module that is a part of the reproduction."""

    def jobs(self, experiment: Experiment, /) -> list[Job]:
        """The jobs whose results the section needs; what is already saved is not computed again."""

    def section(self, experiment: Experiment, /) -> Section:
        """The section of the report, made from these results."""


# By the name on the command line, in the order of the page. Running times come last, when nothing else is running.
PARTS = cast(
    "dict[str, Part]",
    {
        "table-1": table_1,
        "table-2": table_2,
        "table-3": table_3,
        "figures": figures,
        "significance": significance,
        "search": hyperparameter_search,
        "departures": departures,
        "time": running_time,
    },
)
