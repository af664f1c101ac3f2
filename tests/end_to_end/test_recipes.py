"""The recipes of CONTRIBUTING.md, followed to the letter: in packages outside `src/`, and in a copy of the repository.

What they promise happens, and no other test breaks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Whoever tries the first recipe in the repository itself has no use for tests that do so elsewhere.
elsewhere = pytest.mark.skipif(
    (ROOT / "src" / "butfor" / "methods" / "first_edge.py").exists(), reason="the recipe is followed in the repository"
)
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text()) if kind == language]


def block(language: str, contains: str) -> str:
    (found,) = [text for text in blocks(language) if contains in text]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from, where the packages of the recipes are installed as they are written there."""
    site = tmp_path_factory.mktemp("site")
    for title in ("# first_edge/search.py", "# toy_graphs.py"):
        path = site / title.removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block("python", title))
    declared = "\n".join(
        line.replace("project.entry-points.", "").replace('"', "")
        for group in ("butfor.methods", "butfor.datasets")
        for line in block("toml", group).splitlines()
        if not line.startswith("#")
    )
    info = site / "recipes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: recipes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(declared)
    return site


# Runs the commands that it is given, one after another, and prints what each said and returned as a line of JSON.
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from butfor.cli import main
for line in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(line.split())
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def python(site: Path, code: str, *arguments: str, cwd: Path) -> str:
    """What Python prints where the packages are installed; the tests' own helpers can be imported too."""
    path = os.pathsep.join([str(site), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "160"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def butfor(site: Path, cwd: Path, *lines: str) -> list[tuple[int, str, str]]:
    """The exit code, output and errors of each command."""
    return [tuple(json.loads(line)) for line in python(site, COMMANDS, *lines, cwd=cwd).splitlines()]


@pytest.mark.slow
@elsewhere
def test_the_method_passes_the_contract_and_is_in_the_list_of_all_tests(site: Path) -> None:
    told = python(
        site,
        "from method_list import ALL; from butfor.testing import check_method; from butfor.methods import METHODS\n"
        "check_method(ALL['first-edge']); print(list(METHODS)[-1], ALL['first-edge'])",
        cwd=site,
    )
    assert told == "first-edge FirstEdge(chunk=16)\n"


@pytest.mark.slow
def test_method_and_loader_work_on_the_command_line(site: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.edges").write_text("0 1\n1 2\n2 3\n3 4\n4 5\n5 0\n")
    search = "--nodes all --method first-edge --chunk 4 --quiet"
    lines = {
        "datasets": 0,
        "datasets mine.edges": 0,
        "train toy-ring --epochs 20 --quiet --out named": 0,
        "train mine.edges --epochs 20 --quiet --out file": 0,
        f"explain --checkpoint named {search} --out named.jsonl": 0,
        f"explain --checkpoint file {search} --out file.jsonl": 0,
        "evaluate named.jsonl": 0,
        "explain --help": 0,
        "explain --checkpoint named --method first-edge --chunk 0": 2,
    }
    told = butfor(site, tmp_path, *lines)
    assert [code for code, _, _ in told] == list(lines.values()), told
    out = dict(zip(lines, (text for _, text, _ in told), strict=True))
    assert "a ring of six nodes with a chord" in out["datasets"]
    assert "12 columns" in out["datasets mine.edges"]
    for name in ("named.jsonl", "file.jsonl"):
        results = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        assert [result["target"] for result in results] == list(range(6))
        assert all(result["method"] == {"name": "FirstEdge", "settings": {"chunk": 4}} for result in results)
    # The label that people see is the name of the entry point, with what is unusual about the settings.
    assert "first-edge, chunk=4" in out["evaluate named.jsonl"]
    assert "Hyper-parameters of --method first-edge" in out["explain --help"]
    assert "how many edits are put to the model at once" in out["explain --help"]
    assert told[-1][2].strip() == "error: chunk is 0; give at least 1"


@pytest.mark.slow
@elsewhere
def test_without_the_package_neither_method_nor_dataset_is_known(tmp_path: Path) -> None:
    method, dataset = butfor(tmp_path, tmp_path, "explain --method first-edge", "datasets toy-ring")
    assert method[0] == dataset[0] == 2
    assert "first-edge" in method[2]
    assert "toy-ring" in dataset[2]


@pytest.mark.slow
def test_the_metric_has_a_column(site: Path, tmp_path: Path) -> None:
    lines = (
        "train toy-ring --epochs 2 --quiet --out model",
        "explain --checkpoint model --nodes all --quiet --out cfs.jsonl",
        "evaluate cfs.jsonl",
    )
    *_, (_, without, _) = butfor(site, tmp_path, *lines)
    assert "work" not in without
    metric = block("python", "register_metric(")
    told = python(site, f"{metric}\nfrom butfor.cli import main; main(['evaluate', 'cfs.jsonl'])", cwd=tmp_path)
    results = [json.loads(line) for line in (tmp_path / "cfs.jsonl").read_text().splitlines()]
    mean = sum(result["evaluations"] for result in results) / len(results)
    *_, headings, row = told.splitlines()
    assert headings.endswith("work ▼")
    assert row.split()[-1] == f"{mean:.0f}"


EXAMPLE = """
    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, 597, butfor.FirstEdge())
        <Counterfactual of node 597: optimal, 1 edit, 'motif' → 'base'>
"""
METRIC = '''def proved(results: Sequence[Counterfactual]) -> float:
    """Of the targets, the share whose counterfactual is proved to be the best; 0 to 1, high is good."""
    return sum(result.status is Status.OPTIMAL for result in results) / len(results) if results else math.nan


'''
LOADER = '''"""Adjacency lists: on each line a node and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data

from butfor.boundary.reading import read_bytes, reading
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_adj"]


def read_adj(path: Path) -> Data:
    """Read a graph in which every node has one feature, the same for all.

    Raises:
        GraphError: the file cannot be read.
    """
    content = read_bytes(path)
    with reading(path, kind="as .adj"):
        lines = [list(map(int, line.split())) for line in content.decode().splitlines()]
        edge_index = torch.tensor([(line[0], node) for line in lines for node in line[1:]]).T
        data = Data(x=torch.ones(len(lines), 1), edge_index=edge_index)
    validate(data)
    return data
'''


def insert(path: Path, after: str, text: str) -> None:
    """Put a text behind the only place where this one stands."""
    before, behind = path.read_text().split(after)
    path.write_text(before + after + text + behind)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with a method, a metric and a file format more, as the recipes add them."""
    copy = tmp_path_factory.mktemp("copy") / "repository"
    # With the kernels that numba has compiled (files keep their times, so it finds them up to date), but without what
    # another process may be writing just now.
    passing = shutil.ignore_patterns("*.pyc*", "*.tmp.*")
    for folder in ("src", "tests", "benchmarks", "docs"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=passing)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy2(ROOT / name, copy)
    package = copy / "src" / "butfor"

    _, code = block("python", "# first_edge/search.py").split("\n", 1)
    (package / "methods" / "first_edge.py").write_text(f'"""The first edge that does it."""\n\n{code}')
    methods = package / "methods" / "__init__.py"
    line = "from butfor.methods.exact import Exact as Exact\n"
    insert(methods, line, "from butfor.methods.first_edge import FirstEdge as FirstEdge\n")
    insert(methods, '        "exact": Exact,\n', '        "first-edge": FirstEdge,\n')
    line = "from .methods import Exact as Exact\n"
    insert(package / "__init__.pyi", line, "from .methods import FirstEdge as FirstEdge\n")
    line = "| method | on the command line | what it does |\n|---|---|---|\n"
    row = "| `FirstEdge` | `first-edge` | the first single edit that reaches the goal |\n"
    insert(copy / "docs" / "concepts" / "methods.md", line, row)

    metrics = package / "evaluation" / "metrics.py"
    columns = "# The columns, from left to right.\n"
    metrics.write_text(metrics.read_text().replace(columns, METRIC + columns))
    line = "on_graphs=marked_only),\n"
    insert(metrics, line, '    Metric("proved", proved, "proved", better="high"),\n')

    (package / "datasets" / "adj.py").write_text(LOADER)
    line = '    Loader("butfor.datasets.pt:read_pt", suffix=".pt"),\n'
    insert(package / "datasets" / "registry.py", line, '    Loader("butfor.datasets.adj:read_adj", suffix=".adj"),\n')

    insert(package / "methods" / "first_edge.py", "how many edits are put to the model at once.\n", EXAMPLE)
    insert(copy / "docs" / "reference" / "methods.md", "# Methods\n", "\n::: butfor.FirstEdge\n")
    in_copy(copy, "docs/scripts/command_line.py")
    return copy


def in_copy(repository: Path, *command: str) -> str:
    """What a command prints in the copy, whose package is the one that is imported."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *command],
        env={**settings, "PYTHONPATH": str(repository / "src")},
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passed(repository: Path, *arguments: str) -> int:
    """How many tests pass in the copy; none may fail."""
    temporary = repository.parent / "temporary"
    told = in_copy(
        repository, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--basetemp={temporary}", *arguments
    )
    (count,) = re.findall(r"(\d+) passed", told)
    return int(count)


@elsewhere
@pytest.mark.slow
def test_a_copy_of_the_repository_has_what_the_recipes_add(repository: Path) -> None:
    (repository / "ring.adj").write_text("0 1 2\n1 0 2\n2 0 1\n")
    told = in_copy(
        repository,
        "-c",
        "import butfor; from butfor.datasets import load_graph; from butfor.evaluation import evaluate\n"
        "print(butfor.__file__, butfor.FirstEdge(), load_graph('ring.adj').num_edges, *evaluate([]).values)",
    )
    place, method, edges, *metrics = told.split()
    assert Path(place) == repository / "src" / "butfor" / "__init__.py"
    assert (method, edges) == ("FirstEdge(chunk=16)", "6")
    assert metrics[-1] == "proved"


NOT_LONG = ("-m", "not slow and not published")


@elsewhere
@pytest.mark.slow
def test_a_method_that_is_added_passes_what_its_recipe_names(repository: Path) -> None:
    document = "tests/end_to_end/test_documents.py"
    named = ("-k", "first-edge or table_of_methods", "-m", "")
    assert passed(repository, "tests/test_testing.py", document, *named) >= 10
    # What the new method can do has not been tried yet, and the test says how that is done.
    with pytest.raises(
        AssertionError, match=r"docs/results/support\.md lacks FirstEdge; run python -m benchmarks\.support --wr"
    ):
        passed(repository, document, "-k", "support_page")


@elsewhere
@pytest.mark.slow
def test_a_method_that_is_added_has_its_place_in_the_reference(repository: Path) -> None:
    reference = ("tests/end_to_end/test_docstrings.py", "tests/end_to_end/test_reference.py")
    assert passed(repository, *reference, "-k", "FirstEdge or has_an_example or on_one_page or up_to_date") == 5
    assert "--method first-edge" in (repository / "docs" / "reference" / "command-line.md").read_text()


@elsewhere
@pytest.mark.slow
def test_a_metric_and_a_file_format_that_are_added_break_no_test(repository: Path) -> None:
    metrics = ("tests/evaluation", "tests/cli/test_evaluate.py", "tests/cli/test_explain_links.py")
    formats = ("tests/datasets", "tests/cli/test_datasets.py")
    assert passed(repository, *metrics, *formats, *NOT_LONG) > 350


@elsewhere
@pytest.mark.slow
def test_what_is_added_passes_the_checks_of_the_source(repository: Path) -> None:
    in_copy(repository, "-m", "ruff", "format", "--check", "--no-cache", "src")
    in_copy(repository, "-m", "ruff", "check", "--no-cache", "src")
    in_copy(repository, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache")
    if (ROOT / ".mypy_cache").is_dir():  # from nothing it takes half a minute
        shutil.copytree(ROOT / ".mypy_cache", repository / ".mypy_cache")
    in_copy(repository, "-m", "mypy")


def test_every_path_that_a_recipe_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+)`", text))
    invented = {"src/butfor/methods/first_edge.py", "tests/methods/test_first_edge.py"}
    assert invented < named
    missing = sorted(path for path in named - invented if not (ROOT / path).exists())
    assert not missing


def test_every_test_file_is_named_after_what_it_tests() -> None:
    """`tests/<room>/test_<file>.py` mirrors `src/butfor/<room>/<file>.py`; a theme may follow the file's name.

    What a room does as a whole is tested in `test_main.py`.
    """
    source = ROOT / "src" / "butfor"
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.parent.relative_to(ROOT / "tests")
        if place.parts[:1] == ("end_to_end",):
            continue
        name = path.stem.removeprefix("test_")
        modules = {"main" if module.stem == "__init__" else module.stem for module in (source / place).glob("*.py")}
        modules |= {folder.name for folder in (source / place).iterdir()}
        assert any(name == module or name.startswith(f"{module}_") for module in modules), path
