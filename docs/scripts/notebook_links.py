"""A hook of MkDocs: links between pages also work in tutorials, which MkDocs takes for finished HTML."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LINK = re.compile(r'(href|src)="(?!https?:|data:|#)([^"#]+)(#[^"]*)?"')


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 (names are MkDocs')
    """Turn the names of source files into addresses, as MkDocs does for pages in Markdown."""
    if not page.file.src_uri.startswith("tutorials/") or page.file.src_uri.endswith(".md"):
        return html

    def address(link: re.Match[str]) -> str:
        attribute, target, anchor = link.groups()
        file = files.get_file_from_path(posixpath.normpath(posixpath.join("tutorials", target)))
        if file is None:
            raise PluginError(f"{page.file.src_uri} links to {target}, which is no page")
        return f'{attribute}="{file.url_relative_to(page.file)}{anchor or ""}"'

    return LINK.sub(address, html)
