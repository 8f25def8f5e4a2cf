#!/bin/bash
# What CVMFS clients count of mounted repositories. Part of steelyard.sh; for benchmarks to call.

# ATTEMPT/cvmfs.CLIENT.before and .after, read by jobscripts/cvmfs.py: extended attributes that a
# repository's folder has; by Python, for not every node has getfattr.
sy_cvmfs_counters() { # <before[.N]|after[.N]> <folder>...
    local -r to=$SY_ATTEMPT_DIR/cvmfs.$SY_CLIENT.$1
    shift
    (($# > 0)) || return 0
    "${STEELYARD_PYTHON:-python3}" -c '
import os, sys
for folder in sys.argv[1:]:
    os.listdir(folder)  # an automounter mounts it now
    for key in ("rx", "ndownload", "nopen", "nioerr", "hitrate"):
        print(folder, key, os.getxattr(folder, "user." + key).decode().strip("\0 \n"))
' "$@" >"$to" 2>"$to.err" && return
    sy_say "cvmfs = $*: expected folders of mounted CVMFS repositories, found: $(tail -n 1 -- "$to.err")"
    return 3
}
