"""From a plan to jobs, and how far they are."""
