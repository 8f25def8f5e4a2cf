#!/bin/bash
# The plugin on another release of Slurm: a Debian suite in a chroot, this checkout built and
# installed there as docs/admin.md says, a Slurm without systemd, jobs of an ordinary user, and last the
# calibration (docs/calibrate.md), whose table it prints.
# Usage (root): setup/try_slurm_release.sh SUITE [FOLDER]; SUITE: bookworm, trixie, sid.
# FOLDER (/var/tmp/steelyard-SUITE) is kept for the next time: 1 GB. Exit code 1: a check failed.
set -euo pipefail

readonly suite=${1:?SUITE: bookworm, trixie or sid}
readonly root=${2:-/var/tmp/steelyard-$suite}
readonly source=${BASH_SOURCE[0]%/*}/..

if ((EUID != 0)); then
    echo "try_slurm_release.sh: needs root: a chroot, namespaces, and a user besides root" >&2
    exit 3
fi
"$source/setup/release_root.sh" "$suite" "$root"
rm -rf "$root/site" "$root/var/lib/steelyard"
printf '127.0.0.1 localhost %s\n' "$(hostname -s)" >"$root/etc/hosts"
# All of it ends with this command: namespaces of its own for processes, network and mounts.
unshare --net --mount --pid --fork --kill-child --propagation private \
    chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
    bash /src/setup/try_slurm_release_inside.sh
