"""butfor inside other libraries. Each integration is a package of its own, imported only where it is used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["pyg"])
