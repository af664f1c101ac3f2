"""The tables of metrics that commands print, read back by the headings of their columns."""

from __future__ import annotations

import re


def metric_rows(printed: str) -> list[dict[str, str]]:
    """The rows below the headings, from "method" and "found" to the last metric; headings are without their arrows.

    Only the first cell of a row has spaces in it.
    """
    lines = printed.splitlines()
    ((number, metrics),) = [
        (number, found[1])
        for number, line in enumerate(lines)
        if (found := re.fullmatch(r"method +found +(.*[▼▲])", line))
    ]
    headings = ["method", "found", *re.findall(r"(\S.*?) [▼▲]", metrics)]
    rows = [line.strip().rsplit(maxsplit=len(headings) - 1) for line in lines[number + 1 :]]
    return [dict(zip(headings, row, strict=True)) for row in rows]
