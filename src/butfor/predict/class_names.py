"""What the classes of a model are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.predict.predictor import Predictor

__all__ = ["class_name", "class_names"]


def class_names(predictor: Predictor) -> tuple[str, ...]:
    """The name of each class: that of ``data.class_names`` where the graph has it, "class 3" where it has not."""
    if predictor.threshold is not None:
        if predictor.task == "link":
            return "not linked", "linked"
        return f"at most {predictor.threshold:g}", f"above {predictor.threshold:g}"
    node_type = predictor.node_type if isinstance(predictor.node_type, str) else None
    given = predictor.graph.attribute("class_names", node_type)
    named = [] if given is None else list(map(str, given))
    return (*named, *(f"class {label}" for label in range(len(named), predictor.num_classes)))


def class_name(names: Sequence[str], label: int) -> str:
    """The name of one class; of -1 and the like that there is none."""
    return names[label] if 0 <= label < len(names) else "no class" if label < 0 else f"class {label}"
