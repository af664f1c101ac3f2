"""A graph, the neighbourhood of a target in it, and what identifies it."""
