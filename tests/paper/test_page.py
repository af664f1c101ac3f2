"""The page of a reproduction: complete, well-formed, and nothing on it comes from elsewhere."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest

from butfor.errors import StoreError
from butfor.evaluation.tables import Table
from butfor.paper.page import render_page
from butfor.paper.sections import Picture, Section
from reproduction import Page

if TYPE_CHECKING:
    from pathlib import Path

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"><defs><path id="a"/></defs></svg>'

RESULTS = Table(
    "results",
    'Ours & "theirs" <Table 2>',
    ("dataset", "method", "fid.", "paper", "size", "paper"),
    (
        ("Trees", "`CFGNN`", "0.21", "0.21", "2.0", "2.1"),
        ("", "Exact", "0.10", "–", "1.5", "–"),
        ("Grids", "Exact", "0.07", "–", "1.2", "–"),
        ("Shapes & co", "`a < b`", "0.30", "0.39", "2.3", "2.4"),
        ("", "Exact", "0.11", "–", "1.1", "–"),
    ),
    (),
    ("fid. < 1 & lower is better.",),
    left=2,
)
GRAPHS = Table("graphs", "The graphs", ("", "Trees", "Grids"), (("nodes", "871", "1231"), ("edges", "1", "2")), ())
WORDS = Table("words", "Departures", ("what", "paper", "code"), (("loss", "halved", "not halved"),), (), left=3)
SECTIONS = [
    Section(
        "results",
        "Methods & results",
        'sgd, momentum="0.9"',
        ("Run `reproduce --out <folder>`.", "</section><script>alert(1)</script>"),
        (RESULTS, GRAPHS),
        (Picture("sizes", 'Sizes of `CFGNN`: "few" & <small>.'), Picture("losses", "Losses.")),
    ),
    Section("departures", "What differs", "", tables=(WORDS,)),
]
FACTS = {"torch": "2.13 <cpu>", "seeds": "42 & 43"}


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    for name in ("sizes", "losses"):
        (tmp_path / f"{name}.svg").write_text(SVG)
    return tmp_path


@pytest.fixture
def page(figures: Path) -> Page:
    return Page(render_page(SECTIONS, figures, FACTS, title="A `page` & more", lead="Ours beside <theirs>."))


def table_of(table: Table, figures: Path) -> str:
    text = render_page([Section("part", "Part", "", tables=(table,))], figures, {}, title="", lead="")
    return text[text.index("<table") : text.index("</table>")]


def test_everything_is_on_the_page(page: Page) -> None:
    assert page.text("h1") == page.text("title") == "A page & more"
    assert "Ours beside <theirs>." in page.text("header")
    assert [part["id"] for part in page.all("section")] == ["results", "departures", "made-with"]
    for section in SECTIONS:
        assert section.title in page.text("h2")
        assert section.settings in page.text("section", "p")
        for table in section.tables:
            assert table.title in page.text("caption")
            assert all(note in page.text("section", "p") for note in table.notes)
            cells = [cell.replace("`", "") for row in (table.headings, *table.rows) for cell in row]
            assert all(cell in page.text("table") for cell in cells)
        for picture in section.pictures:
            assert picture.caption.replace("`", "") in page.text("figcaption")
    assert page.text("dt") == "torchseeds"
    assert page.text("dd") == "2.13 <cpu>42 & 43"


def test_the_contents_lead_to_the_sections(page: Page) -> None:
    anchors = [link["href"][1:] for link in page.all("a") if link["href"] and link["href"].startswith("#")]
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert anchors == ["results", "departures", "made-with"]
    assert len(set(identities)) == len(identities)
    assert set(anchors) <= set(identities)
    assert "Methods & results" in page.text("nav")


def test_nothing_comes_from_elsewhere(page: Page, figures: Path) -> None:
    references = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"href", "src", "srcset", "action", "data", "poster"}
    ]
    assert all(re.match(r"#|data:|(tables|figures)/[\w.]+$", reference or "") for reference in references), references
    assert not {"script", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    text = render_page(SECTIONS, figures, FACTS, title="", lead="")
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy


def test_files_are_linked(page: Page) -> None:
    links = {link["href"] for link in page.all("a")}
    tables = {f"tables/{name}.{kind}" for name in ("results", "graphs", "words") for kind in ("csv", "md")}
    pictures = {f"figures/{name}.{kind}" for name in ("sizes", "losses") for kind in ("svg", "png")}
    assert tables | pictures <= links


def test_pictures_are_inside(page: Page) -> None:
    sizes, losses = page.all("img")
    start = "data:image/svg+xml;base64,"
    for image in (sizes, losses):
        assert image["src"] is not None
        assert image["src"].startswith(start)
        assert base64.b64decode(image["src"].removeprefix(start)).decode() == SVG
    assert sizes["alt"] == 'Sizes of CFGNN: "few" & <small>.'
    assert losses["alt"] == "Losses."


def test_text_is_never_markup(page: Page, figures: Path) -> None:
    assert "</section><script>alert(1)</script>" in page.text("section", "p")
    assert "reproduce --out <folder>" in page.text("p", "code")
    assert "a < b" in page.text("th", "code")
    assert next(box["aria-label"] for box in page.all("div") if "tabindex" in box) == 'Ours & "theirs" <Table 2>'
    odd = Section('a"b<c', "Odd", "", tables=(Table('t"&', "T", ("a",), (("1",),), ()),))
    other = Page(render_page([odd], figures, {}, title='</title>"', lead=""))
    assert other.all("section")[0]["id"] == 'a"b<c'
    assert other.text("title") == '</title>"'
    assert {"tables/t%22%26.csv", "#a%22b%3Cc"} <= {link["href"] for link in other.all("a")}


def test_rows_that_leave_out_their_first_cell_are_a_group(figures: Path) -> None:
    text = table_of(RESULTS, figures)
    assert text.count("<tbody>") == 3
    assert re.findall(r'scope="rowgroup" rowspan="(\d)"[^>]*>([^<]*)', text) == [
        ("2", "Trees"),
        ("1", "Grids"),
        ("2", "Shapes &amp; co"),
    ]
    # For narrow screens, which have no room for the first column.
    assert text.count('<tr class="group">') == 3
    assert table_of(GRAPHS, figures).count("<tbody>") == 1
    assert "rowgroup" not in table_of(GRAPHS, figures)


def test_cells_know_what_they_are(figures: Path) -> None:
    heads = re.findall(r'<th scope="col" class="([^"]*)"(?: aria-label="([^"]*)")?', table_of(RESULTS, figures))
    assert heads == [
        ("text pinned pin-0", ""),
        ("text pinned pin-1", ""),
        ("primary", ""),
        ("secondary", "fid., paper"),
        ("primary", ""),
        ("secondary", "size, paper"),
    ]
    assert re.findall(r'<th scope="row"[^>]*>([^<]*)', table_of(GRAPHS, figures)) == ["nodes", "edges"]
    assert '<td class="primary">871</td>' in table_of(GRAPHS, figures)
    twice = Table("t", "T", ("", "mean", "sd", "mean", "sd"), (), ())
    assert "secondary" not in table_of(twice, figures), "there is nothing they could belong to"
    # Were all columns in sight, a narrow screen could not reach the last.
    assert "pinned" not in table_of(WORDS, figures)


@pytest.mark.parametrize("left", range(6))
def test_any_number_of_columns_may_be_text(left: int, figures: Path) -> None:
    rows = (("a" * 90, "b", "c", "d", "e"), ("", "b", "", "d", "e"))
    for some in (rows, rows[:1], ()):
        table = Table("t", "T", ("one", "two", "three", "four", "five"), some, (), left=left)
        page = Page(render_page([Section("part", "Part", "", tables=(table,))], figures, {}, title="", lead=""))
        assert len(page.all("table")) == 1


def test_a_missing_picture_is_named(figures: Path) -> None:
    (figures / "losses.svg").unlink()
    with pytest.raises(StoreError, match=re.escape(str(figures / "losses.svg"))):
        render_page(SECTIONS, figures, FACTS, title="", lead="")
