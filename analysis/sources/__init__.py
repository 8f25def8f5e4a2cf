"""Readers of input files and services: accounting, records, samples, the study's own files.

`accounting` is the interface of a scheduler's accounting and `accounting_readers` lists the
readers: `sacct` for Slurm, the package `pbs` for Torque and OpenPBS. `records` and `record_folders`
read records, `record_packs` and `sample_packs` packed ones. `slurm_field_values` parses node lists,
job ids and states as Slurm prints them. `sample_arrays` and `sample_csv` read samples, by the
library in C (`sample_library`) or by DuckDB. `study_files` reads the files of submit and of jobs in
a study's folder, and combines the scheduler's and the run's own report.

Files belong to users: readers check form and size, follow no links, and return a reason for what
they cannot read. Nothing is written. A server that does not answer is an error, not an empty
answer.
"""
