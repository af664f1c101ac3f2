"""What a graph is described by, and recognised by again."""

from __future__ import annotations

from butfor.datasets import describe, tree_cycles


def test_describe_counts_what_a_model_sees() -> None:
    data = tree_cycles(0)
    info = describe(data, "a/b.npz")
    assert info["path"] == "a/b.npz"
    assert (info["nodes"], info["edges"], info["features"], info["name"], info["seed"]) == (
        871,
        1950,
        10,
        "tree-cycles",
        0,
    )
    data.y = 1 - data.y
    assert describe(data)["sha256"] == info["sha256"]
    data.x[3, 3] = 2
    assert describe(data)["sha256"] != info["sha256"]
