"""What every room of the wrappers stands on: errors, output, programs."""
