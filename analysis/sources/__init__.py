"""Readers of what others wrote: accounting, records, samples, the study's own files.

`accounting` is the interface of a scheduler's accounting and `accounting_readers` lists the readers:
`sacct` for Slurm, the room `pbs` for Torque and OpenPBS. `records` and `record_folders` read records,
`record_packs` and `packed_samples` packed ones. `sample_rows` and `sample_csv` read samples, by the library
in C (`sample_library`) or by DuckDB. `study_files` reads what submit and jobs wrote into a study's folder;
`run_outcome` combines the scheduler's and the run's own report.

Files belong to users: readers check form and size, follow no links, and return a reason for what they
cannot read. Nothing is written. A server that does not answer is an error, not an empty answer.
"""
