"""Stacks of GCN layers in compiled code: the same answers as the general oracle, much sooner."""
