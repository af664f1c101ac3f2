"""What the documents show runs as written."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from butfor.cli import main

ROOT = Path(__file__).resolve().parents[1]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


def test_quickstart_runs_as_written(tmp_path: Path) -> None:
    code = blocks("README.md")[0]
    assert len(code.strip().splitlines()) <= 12
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    sentence, status = run.stdout.strip().splitlines()
    assert re.match(r"Node 597 is predicted '\w+' \(0\.\d\d\)\. But for th\w+ \d+ of its 14 edges", sentence)
    assert status.endswith(".")
    assert (tmp_path / "quickstart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(("document", "number"), [("README.md", 1), ("docs/pyg.md", 0)])
def test_other_python_runs_as_written(document: str, number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", blocks(document)[number]]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.count("it would be") >= 1 or run.stdout.count("It would be") >= 1


@pytest.mark.slow
def test_shell_commands_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^\$ butfor (.*)$", text, flags=re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        assert main([*shlex.split(command), *(["--quiet"] if command.startswith(("train", "explain")) else [])]) == 0
    assert (tmp_path / "node-2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_method_in_the_design_document_passes_the_contract(tmp_path: Path) -> None:
    (code,) = blocks("docs/design.md")
    module = tmp_path / "first_single.py"
    module.write_text(code)
    check = "from first_single import FirstSingle; from butfor.testing import check_method; check_method(FirstSingle())"
    subprocess.run([sys.executable, "-c", check], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_proof_in_the_certificate_document_holds() -> None:
    (code,) = blocks("docs/certificate.md")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_links_in_the_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize(
    "method",
    ["Exact", "Greedy", "CFGNN", "RandomPerturbation", "KeepEgo", "RemoveEgo", "RemoveSubgraph", "PRBCD", "GRBCD"],
)
def test_every_method_is_in_the_readme(method: str) -> None:
    assert f"`{method}`" in (ROOT / "README.md").read_text()


def test_signs_on_the_support_page_are_those_of_its_benchmark() -> None:
    support = runpy.run_path(str(ROOT / "benchmarks" / "support.py"))
    page = (ROOT / "docs" / "support.md").read_text()
    rows = re.findall(r"^\|.*\|$", page, flags=re.MULTILINE)[2:]
    cells = [row.strip("|").split("|")[3:] for row in rows]
    assert all(len(signs) == len(support["METHODS"]) for signs in cells)
    assert {sign.strip() for signs in cells for sign in signs} <= set(support["SIGNS"])
    for sign, meaning in support["SIGNS"].items():
        assert f"- `{sign}`: {meaning}\n" in page
    # Every sign that needs one has a reason, and no other.
    used = {sign for sign in (support["REFUSED"], support["NOTHING"]) if any(f" {sign} |" in row for row in rows)}
    assert set(re.findall(r"Why `(.)`:\n\n- ", page)) == used
