"""The user's own model, made by a function that the command line names."""

import importlib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from butfor.errors import InputError, ModelError, one_line

if TYPE_CHECKING:
    from torch import nn

__all__ = ["make_user_model"]


def make_user_model(name: str, weights: Path | None) -> "nn.Module":
    """Call ``package.module:factory`` and return its model in evaluation mode, with these weights if there are any.

    Raises:
        InputError: if the name does not have this form.
        ModelError: if there is no such factory, it fails, it returns no model, or the weights do not fit the model.
    """
    from torch import nn

    from butfor.models import load_weights

    model = _call_factory(name)
    if inspect.iscoroutine(model):
        model.close()  # otherwise Python warns that it was never awaited
    if not isinstance(model, nn.Module):
        raise ModelError(f"{name} returned a {type(model).__name__}; it must return a torch.nn.Module")
    if weights is not None:
        load_weights(model, weights)
    return model.eval()


def _call_factory(name: str) -> object:
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise InputError(f"--model {name!r} must name a factory, such as my_models:gcn")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # whatever the user's module does when it is imported
        raise ModelError(f"cannot import {module_name} of --model {name}: {one_line(problem)}") from problem
    factory = vars(module).get(attribute)
    if factory is None:
        raise ModelError(f"--model {name}: {module_name} has no {attribute}")
    if not callable(factory):
        raise ModelError(
            f"--model {name}: {attribute} is a {type(factory).__name__}, not a function that returns a model"
        )
    try:
        return factory()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # whatever the user's factory does
        raise ModelError(f"--model {name} failed: {one_line(problem)}") from problem
