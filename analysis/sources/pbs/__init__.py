"""Readers of the accounting of Torque and OpenPBS (PBS Pro)."""
