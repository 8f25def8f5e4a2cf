"""Inside what a run's clients are executed: containers and the like."""
