"""The study's database: its schema, its Parquet files, rows on their way into it."""
