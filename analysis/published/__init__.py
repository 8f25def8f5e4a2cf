"""Measurements that others published, reported like a study of one's own."""
