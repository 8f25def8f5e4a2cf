"""Batch systems, and none: what submit, status and cancel ask of one."""
