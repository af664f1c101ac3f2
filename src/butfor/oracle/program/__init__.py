"""A model's run as a program: a short list of steps on node rows and edge columns, read as values after edits."""
