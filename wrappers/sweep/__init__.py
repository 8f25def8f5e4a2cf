"""`steelyard sweep`: old records are packed, older ones removed, leftovers of killed writers too.

`record_files` classifies the files of a folder of records, `packing` writes a day's files into Parquet
packs, `removal` removes by age and quota, `sweep` is the order of these steps, `sweep_report` the request
and the result.

At every moment each file is loose, or in a complete pack on the disk, or both, and then readers take the
loose one. So a killed sweep loses nothing, and the next one continues. A job without an end, or touched
lately, is left alone.
"""
