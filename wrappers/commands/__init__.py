"""The command `steelyard`: a file for each of its commands."""
