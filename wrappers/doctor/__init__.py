"""What `steelyard doctor` looks at."""
