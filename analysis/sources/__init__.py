"""Readers of what others wrote: accounting, records, samples, the study's own files."""
