"""butfor: the fewest edits of a graph that make a graph neural network predict something else.

`explain` is the whole idea; `prepare` makes a model and a graph ready for many questions. The public names and where
they live are in ``__init__.pyi``: torch and PyG take seconds to import, so each is imported at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
