"""D. Bourilkov and others: virtual clients of a file system, in turn and all at once. No number is printed."""
