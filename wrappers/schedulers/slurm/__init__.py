"""The scheduler Slurm: registry.py finds its class here."""

from steelyard.wrappers.schedulers.slurm.scheduler import Slurm

__all__ = ["Slurm"]
