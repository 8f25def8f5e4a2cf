"""A ROOT tree is read completely: from a folder, or over root:// from a server.

job.sh runs the reader of `jobscripts.hep`. With access `xrootd` and without `url` the run starts an
XRootD server on its own node. The input is made once from a seed and is kept in `data`, else in the
study's folder, with its SHA-256. The page cache is warm, or the file's pages are dropped before
each iteration; pages that stay fail the run.

Each iteration opens the file and reads every branch into arrays; checking the values is not in the
time. parse.py compares what was read with what was written, unless `verify = false`. Without the
file's note, figures that need it (raw bytes, compression ratio) are absent.
"""
