"""The paper's figures: histograms of sizes, and what each method reaches."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib.image
import pytest

from reproduction import METHODS, NAMES, Done, table

pytestmark = pytest.mark.published


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "methods"),
    [
        ("figure-2", ["random"]),
        ("figure-3", ["1hop"]),
        ("figure-4", ["rm-1hop"]),
        ("figure-5", ["cf-gnn"]),
        ("figure-frontier", METHODS),
    ],
)
def test_figures_are_svg_and_png(run: Done, figure: str, methods: list[str]) -> None:
    path = run.folder / "figures" / f"{figure}.svg"
    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10
    for node in root.iter():
        for key, value in node.attrib.items():
            assert not key.endswith("href") or value.startswith(("#", "data:"))
    # Matplotlib notes in comments what it draws as outlines.
    text = path.read_text(encoding="utf-8")
    names = dict(zip(METHODS, NAMES, strict=True))
    for method in methods:
        assert names[method] in text
    if len(methods) == 1:
        row = next(row for row in table(run.folder, "table-2-published-all") if row["method"] == methods[0])
        assert f"{row['found']} of {row['total']}" in text
    picture = matplotlib.image.imread(path.with_suffix(".png"))
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.01
