"""Copies of a large file, and copies and writes of small ones: steelyard-fstest on any file system.

job.sh runs steelyard-fstest (fstest.c) below `directory`, else in the scratch folder. The program
makes a folder there and removes it. With `process = "each"` it starts a process for each file, as
scripts do; these times have another name (`seconds_by_processes`), since they cannot be compared.
The mount and its counters are recorded before and after.

The output is lines of JSON: what was done, one line per iteration, and an end. parse.py checks that
every value in the first line is the requested one, that all iterations are there in order, and that
the last line exists. Each iteration has time, throughput and files per second.

The page cache is left as it is; `direct` bypasses it, and the factor `cache` drops it before the
run.
"""
