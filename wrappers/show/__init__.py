"""`steelyard show` and `compare` of jobs: what a person reads of one job, of several, of two."""
