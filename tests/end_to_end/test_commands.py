"""The commands that the documents show work as pasted."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from safetensors.torch import save_file
from torch_geometric.nn import GCN

import butfor
from butfor.cli import main
from butfor.cli.app import app
from butfor.pages.server import Server
from console import DOCUMENTS, ROOT, all_commands, commands

# These are only read, by the test of all commands: the first two take minutes, the last needs a cluster.
NOT_RUN = ("reproduce", "demo", "--address")

# The model and the rules that documents call models:gcn and rules.json.
MODELS = "from torch_geometric.nn import GCN\n\ndef gcn():\n    return GCN(2, 4, num_layers=2, out_channels=2)\n"
RULES = '{"protected": [[0, 1]]}'


def ring(nodes: int) -> dict[str, np.ndarray]:
    """A ring in both directions: two features, and two classes that follow the first of them."""
    node = np.arange(nodes)
    features = np.random.default_rng(0).normal(size=(nodes, 2)).astype(np.float32)
    edges = np.stack([np.r_[node, (node + 1) % nodes], np.r_[(node + 1) % nodes, node]])
    masks = {"train_mask": node % 2 == 0, "test_mask": node % 2 == 1}
    return {"x": features, "edge_index": edges, "y": (features[:, 0] > 0).astype(np.int64), **masks}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files that commands of the documents read and that none of them writes."""
    polars = pytest.importorskip("polars")
    place = tmp_path_factory.mktemp("files")
    shutil.copytree(Path(butfor.models.__file__).parent / "pretrained" / "tree-cycles", place / "runs" / "tree-cycles")
    (place / "models.py").write_text(MODELS)
    (place / "rules.json").write_text(RULES)
    save_file(GCN(2, 4, num_layers=2, out_channels=2).state_dict(), place / "gcn.safetensors")
    np.savez(place / "graph.npz", **ring(40))
    papers = ring(1200)
    source, target = papers["edge_index"][:, :1200]
    edges = polars.DataFrame({"source": source, "target": target})
    edges.write_parquet(place / "edges.parquet")
    edges.write_csv(place / "edges.csv")
    columns = {"id": np.arange(1200), "first": papers["x"][:, 0], "second": papers["x"][:, 1], "label": papers["y"]}
    nodes = polars.DataFrame(columns)
    nodes.write_parquet(place / "nodes.parquet")
    nodes.write_csv(place / "nodes.csv")
    mine = ["train", str(place / "graph.npz"), "--epochs", "20", "--quiet", "--out", str(place / "runs" / "mine")]
    assert main(mine) == 0
    checkpoint = str(place / "runs" / "tree-cycles")
    assert main(["explain", "--checkpoint", checkpoint, "--nodes", "600-610", "--out", str(place / "cfs.jsonl")]) == 0
    return place


def shown(words: list[str]) -> str:
    return " ".join(words)


def is_run(document: Path) -> bool:
    """The page of all commands has the examples of their help texts, which are about files of one's own."""
    return document.name != "command-line.md" or document.parent.name != "reference"


@pytest.mark.parametrize("words", all_commands("butfor"), ids=shown)
def test_butfor_understands_every_command(words: list[str]) -> None:
    app.parse_args(words[1:], exit_on_error=False, print_error=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if is_run(d) and any(w[0] == "butfor" for w in commands(d))], ids=str
)
def test_commands_of_a_document_run_one_after_the_other(
    document: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(server: Server) -> NoReturn:
        server.close()
        raise KeyboardInterrupt  # as whoever explores ends it

    monkeypatch.setattr(Server, "wait", ended)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    monkeypatch.chdir(shutil.copytree(files, tmp_path / "files"))
    ours = [words[1:] for words in commands(document) if words[0] == "butfor"]
    # What the document has a command write is not there yet.
    for words in ours:
        for place in (Path(word) for flag, word in pairwise(words) if flag == "--out"):
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    for words in ours:
        if not set(words) & set(NOT_RUN):
            assert main(words) == 0, f"{shown(words)}: {capsys.readouterr().err}"


@pytest.mark.parametrize("words", all_commands("make"), ids=shown)
def test_make_knows_every_target(words: list[str]) -> None:
    done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Understood(Exception):
    """The arguments of a benchmark were read; it need not run."""


@pytest.mark.parametrize("words", all_commands("python"), ids=shown)
def test_benchmarks_understand_every_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read = argparse.ArgumentParser.parse_args

    def only_read(*arguments: object, **named: object) -> NoReturn:
        read(*arguments, **named)  # type: ignore[arg-type]
        raise Understood

    flag, module, *arguments = words[1:]
    assert flag == "-m"
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_read)
    monkeypatch.setattr("sys.argv", [module, *arguments])
    benchmark = import_module(module)
    if not hasattr(benchmark, "argparse"):  # it takes none
        assert not arguments
        assert callable(benchmark.main)
        return
    with pytest.raises(Understood):
        benchmark.main()
