"""From the sources into the database: which run is whose, and what does not agree."""
