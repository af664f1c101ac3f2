"""The files of the pages, put together: one script, one style sheet, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

__all__ = ["data_block", "page", "page_policy", "script", "style", "style_within"]

# Modules in the order in which they need each other, by the page that they are for.
DRAWING = ("elements.js", "layout.js", "legend.js", "molecule.js", "saving.js", "drawing.js")
MODULES = {
    "report": (
        *DRAWING,
        "records.js",
        "table.js",
        "charts.js",
        "overview.js",
        "filters.js",
        "detail.js",
        "report.js",
    ),
    "explorer": (
        *DRAWING,
        "explorer/state.js",
        "explorer/focus.js",
        "explorer/panels.js",
        "explorer/rules.js",
        "explorer/search.js",
        "explorer/selection.js",
        "explorer/files.js",
        "explorer/app.js",
    ),
}
STYLES = {"report": ("common.css", "report.css"), "explorer": ("common.css", "explorer.css")}

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)


@cache
def _read(name: str) -> str:
    return files("butfor.pages").joinpath("static", *name.split("/")).read_text(encoding="utf-8")


@cache
def script(name: str, last: str = "") -> str:
    """The modules of a page as one: they import nothing but each other, so their lines of import are left out.

    Args:
        name: which page.
        last: a module that starts it, such as the notebook's widget; it keeps its exports.
    """
    parts = [_in_its_scope(_IMPORT.sub("", _read(part))) for part in MODULES[name]]
    return "\n".join([*parts, *([_IMPORT.sub("", _read(last))] if last else [])])


def _in_its_scope(module: str) -> str:
    """A module as a function that returns what it exports: the rest of its names are its own, as they are in a file."""
    exports = f"{{ {', '.join(_EXPORT.findall(module))} }}"
    return f"const {exports} = (() => {{\n{_EXPORT.sub('', module)}\nreturn {exports};\n}})();"


@cache
def style(name: str) -> str:
    """The style sheets of a page as one."""
    return "\n".join(map(_read, STYLES[name]))


def style_within(name: str, place: str) -> str:
    """The style sheets of a page for one element of a foreign page, where nothing else may change."""
    own = re.sub(r"^( *)(?::root|html|body) \{", r"\1& {", style(name), flags=re.MULTILINE)
    return f"{place} {{\n{own}\n}}\n"


def page(name: str, title: str, data: Any, policy_in_page: bool = False) -> str:
    """A page that needs nothing but itself.

    Args:
        name: which page.
        title: of the window; any text.
        data: plain data for the script.
        policy_in_page: whether the page itself states the policy, because no server does.
    """
    meta = f'<meta http-equiv="Content-Security-Policy" content="{page_policy(name)}">' if policy_in_page else ""
    return Template(_read("page.html")).substitute(
        title=html.escape(title), policy=meta, style=style(name), data=data_block(data), script=_started(name)
    )


def _started(name: str) -> str:
    return f"{script(name)}\n{_read('start.js').replace('START', name)}"


@cache
def page_policy(name: str) -> str:
    """What a page may do: run its own script, look as it does, show pictures that it made, and ask its own server."""
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_digest(_started(name))}'",
        "style-src": f"'sha256-{_digest(style(name))}'",
        "img-src": "data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def data_block(data: Any) -> str:
    """Plain data as JSON that may stand in a page: nothing in it can end the script element, or is not a number."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
