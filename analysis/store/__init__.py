"""The study's database: its schema, its Parquet files, rows on their way into it.

`schema` makes the statements from schema.sql and the columns that C and Python share. `database` opens the
file for one writer. `sample_store` keeps samples as Parquet by day and lists in a table which files count;
`export` writes the other tables beside the database. `spool` passes rows to DuckDB. `energy_shares` bounds
the joules of a job on a shared node.

A collect becomes visible in one transaction or not at all. A database of another version is refused with a
sentence.
"""
