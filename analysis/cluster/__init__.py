"""All jobs of a cluster: their database, who used what, and the same for Prometheus."""
