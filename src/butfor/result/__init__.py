"""The verified result: what is claimed, seen on the whole graph, and written down."""
