"""One page from its files: nothing in the data can end it, and the policy allows its own script and style alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from butfor.pages.assets import MODULES, STYLES, _read, data_block, page, page_policy, script, style
from page_runs import NASTY


def test_modules_come_after_those_that_they_import() -> None:
    known: list[str] = []
    for name in MODULES["report"]:
        text = _read(name)
        for names, source in re.findall(r'^import \{ ([^}]*) \} from "\./([^"]+)";$', text, re.MULTILINE):
            assert source in known, f"{name} imports {source}, which is not there yet"
            exported = set(
                re.findall(r"^export (?:async )?(?:function|class|const|let) (\w+)", _read(source), re.MULTILINE)
            )
            assert set(names.split(", ")) <= exported, f"{name} imports {names} from {source}"
        known.append(name)


def test_a_script_has_neither_imports_nor_exports() -> None:
    text = script("report")
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    assert text.count("})();") == len(MODULES["report"])
    assert "const { report } = (() => {" in text


def test_a_last_module_keeps_its_exports() -> None:
    last = script("report", last="elements.js")
    assert last.startswith(script("report"))
    assert last.endswith(_read("elements.js"))


def test_the_style_is_all_of_its_sheets() -> None:
    assert style("report") == "\n".join(_read(name) for name in STYLES["report"])


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    text = page("report", "A title", {}, policy_in_page=True)
    (stated,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (code,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (look,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)

    def digest(part: str) -> str:
        return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()

    assert f"script-src 'sha256-{digest(code)}';" in stated
    assert f"style-src 'sha256-{digest(look)}';" in stated
    assert stated.startswith("default-src 'none'; ")
    assert "unsafe" not in stated
    assert stated == page_policy("report")
    assert "Content-Security-Policy" not in page("report", "A title", {})
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


@pytest.mark.parametrize("text", NASTY)
def test_no_text_can_end_the_data(text: str) -> None:
    block = data_block({"name": text, text: 1})
    assert not set(block) & set("<>&\u2028\u2029")
    assert json.loads(block) == {"name": text, text: 1}


@pytest.mark.parametrize("title", NASTY)
def test_a_title_is_text(title: str) -> None:
    (found,) = re.findall("<title>(.*?)</title>", page("report", title, {}), re.DOTALL)
    assert "<" not in found


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_a_number_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_block([number])
