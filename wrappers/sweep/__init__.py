"""`steelyard sweep`: packs old records, removes older ones, and removes leftovers of killed
writers.

`record_files` classifies the files of a folder of records, `packing` writes a day's files into
Parquet packs, `sweep` has the order of all steps, removes by age and quota, and reports.

At every moment each file is loose, or in a complete pack on disk, or both; in the last case readers
use the loose file. So a killed sweep loses nothing, and the next one continues. A job without an
end, or with recently changed files, is not touched."""
