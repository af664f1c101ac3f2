"""The commands that documents show: lines that begin with ``$`` in their console blocks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def commands(document: Path) -> list[list[str]]:
    """The words of each command of a document, without the comment behind it."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), flags=re.DOTALL)
    lines = re.findall(r"^\$ (.*)$", "\n".join(blocks), flags=re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def all_commands(program: str) -> list[list[str]]:
    """The commands of all documents that call this program, each once."""
    found = [words for document in DOCUMENTS for words in commands(document) if words[0] == program]
    return [list(words) for words in dict.fromkeys(map(tuple, found))]
