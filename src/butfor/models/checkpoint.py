"""A trained model on disk: its weights as safetensors, and beside them a JSON file that describes it.

Neither file can run code when it is read. The JSON file contains the checksum of the weights, so that two files that do
not belong together are noticed, for example after a crash between writing them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save as to_bytes

from butfor.boundary.atomic import atomic_write
from butfor.boundary.json_values import Misfit, flag, items, record, shown, text, whole
from butfor.boundary.reading import read_bytes, read_json, reading
from butfor.errors import ModelError
from butfor.models.gcn import PaperGCN
from butfor.models.graph_classifier import GraphClassifier
from butfor.models.weights import load_weights, state_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from torch import nn

    from butfor.models.graph_training import GraphTraining
    from butfor.models.training import TrainingResult

__all__ = ["load_checkpoint", "save_checkpoint"]

SCHEMA = 1
_WEIGHTS = "model.safetensors"
_INFO = "model.json"
_WIDEST, _DEEPEST = 10_000_000, 1_000
# The models that can be rebuilt: the class, and the attributes that are its arguments, each with the largest number
# allowed, or with None if it is a name, which the class itself checks.
_ARCHITECTURES: dict[str, tuple[type[PaperGCN | GraphClassifier], dict[str, int | None]]] = {
    "PaperGCN": (PaperGCN, dict.fromkeys(["in_channels", "num_classes", "hidden"], _WIDEST)),
    "GraphClassifier": (
        GraphClassifier,
        {
            **dict.fromkeys(["num_features", "num_classes", "hidden"], _WIDEST),
            "layers": _DEEPEST,
            **dict.fromkeys(["conv", "readout"], None),
        },
    ),
}


def save_checkpoint(
    folder: str | os.PathLike[str],
    model: nn.Module,
    *,
    data_info: Mapping[str, object],
    result: TrainingResult | GraphTraining | None = None,
) -> None:
    """Write `model.safetensors` and `model.json` into the folder, which is created if necessary.

    Args:
        folder: where to write them; files of an earlier checkpoint are replaced.
        model: a `PaperGCN` or a `GraphClassifier`.
        data_info: the graph that the model was trained on, as `butfor.datasets.describe(data)` describes it.
        result: how the training went.

    Raises:
        ModelError: if the model is of a class that could not be rebuilt, its weights are not finite, or
            the folder cannot be written.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.models.save_checkpoint("runs", model, data_info=butfor.datasets.describe(data))
        >>> loaded, info = butfor.models.load_checkpoint("runs")
        >>> info["architecture"], info["data"]["name"]
        ('PaperGCN', 'tree-cycles')
    """
    folder = Path(folder)
    name = type(model).__name__
    if name not in _ARCHITECTURES or type(model) is not _ARCHITECTURES[name][0]:
        raise ModelError(
            f"checkpoints hold {', '.join(_ARCHITECTURES)}, not {name}: save the weights of your own model "
            "with safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"
        )
    weights = to_bytes(state_of(model))
    info = {
        "schema": SCHEMA,
        "architecture": name,
        "arguments": {argument: getattr(model, argument) for argument in _ARCHITECTURES[name][1]},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "data": dict(data_info),
        "training": None if result is None else dataclasses.asdict(result),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("butfor", "torch", "torch_geometric")},
        },
    }
    try:
        text = json.dumps(info, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as problem:
        raise ModelError(f"data_info and result must be plain JSON values: {problem}") from problem
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / _WEIGHTS) as file:
            file.write(weights)
        with atomic_write(folder / _INFO) as file:
            file.write(text.encode())
    except OSError as problem:
        raise ModelError(f"cannot write the checkpoint {folder}: {problem.strerror or problem}") from problem


def load_checkpoint(folder: str | os.PathLike[str]) -> tuple[PaperGCN | GraphClassifier, dict[str, Any]]:
    """Return the model of a checkpoint, in evaluation mode, and the content of its JSON file.

    Args:
        folder: what `save_checkpoint` or ``butfor train`` wrote.

    Raises:
        ModelError: if a file is missing, truncated or not a checkpoint's, or the two do not belong together.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.models.save_checkpoint("runs", model, data_info=butfor.datasets.describe(data))
        >>> loaded, info = butfor.models.load_checkpoint("runs")
        >>> butfor.explain(loaded, data, 597) == butfor.explain(model, data, 597)
        True
    """
    folder = Path(folder)
    info = _read_info(folder)
    cls, names = _ARCHITECTURES[info["architecture"]]
    arguments = info["arguments"]
    if sorted(arguments) != sorted(names):
        raise ModelError(f"{folder / _INFO} must give the arguments {', '.join(names)}, but gives {shown(arguments)}")
    for name, value in arguments.items():
        most = names[name]
        if most is None and not isinstance(value, str):
            raise ModelError(f"{folder / _INFO} says {name} is {shown(value)}, which is no name")
        if most is not None and (type(value) is not int or not 0 < value <= most):
            raise ModelError(f"{folder / _INFO} says {name} is {shown(value)}, which is no size of a layer")
    weights = read_bytes(folder / _WEIGHTS, ModelError)
    try:
        with torch.device("meta"):
            model = cls(**arguments)
    except ModelError as problem:
        raise ModelError(f"{folder / _INFO} describes no model: {problem}") from problem
    # Before the checksum is compared, because "truncated" is the better message for a truncated file.
    load_weights(model, folder / _WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != info["weights_sha256"]:
        raise ModelError(
            f"{folder / _WEIGHTS} is not the file that {_INFO} describes: restore both from one training run"
        )
    model.eval()
    return model, info


def _read_info(folder: Path) -> dict[str, Any]:
    path = folder / _INFO
    with reading(path, ModelError):
        there = path.exists()
    if not there:
        raise ModelError(f"{folder} is no checkpoint: it has no {_INFO}")
    info = read_json(path, ModelError)
    if not isinstance(info, dict) or "schema" not in info or "architecture" not in info:
        raise ModelError(f"{path} was not written by butfor: it names no schema and architecture")
    if type(info["schema"]) is not int or info["schema"] != SCHEMA:
        raise ModelError(
            f"{path} has schema {shown(info['schema'])}, but this butfor reads {SCHEMA}: train again or upgrade"
        )
    if info["architecture"] not in list(_ARCHITECTURES):
        raise ModelError(
            f"{path} is of a {shown(info['architecture'])}, but only {', '.join(_ARCHITECTURES)} can be rebuilt"
        )
    try:
        _check_info(info)
    except Misfit as problem:
        raise ModelError(f"{path} is damaged: {problem}; train again") from problem
    return info


def _check_info(info: dict[str, Any]) -> None:
    """Refuse fields of the wrong kind among those that are used later; other fields may be anything."""
    record(info.get("arguments"), "arguments")
    text(info.get("weights_sha256"), "weights_sha256")
    data = record(info.get("data", {}), "data")
    for key, check in (("path", text), ("node_table", text), ("sha256", text), ("undirected", flag)):
        if key in data:
            check(data[key], f"the field {key} of data")
    if "path" not in data:  # a generated graph is made again from these
        for key, check_origin in (("name", text), ("seed", whole)):
            if data.get(key) is not None:
                check_origin(data[key], f"the field {key} of data")
    training = info.get("training")
    if training is not None:
        for part in ("train", "val", "test"):
            for graph in items(record(training, "training").get(part, []), f"the field {part} of training"):
                whole(graph, f"a graph in the field {part} of training")
    record(info.get("versions", {}), "versions")
