#!/bin/bash
# Counters of CVMFS clients for mounted repositories. Part of steelyard.sh; for benchmarks to call.
#
# They are extended attributes of a repository's folder, and count what its client has fetched for all
# processes of the node. A folder that is no mounted repository fails the run with 3: the study names it, so
# figures are expected.

# Write ATTEMPT/cvmfs.CLIENT.before or .after, read by jobscripts/cvmfs.py: extended attributes of a
# repository's folder, read by Python since getfattr may be missing. The client's version is a tag.
sy_save_cvmfs_counters() { # <before[.N]|after[.N]> <folder>...
    local -r to=$SY_ATTEMPT_DIR/cvmfs.$SY_CLIENT.$1
    shift
    (($# > 0)) || return 0
    "${STEELYARD_PYTHON:-python3}" -c '
import os, sys
for folder in sys.argv[1:]:
    os.listdir(folder)  # an automounter mounts it now
    for key in ("rx", "ndownload", "nopen", "nioerr", "hitrate"):
        print(folder, key, os.getxattr(folder, "user." + key).decode().strip("\0 \n"))
' "$@" >"$to" 2>"$to.err" && sy_tag_cvmfs_version "$1" && return
    sy_log "cvmfs = $*: expected folders of mounted CVMFS repositories, found: $(tail -n 1 -- "$to.err")"
    return 3
}

# Tag the version, once. All repositories have the same client program, so the first one is enough.
sy_tag_cvmfs_version() { # <folder>
    ! grep -qs '^cvmfs.version=' "$SY_ATTEMPT_DIR/tags.$SY_CLIENT" || return 0
    sy_tag_nonempty cvmfs.version "$("${STEELYARD_PYTHON:-python3}" -c '
import os, sys
print(os.getxattr(sys.argv[1], "user.version").decode().strip("\0 \n"))
' "$1" 2>/dev/null)"
}
