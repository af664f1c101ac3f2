"""The parts of the reproduction: what each asks to be explained, and what it then has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from butfor.paper.parts import departures, figures, search, significance, table_1, table_2, table_3, time

if TYPE_CHECKING:
    from butfor.paper.lab import Ask, Lab
    from butfor.paper.sections import Section

__all__ = ["PARTS", "Part"]


class Part(Protocol):
    """A module that is a part of the reproduction."""

    def asks(self, lab: Lab, /) -> list[Ask]:
        """What must be explained first; results that are there already are not asked for again."""

    def section(self, lab: Lab, /) -> Section:
        """What to say about the results."""


# By their names on the command line, in the order of the page. Time is measured last, when nothing else is at work.
PARTS = cast(
    "dict[str, Part]",
    {
        "table-1": table_1,
        "table-2": table_2,
        "table-3": table_3,
        "figures": figures,
        "significance": significance,
        "search": search,
        "departures": departures,
        "time": time,
    },
)
