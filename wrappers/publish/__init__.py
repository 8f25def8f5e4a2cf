"""`steelyard publish`: what Slurm's accounting has missed, from records."""
