"""Network conditions: the door to `steelyard-node netem`, and their words."""
