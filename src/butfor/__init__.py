"""butfor: the fewest edges whose removal makes a graph neural network predict something else."""
