"""Network conditions: the interface to `steelyard-node netem`, and descriptions of conditions."""
