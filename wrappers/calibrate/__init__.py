"""Known loads, run in every way a job can run, and weighed."""
