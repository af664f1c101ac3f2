"""Edits as parts of a sentence."""

from __future__ import annotations

__all__ = ["listed", "shortened"]

# A sentence names at most this many edits of a kind and counts the rest.
NAMED = 12


def listed(noun: str, names: list[str]) -> str:
    """Things of one kind: "the edge 3–17", or "these 2 edges (3–17, 4–9)"."""
    if len(names) == 1:
        return f"the {noun} {names[0]}"
    return f"these {len(names)} {noun}s ({', '.join(shortened(names))})"


def shortened(names: list[str]) -> list[str]:
    """The first few names, and how many more there are."""
    return names if len(names) <= NAMED else [*names[:NAMED], f"and {len(names) - NAMED} more"]
