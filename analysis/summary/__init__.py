"""From the database to means, spreads, overheads, slopes and shares."""
