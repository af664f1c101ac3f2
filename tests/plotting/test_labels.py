"""Words in a picture: long ones are shortened, and each stands where it covers the least."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from butfor.plotting.labels import Lettering, shortened


def test_a_long_name_loses_its_middle() -> None:
    assert shortened("acct-039") == "acct-039"
    assert shortened("https://example.org/entity/00115") == "https://…ity/00115"
    assert all(len(shortened("x" * length)) == min(length, 18) for length in range(40))


def test_a_note_avoids_nodes_and_lines_and_other_notes() -> None:
    axes = Figure(figsize=(6, 6)).add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 432), ylim=(0, 432))
    # A node in the middle; others to its right and left, and a line above it.
    points = np.array([(216.0, 216.0), (270.0, 216.0), (160.0, 216.0)])
    lines = np.array([[(216.0, 226.0), (216.0, 400.0)]])
    lettering = Lettering(axes, points, np.full(3, 8.0), lines)
    lettering.notes({0: ["feature 3: 0 → 1"]})
    (text,) = axes.texts
    assert text.get_position()[1] < 208
    lettering.notes({0: ["feature 3: 0 → 1"]})
    assert axes.texts[1].get_position() != text.get_position()
