"""A graph as a folder of arrays that are mapped into memory: of any size, opened in milliseconds, by every worker."""
