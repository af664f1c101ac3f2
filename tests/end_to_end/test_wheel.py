"""The sdist and the wheel have all that the package needs, and the wheel runs in an environment without extras."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from environments import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

# Import every module but those of the command line, and print the errors of those that cannot be.
IMPORTS = """
import importlib, pkgutil, butfor

for module in pkgutil.walk_packages(butfor.__path__, "butfor.", onerror=print):
    if not module.name.startswith("butfor.cli."):
        importlib.import_module(module.name)
"""

# What needs an extra, and which one.
NEEDS_AN_EXTRA = {
    "cf.plot()": "plot",
    "draw_molecule(['C', 'O'], [(0, 1, 'single')])": "plot",
    "size_histograms([], 'Sizes')": "plot",
    "butfor.explain(model, data, [605], executor=butfor.Ray())": "ray",
    "butfor.explain(model, data, [605]).to_frame()": "tables",
    "write_shard(Path('shard.parquet'), [cf])": "tables",
    "list(read_shard(Path('shard.parquet')))": "tables",
    "butfor.datasets.load_graph('edges.csv', nodes='edges.csv')": "tables",
    "Table('t', 't', ('a',), (), ({'a': 1},)).csv()": "tables",
    "butfor.widget(model, data)": "notebook",
    "explainers_for(model)": "reproduce",
}

ASK = """
import json
from pathlib import Path
from butfor.errors import InputError
from butfor.evaluation.figures import size_histograms
from butfor.evaluation.tables import Table
from butfor.paper.explainers import explainers_for
from butfor.plotting.molecules.drawing import draw_molecule
from butfor.runs.shards import read_shard, write_shard

said = {}
for call in CALLS:
    try:
        eval(call)
        said[call] = "nothing was missing"
    except InputError as problem:
        said[call] = str(problem)
print(json.dumps(said))
"""


class Built(NamedTuple):
    """The two files of a release."""

    sdist: Path
    wheel: Path

    @property
    def requires(self) -> list[str]:
        """What the wheel requires, with and without extras."""
        with zipfile.ZipFile(self.wheel) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, and the wheel that is built from it."""
    place = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(place), str(ROOT)], check=True, capture_output=True)
    (sdist,), (wheel,) = place.glob("*.tar.gz"), place.glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="module")
def bare(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras."""
    return Environment.of(tmp_path_factory.mktemp("bare") / "env", built.wheel, built.requires)


@pytest.fixture(scope="module")
def shell(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with the command line and nothing else."""
    return Environment.of(tmp_path_factory.mktemp("shell") / "env", built.wheel, built.requires, "cli")


def sources(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_the_package_is_in_the_wheel(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        theirs = set(archive.namelist())
    assert sources(ROOT / "src") <= theirs
    assert {name.split("/")[0].split("-")[0] for name in theirs} == {"butfor"}
    assert not any("__pycache__" in name for name in theirs)


def test_the_sdist_has_the_tests_and_what_they_read(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        theirs = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("src", "tests", "docs", "examples", "benchmarks"):
        assert {f"{folder}/{name}" for name in sources(ROOT / folder)} <= theirs
    assert {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "Makefile", "pyproject.toml"} <= theirs
    assert not any(".venv" in name or "__pycache__" in name for name in theirs)


def test_all_that_the_wheel_requires_is_there(bare: Environment) -> None:
    assert "No broken requirements" in bare.pip("check")


def test_no_module_but_the_command_line_needs_an_extra(bare: Environment, tmp_path: Path) -> None:
    done = bare.run("python", "-c", IMPORTS, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_quickstart_runs_and_each_missing_extra_is_named(bare: Environment, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    quickstart, printed = (
        re.findall(rf"```{kind}\n(.*?)```", readme, flags=re.DOTALL)[0] for kind in ("python", "text")
    )
    *code, plot = quickstart.strip().splitlines()
    assert plot.startswith("cf.plot(")  # which needs an extra
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    calls = {plot: "plot", **NEEDS_AN_EXTRA}
    done = bare.run("python", "-c", "\n".join([*code, f"CALLS = {list(calls)}", ASK]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *words, answers = done.stdout.splitlines()
    assert "\n".join([*words, ""]) == printed
    for call, said in json.loads(answers).items():
        assert re.fullmatch(rf"\w+ is not installed; run: pip install 'butfor\[{calls[call]}\]'", said), (call, said)


@pytest.mark.parametrize("command", ["--help", "datasets", "explain --nodes 3", "demo", "reproduce"])
def test_the_command_line_is_an_extra(bare: Environment, tmp_path: Path, command: str) -> None:
    done = bare.run("butfor", *command.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: cyclopts is not installed; run: pip install 'butfor[cli]'\n"


def test_with_the_command_line_alone_each_other_extra_is_named(shell: Environment, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    trained = shell.run("butfor", "train", "tree-cycles", "--epochs", "1", "--quiet", "--out", "model", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    refused(shell, tmp_path, ["demo"], "matplotlib", "plot")
    refused(shell, tmp_path, ["reproduce", "--quick"], "matplotlib", "reproduce")
    refused(shell, tmp_path, ["datasets", "edges.csv", "--nodes", "edges.csv"], "polars", "tables")
    explain = ["explain", "--checkpoint", "model", "--nodes", "700"]
    refused(shell, tmp_path, [*explain, "--out", "results/", "--format", "parquet"], "polars", "tables")
    refused(shell, tmp_path, [*explain, "--executor", "ray"], "ray", "ray")


def refused(shell: Environment, place: Path, command: Iterable[str], package: str, extra: str) -> None:
    done = shell.run("butfor", *command, cwd=place)
    assert done.returncode == 2, done
    assert done.stderr == f"error: {package} is not installed; run: pip install 'butfor[{extra}]'\n"
