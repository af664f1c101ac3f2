"""A section of the report, as it is kept between runs."""

from __future__ import annotations

import json

from butfor.evaluation.tables import Table
from butfor.paper.sections import Picture, Section


def test_a_section_survives_json() -> None:
    table = Table(
        "sizes", "Sizes", ("method", "size"), (("A|B", "1.29"),), ({"size": None, "note": "none"},), ("A note.",)
    )
    section = Section("part", "Part", "all nodes", ("Words.",), (table,), (Picture("figure", "A figure."),))
    assert Section.from_dict(json.loads(json.dumps(section.to_dict()))) == section
