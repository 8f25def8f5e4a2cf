"""A throwaway Slurm cluster on this machine, its virtual nodes included."""
