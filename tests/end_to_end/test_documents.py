"""What the documents show runs as written, and what they list is complete."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from butfor.methods import METHODS
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """Run code as a script of its own in an empty folder, but in this process: what does it print?"""
    monkeypatch.chdir(tmp_path)

    def run(code: str) -> str:
        capsys.readouterr()
        exec(compile(code, "document", "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_quickstart_runs_as_written(tmp_path: Path) -> None:
    """In a process of its own, as a newcomer would run it."""
    code = blocks(ROOT / "README.md")[0]
    assert len(code.strip().splitlines()) <= 12
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert printed is not None
    assert done.stdout == printed[1]
    assert (tmp_path / "quickstart.png").read_bytes().startswith(b"\x89PNG")


# The recipes of CONTRIBUTING.md are packages of several files: test_recipes.py follows them.
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if blocks(path)))
def test_python_of_a_document_runs_as_written(name: str, printed: Callable[[str], str]) -> None:
    code = "\n".join(blocks(DOCS / name))
    assert "t would be" in printed(code) or "print(" not in code


def test_documents_that_must_have_python_have_some() -> None:
    assert {path.name for path in DOCUMENTS if blocks(path)} >= {"README.md", "proofs.md", "pyg.md", "sessions.md"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_methods_has_every_method_by_both_its_names() -> None:
    text = (DOCS / "concepts" / "methods.md").read_text()
    table = text[text.index("\n| method |") :].split("\n\n")[0].strip()
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    listed = {pair for row in rows for pair in zip(named(row[0]), named(row[1]), strict=True)}
    ours = {name: method for name, method in METHODS.items() if method.__module__.startswith("butfor.")}
    assert listed == {(method.__name__, name) for name, method in ours.items()}
    assert len(listed) == sum(len(named(row[0])) for row in rows)


def test_the_table_of_a_session_names_what_it_has() -> None:
    text = (DOCS / "how-to" / "sessions.md").read_text()
    table = text[text.index("| member |") :].split("\n\n")[0]
    listed = {name.split("(")[0] for row in table.splitlines()[2:] for name in named(row.strip("|").split("|")[0])}
    assert len(listed) >= 10
    assert listed <= {*dir(Session), *Session.__dataclass_fields__}


def test_every_room_of_the_house_is_in_its_plan() -> None:
    plan = (DOCS / "design.md").read_text()
    rooms = [path.name for path in (ROOT / "src" / "butfor").iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) >= 15
    assert [room for room in rooms if f"`{room}/`" not in plan] == []


def test_signs_on_the_support_page_are_those_of_its_benchmark() -> None:
    support = runpy.run_path(str(ROOT / "benchmarks" / "support.py"))
    page = (DOCS / "results" / "support.md").read_text()
    headings, _, *rows = re.findall(r"^\|.*\|$", page, flags=re.MULTILINE)
    columns = [heading.strip() for heading in headings.strip("|").split("|")[3:]]
    lacking = [name for name in support["METHODS"] if name not in columns]
    assert not lacking, f"docs/results/support.md lacks {', '.join(lacking)}; run python -m benchmarks.support --write"
    assert columns == list(support["METHODS"])
    cells = [row.strip("|").split("|")[3:] for row in rows]
    assert all(len(signs) == len(columns) for signs in cells)
    assert {sign.strip() for signs in cells for sign in signs} <= set(support["SIGNS"])
    for sign, meaning in support["SIGNS"].items():
        assert f"- `{sign}`: {meaning}\n" in page
    # Every sign that needs one has a reason, and no other.
    used = {sign for sign in (support["REFUSED"], support["NOTHING"]) if any(f" {sign} |" in row for row in rows)}
    assert set(re.findall(r"Why `(.)`:\n\n- ", page)) == used
