"""Text from files, made fit for a terminal."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]


def printable(text: str) -> str:
    """The same text with every character that would do something to a terminal written out, such as ``\\x1b``.

    These are control characters, including line ends, and characters that change the direction of writing.
    """
    if text.isprintable():  # which is nearly always so
        return text
    return "".join(_escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    harmless = unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    return letter if harmless else letter.encode("unicode_escape").decode()
