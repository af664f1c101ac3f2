"""How help texts and errors list the datasets and file formats that there are."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from butfor.datasets.registry import DATASETS, LOADERS, registry
from butfor.datasets.wording import expected_files, expected_folders, expected_graphs, expected_tables, one_of

if TYPE_CHECKING:
    import pytest


DATASETS_IN_WORDS = ("tree-cycles", "tree-grid", "ba-shapes", "ba-2motifs")
FORMATS_IN_WORDS = (".npz", ".csv", ".parquet", ".pt", "ind.*.graph", "*_graph_indicator.txt")


def test_the_words_are_those_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of a few lines to the letter, whatever others there are.
    datasets, loaders = dict(registry.datasets), list(registry.loaders)
    monkeypatch.setattr(registry, "_datasets", {name: datasets[name] for name in DATASETS_IN_WORDS})
    shown = [loader for loader in loaders if (loader.suffix or loader.marker) in FORMATS_IN_WORDS]
    assert len(shown) == len(FORMATS_IN_WORDS)
    unnamed = [loader for loader in loaders if not loader.suffix and not loader.called]
    assert unnamed  # a special case of another format is not mentioned
    monkeypatch.setattr(registry, "_loaders", [*shown, *unnamed])
    assert expected_graphs() == (
        "tree-cycles, tree-grid, ba-shapes or ba-2motifs; a file (.npz, .csv, .parquet, .pt); "
        "or a folder with the raw files of a Planetoid or a TUDataset."
    )
    assert expected_tables() == ".csv or .parquet"
    assert expected_files() == (
        ".npz, .csv (with nodes=), .parquet (with nodes=), .pt, "
        "or a folder with the raw files of a Planetoid or a TUDataset"
    )
    assert expected_folders() == "a Planetoid (ind.*.graph) or a TUDataset (*_graph_indicator.txt)"
    assert one_of(["a"]) == "a"


def test_every_built_in_line_is_in_the_words() -> None:
    for dataset in DATASETS:
        assert dataset.name in expected_graphs()
    for loader in LOADERS:
        for words in (expected_graphs(), expected_files()):
            assert loader.suffix in words
            assert loader.called in words
        if loader.suffix:
            assert (f"{loader.suffix} (with nodes=)" in expected_files()) == loader.node_table
            assert (loader.suffix in expected_tables()) == loader.node_table
        if loader.called:
            assert f"{loader.called} ({loader.marker})" in expected_folders()


def test_reading_the_registry_for_a_help_text_imports_nothing_heavy() -> None:
    code = (
        "import sys; from butfor.datasets.wording import expected_graphs; expected_graphs();"
        "print([name for name in ('torch', 'numpy', 'torch_geometric', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
