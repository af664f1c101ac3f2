"""What can be given as a graph, in words: for help texts and error messages, made from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.datasets.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["expected_files", "expected_folders", "expected_graphs", "expected_tables", "one_of"]


def one_of(names: Sequence[str]) -> str:
    """Return the names as a choice: ``"a, b or c"``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def expected_graphs() -> str:
    """Return a sentence for help texts about all that can be given as a graph."""
    suffixes = ", ".join(loader.suffix for loader in registry.loaders if loader.suffix)
    folders = one_of([loader.called for loader in registry.loaders if loader.called])
    return f"{one_of(list(registry.datasets))}; a file ({suffixes}); or a folder with the raw files of {folders}."


def expected_tables() -> str:
    """Return the kinds of edge lists that need a node table: ``".csv or .parquet"``."""
    return one_of([loader.suffix for loader in registry.loaders if loader.node_table])


def expected_files() -> str:
    """Return all kinds of files and folders that `load_graphs` reads."""
    files = [
        f"{loader.suffix} (with nodes=)" if loader.node_table else loader.suffix
        for loader in registry.loaders
        if loader.suffix
    ]
    folders = one_of([loader.called for loader in registry.loaders if loader.called])
    return f"{', '.join(files)}, or a folder with the raw files of {folders}"


def expected_folders() -> str:
    """Return the kinds of folders with the files that mark them: ``"a TUDataset (*_graph_indicator.txt)"``."""
    return one_of([f"{loader.called} ({loader.marker})" for loader in registry.loaders if loader.called])
