"""Proofs that are written down, and a checker that shares no code with the search that found them."""
