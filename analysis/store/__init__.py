"""The study's database: its schema, its Parquet files, and rows for it.

`schema` makes the statements from schema.sql and the columns that C and Python share. `database`
opens the file for one writer. `sample_store` stores samples as Parquet by day and lists the valid
files in a table (a file that it does not list is of a killed collect, and the next one removes it);
`export` writes the other tables next to the database. `row_files` passes rows to DuckDB.
`energy_shares` bounds the energy of a job on a shared node.

A collect becomes visible in one transaction or not at all. A database of another version is refused
with a message.
"""
