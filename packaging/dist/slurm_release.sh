#!/bin/bash
# Print the release of Slurm of the headers, as 22.05: slurm_release.sh [FOLDER OF HEADERS]
# Exit code 3: no headers.
set -euo pipefail

header=${1:-/usr/include}/slurm/slurm_version.h
number=$(sed -nE 's/^#define SLURM_VERSION_NUMBER +0x([0-9a-f]{6}).*/\1/p' "$header" 2>/dev/null) || :
[[ -n $number ]] || {
    echo "slurm_release.sh: no version of Slurm in $header (Debian: libslurm-dev)" >&2
    exit 3
}
printf '%d.%02d\n' "$((16#${number:0:2}))" "$((16#${number:2:2}))"
