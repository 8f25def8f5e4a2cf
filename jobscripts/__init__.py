"""One folder per benchmark: its description, its job template, the parser of its output."""
