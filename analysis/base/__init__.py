"""What every room of the analysis stands on: errors, locks, a second process."""
