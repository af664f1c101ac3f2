"""Optional packages: each is known with its extra, and a missing one is named."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from butfor.boundary.extras import EXTRAS, optional_imports
from butfor.errors import InputError

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def test_the_packages_of_every_extra_are_known() -> None:
    tomllib = pytest.importorskip("tomllib")  # new in Python 3.11
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    for_users = {extra: packages for extra, packages in extras.items() if extra not in ("all", "dev", "docs", "test")}
    declared = {
        re.match(r"[\w-]+", package)[0]: extra  # type: ignore[index]
        for extra, packages in for_users.items()
        for package in packages
        if not package.startswith("butfor[")
    }
    assert declared == EXTRAS
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) == {"butfor", *for_users}


@pytest.mark.parametrize("package", [*EXTRAS, "pandas"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    wanted = f"'butfor[{EXTRAS[package]}]'" if package in EXTRAS else package
    with pytest.raises(InputError) as raised, optional_imports():
        import_module(f"{package}.part")
    assert str(raised.value) == f"{package} is not installed; run: pip install {wanted}"


def test_an_extra_that_has_more_is_named_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with (
        pytest.raises(InputError, match=re.escape("run: pip install 'butfor[reproduce]'")),
        optional_imports("reproduce"),
    ):
        import_module("matplotlib")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), optional_imports():
        import_module("no_such_package")
    with pytest.raises(ImportError, match="nothing"), optional_imports():
        from butfor.errors import nothing  # type: ignore[attr-defined]  # noqa: F401
