#!/bin/bash
# A Debian suite in a folder, with Slurm, the plugin's build packages, and this checkout's commit in
# /src: setup/release_root.sh SUITE FOLDER (root). The folder (1 GB) is kept and re-used; a build of the
# same commit is kept.
set -euo pipefail

readonly suite=${1:?SUITE: bookworm, trixie or sid}
readonly root=${2:?FOLDER}
readonly source=${BASH_SOURCE[0]%/*}/..
readonly packages=slurmctld,slurmd,slurmdbd,slurm-client,libslurm-dev,munge,mariadb-server,gcc,make,meson,ninja-build,pkg-config,libc6-dev,libjansson-dev,libmnl-dev,python3,python3-rich,iproute2,procps,kmod,iputils-ping

if [[ ! -e $root/usr/sbin/slurmd ]]; then
    type -P mmdebstrap >/dev/null || {
        echo "release_root.sh: apt-get install mmdebstrap" >&2
        exit 3
    }
    # Stale mirrors have lists of sid that are days old.
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include="$packages" "$suite" "$root" http://deb.debian.org/debian
fi

# An older folder may lack packages.
if [[ ! -d $root/usr/lib/python3/dist-packages/rich || ! -e $root/usr/bin/kmod || ! -e $root/usr/bin/meson ]]; then
    chroot "$root" sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends python3-rich kmod iputils-ping meson ninja-build pkg-config'
fi

head=$(git -C "$source" rev-parse HEAD)
if [[ $(cat "$root/src/.head" 2>/dev/null) != "$head" ]]; then
    rm -rf "$root/src" && mkdir -p "$root/src"
    git -C "$source" archive HEAD | tar -x -C "$root/src"
    echo "$head" >"$root/src/.head"
fi
