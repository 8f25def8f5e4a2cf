"""The scheduler PBS, in the dialects of Torque and OpenPBS: registry.py finds its class here."""

from steelyard.wrappers.schedulers.pbs.scheduler import Pbs

__all__ = ["Pbs"]
