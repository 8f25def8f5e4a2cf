"""Facts that C and Python share, each written once."""
