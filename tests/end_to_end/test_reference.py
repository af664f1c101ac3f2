"""The pages in `docs/reference/`: complete, and true to the code."""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import butfor
from butfor.certificate import Certificate, record
from butfor.cli import main
from butfor.graph.disk import layout
from butfor.models import checkpoint
from butfor.result import schema
from butfor.result.table import COLUMNS
from butfor.runs import Folder, Run, folder
from butfor.runs.shards import WHOLE
from public_names import public_names

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "butfor"
PAGES = ROOT / "docs" / "reference"
FORMATS = (PAGES / "formats.md").read_text()
STATUSES = (PAGES / "statuses.md").read_text()


def on_pages() -> list[str]:
    """The names that the pages describe."""
    found = re.findall(r"^::: (\S+)$", "\n".join(page.read_text() for page in PAGES.glob("*.md")), flags=re.MULTILINE)
    assert len(found) > 80
    return found


def test_every_public_name_is_on_one_page() -> None:
    described = on_pages()
    assert sorted(described) == sorted(public_names())


def test_members_that_a_page_lists_are_there() -> None:
    text = "\n".join(page.read_text() for page in PAGES.glob("*.md"))
    listed = re.findall(r"^::: (\S+)\n    options:\n      members: \[(.*)\]$", text, flags=re.MULTILINE)
    assert len(listed) >= 5
    for name, members in listed:
        for member in members.split(", "):
            assert hasattr(public_names()[name], member), f"{name}.{member}"


def test_the_map_names_every_page() -> None:
    linked = re.findall(r"\]\((\S+?\.md)\)", (PAGES / "index.md").read_text())
    assert sorted(linked) == sorted(page.name for page in PAGES.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_links_within_the_reference_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)(?:#([\w-]+))?\)", page.read_text()):
        text = (PAGES / target if target else page).read_text()
        slugs = [
            re.sub(r"[^\w-]+", "-", heading.lower()).strip("-")
            for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
        ]
        assert not anchor or anchor in [re.sub(r"-+", "-", slug) for slug in slugs], f"{target}#{anchor}"


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "scripts" / "command_line.py"))
    written = (PAGES / "command-line.md").read_text()
    assert written == script["page"](), "run python docs/scripts/command_line.py"
    assert "--certificate" in written


# Statuses and notes.

# Where results are made; what else says sentences to people is not part of a result.
ROOMS = ["certificate", "edits", "executors", "graph", "methods", "oracle", "predict", "problem", "result"]
FILES = ["graphs", "pipeline", "session", "spread"]


def sentences() -> Iterator[str]:
    """What the code says in whole sentences, with … for what differs; messages of errors have no full stop."""
    paths = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    for path in [*paths, *(SOURCE / f"{name}.py" for name in FILES)]:
        tree = ast.parse(path.read_text())
        parts = {id(part) for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for part in text.values}
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in parts | docstrings or not isinstance(node, (ast.Constant, ast.JoinedStr)):
                continue
            values = node.values if isinstance(node, ast.JoinedStr) else [node]
            said = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in values)
            if re.search(r"\w\w.* .*\.$", said):
                yield re.sub("…+", "…", said.replace("{}", "…"))


def test_every_sentence_that_a_result_can_say_is_explained() -> None:
    said = list(sentences())
    assert len(said) > 20
    cells = {cell.strip() for row in STATUSES.splitlines() for cell in row.strip("|").split("|")}
    assert [sentence for sentence in said if sentence not in cells] == []


def test_every_status_is_in_the_table_with_its_sentence() -> None:
    for status in butfor.Status:
        assert f"\n| `{status}` | {status.sentence} | " in STATUSES


# Formats.


def test_versions_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| \[(.*?)\].*\| (\d+) \| ([\d, ]+) \|$", FORMATS, flags=re.MULTILINE)
    explorer = (SOURCE / "pages" / "static" / "explorer" / "files.js").read_text()
    (saved,) = re.findall(r'butfor: "explorer", version: (\d+)', explorer)
    known = {
        "result line": (schema.SCHEMA, schema.READABLE),
        "manifest of a result folder": (folder.LAYOUT, [folder.LAYOUT]),
        "certificate": (record.FORMAT, [record.FORMAT]),
        "graph folder": (layout.VERSION, [layout.VERSION]),
        "checkpoint": (checkpoint.SCHEMA, [checkpoint.SCHEMA]),
        "explorer's file": (int(saved), [int(saved)]),
    }
    assert {name: (int(writes), list(map(int, reads.split(", ")))) for name, writes, reads in rows} == {
        name: (writes, list(reads)) for name, (writes, reads) in known.items()
    }


def example_of(heading: str) -> Any:
    """The JSON in a section of the page."""
    section = FORMATS[FORMATS.index(f"\n## {heading}\n") :]
    (text,) = re.findall(r"```json\n(.*?)```", section, flags=re.DOTALL)[:1]
    return json.loads(text)


def test_the_result_line_is_that_of_the_example() -> None:
    shown = example_of("Result lines")
    result = butfor.explain(*butfor.example(), 597)
    plain = json.loads(json.dumps(result.to_dict()))
    assert list(shown)[:3] == ["schema", "target", "status"]
    assert shown.keys() == plain.keys()
    for side in ("before", "after"):  # processors differ in the last digits
        assert shown[side].pop("probability") == pytest.approx(plain[side].pop("probability"), abs=1e-5)
    varying = {"seconds", "versions", "evaluations"}
    assert {name: shown[name] for name in shown.keys() - varying} == {
        name: plain[name] for name in plain.keys() - varying
    }
    assert butfor.Counterfactual.from_dict(example_of("Result lines")).removed_edges == result.removed_edges


def test_the_manifest_is_that_of_the_example(tmp_path: Path) -> None:
    session, method = butfor.prepare(*butfor.example()), butfor.Exact()
    with Folder(tmp_path / "results", Run.of(session, method), butfor.Budget()) as results:
        results.append(session.explain(597, method))
    written = json.loads((tmp_path / "results" / "manifest.json").read_text())
    assert {**written, "versions": None} == {**example_of("Result folders"), "versions": None}
    assert f"`{WHOLE}`, the whole result line" in FORMATS
    (shard,) = (tmp_path / "results").glob("part-*")
    assert f"results/{shard.name} " in FORMATS


def test_the_columns_of_a_table_are_listed_in_their_order() -> None:
    section = FORMATS[FORMATS.index("| column | type |") :].split("\n\n")[0]
    listed: list[tuple[str, str]] = []
    for row in section.splitlines()[2:]:
        names, kinds = (cell.strip() for cell in row.strip("|").split("|")[:2])
        each = re.findall(r"`(\w+)`", names)
        types = kinds.split(", ")
        listed += zip(each, types * (len(each) // len(types)), strict=True)
    assert listed == list(COLUMNS.items())


def test_the_certificate_holds() -> None:
    session = butfor.prepare(*butfor.example())
    assert session.check(Certificate.from_plain(example_of("Certificates"))).tried


def test_the_graph_folder_is_that_of_the_tables(tmp_path: Path) -> None:
    for name in ("nodes", "edges"):
        (table,) = re.findall(rf"```text\n# {name}\.csv\n(.*?)```", FORMATS, flags=re.DOTALL)
        (tmp_path / f"{name}.csv").write_text(table)
    nodes, edges = str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv")
    out = str(tmp_path / "people")
    assert main(["convert", edges, "--node-table", nodes, "--undirected", "--out", out, "--quiet"]) == 0
    assert json.loads((tmp_path / "people" / "graph.json").read_text()) == example_of("Graph folders")


def test_the_checkpoint_is_that_of_the_package() -> None:
    packaged = SOURCE / "models" / "pretrained" / "tree-cycles" / "model.json"
    assert json.loads(packaged.read_text()) == example_of("Checkpoints")


def test_the_rules_can_be_used(tmp_path: Path) -> None:
    model, data = butfor.example()
    data.is_frozen = torch.zeros(data.num_edges, dtype=torch.bool)
    space = butfor.EditSpace.from_dict(example_of("Rules"))
    result = butfor.explain(model, data, 605, butfor.Greedy(), space=space)
    assert result.found
    assert (602, 603) not in result.removed_edges


def test_what_the_explorer_saves_has_the_parts_that_it_reads() -> None:
    shown = example_of("What the explorer saves")
    explorer = SOURCE / "pages" / "static" / "explorer"
    (kept,) = re.findall(r'saveJson\("\.json", \{(.*?)\}\)', (explorer / "files.js").read_text())
    assert re.findall(r"(\w+):", kept) == list(shown)
    (state,) = re.findall(r"const \{ (.*?) \} = isObject\(plain\)", (explorer / "state.js").read_text())
    assert state.split(", ") == list(shown["state"])
    session = butfor.prepare(*butfor.example())
    assert shown["ids"] == [session.model_id, session.graph_id]


def test_what_the_reference_calls_a_module_is_one() -> None:
    text = (PAGES / "index.md").read_text()
    for name in re.findall(r"`(butfor\.[a-z]+)`", text):
        assert importlib.import_module(name)
