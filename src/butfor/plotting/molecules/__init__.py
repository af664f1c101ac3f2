"""Molecules, drawn as chemists draw them."""
