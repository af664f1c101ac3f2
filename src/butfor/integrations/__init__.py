"""butfor inside other libraries. Each integration is a package of its own, imported only where it is used."""
