"""What may be changed about a graph, and the numbered edits of one target."""
