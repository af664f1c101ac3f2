"""How help texts and errors list the datasets and file formats that there are."""

from __future__ import annotations

import subprocess
import sys

from butfor.datasets.wording import expected_files, expected_folders, expected_graphs, expected_tables, one_of


def test_the_words_are_those_of_the_built_in_lines() -> None:
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


def test_reading_the_registry_for_a_help_text_imports_nothing_heavy() -> None:
    code = (
        "import sys; from butfor.datasets.wording import expected_graphs; expected_graphs();"
        "print([name for name in ('torch', 'numpy', 'torch_geometric', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
