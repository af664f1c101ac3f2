"""Entry points of other packages: what they give, and what a broken one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.boundary.plugins import load_plugins

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

GROUP = "butfor.test_plugins"


def install(site: Path, package: str, entry: str) -> None:
    """Write what `pip install` writes so that the entry points of a package are found."""
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")


def test_objects_come_by_the_names_of_their_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_of_answers.py").write_text("ANSWER = 42\n")
    install(tmp_path, "answers", "answer = plugin_of_answers:ANSWER")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_plugins(GROUP) == ({"answer": 42}, [])
    assert load_plugins("butfor.nothing_here") == ({}, [])


def test_a_broken_package_is_named_and_the_others_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_that_works.py").write_text("")
    (tmp_path / "plugin_that_raises.py").write_text("raise ValueError('first line\\nsecond line')\n")
    (tmp_path / "plugin_that_exits.py").write_text("raise SystemExit(3)\n")
    install(tmp_path, "works", "a = plugin_that_works")
    install(tmp_path, "raises", "b = plugin_that_raises")
    install(tmp_path, "exits", "c = plugin_that_exits")
    install(tmp_path, "is-missing", "d = plugin_that_is_nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    loaded, failures = load_plugins(GROUP)
    assert list(loaded) == ["a"]
    assert sorted(failures) == [
        f"cannot load plugin_that_exits of the package exits ({GROUP}): SystemExit: 3",
        f"cannot load plugin_that_is_nowhere of the package is-missing ({GROUP}): "
        "ModuleNotFoundError: No module named 'plugin_that_is_nowhere'",
        f"cannot load plugin_that_raises of the package raises ({GROUP}): ValueError: first line",
    ]
