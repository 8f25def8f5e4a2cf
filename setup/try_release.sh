#!/bin/bash
# The plugin on another release of Slurm: a Debian suite in a chroot, this checkout built and
# installed there as docs/admin.md says, a Slurm by hand, jobs of an ordinary user, and last the
# calibration (docs/calibrate.md), whose table it prints.
# Usage (root): setup/try_release.sh SUITE [FOLDER]; SUITE: bookworm, trixie, sid.
# FOLDER (/var/tmp/steelyard-SUITE) is kept for the next time: 1 GB. Exit code 1: a check failed.
set -euo pipefail

readonly suite=${1:?SUITE: bookworm, trixie or sid}
readonly root=${2:-/var/tmp/steelyard-$suite}
readonly source=${BASH_SOURCE[0]%/*}/..
readonly packages=slurmctld,slurmd,slurmdbd,slurm-client,libslurm-dev,munge,mariadb-server,gcc,make,libc6-dev,libjansson-dev,libmnl-dev,python3,python3-rich,iproute2,procps

if ((EUID != 0)); then
    echo "try_release.sh: needs root: a chroot, namespaces, and a user besides root" >&2
    exit 3
fi
if [[ ! -e $root/usr/sbin/slurmd ]]; then
    type -P mmdebstrap >/dev/null || {
        echo "try_release.sh: apt-get install mmdebstrap" >&2
        exit 3
    }
    # sid's lists are days old on mirrors that stand still.
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include="$packages" "$suite" "$root" http://deb.debian.org/debian
fi

# A folder from before a package was needed.
[[ -d $root/usr/lib/python3/dist-packages/rich ]] ||
    chroot "$root" sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends python3-rich'

# What was built from the same commit is kept.
head=$(git -C "$source" rev-parse HEAD)
if [[ $(cat "$root/src/.head" 2>/dev/null) != "$head" ]]; then
    rm -rf "$root/src" && mkdir -p "$root/src"
    git -C "$source" archive HEAD | tar -x -C "$root/src"
    echo "$head" >"$root/src/.head"
fi
rm -rf "$root/site" "$root/var/lib/steelyard"
printf '127.0.0.1 localhost %s\n' "$(hostname -s)" >"$root/etc/hosts"
# All of it ends with this command: namespaces of its own for processes, network and mounts.
unshare --net --mount --pid --fork --kill-child --propagation private \
    chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
    bash /src/setup/try_release_inside.sh
