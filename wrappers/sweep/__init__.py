"""`steelyard sweep`: old records packed, older ones removed, what killed writers left."""
