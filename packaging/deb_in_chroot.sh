#!/bin/bash
# Debian packages for another release of Slurm: packaging/deb/deb.sh of this checkout's commit in a Debian suite's
# chroot (setup/release_root.sh keeps and re-uses it), installed there, checked by
# `steelyard-node doctor`, and purged. Usage (root): packaging/deb_in_chroot.sh SUITE [FOLDER]
# SUITE: bookworm, trixie, sid. build/deb-SUITE/*.deb
set -euo pipefail

readonly suite=${1:?SUITE: bookworm, trixie or sid}
readonly root=${2:-/var/tmp/steelyard-$suite}
source=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
readonly source

if ((EUID != 0)); then
    echo "deb_in_chroot.sh: needs root: a chroot" >&2
    exit 3
fi
"$source/setup/release_root.sh" "$suite" "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
unshare --mount --pid --fork --kill-child --propagation private \
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 bash -euc '
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /run
    mount -t devtmpfs dev /dev
    mount -t devpts devpts /dev/pts # apt gives dpkg a pty
    cd /src
    setup/packages.sh bpf deb
    rm -rf build && packaging/deb/deb.sh
    apt-get install -y -q --no-install-recommends ./build/deb/*.deb >/run/apt.log 2>&1 || { cat /run/apt.log; exit 1; }
    slurmd -V
    /usr/libexec/steelyard/steelyard-node doctor --plugstack /usr/share/steelyard/plugstack.conf.example --only plugin | tee /run/said
    apt-get purge -y -q "steelyard-*" >/run/apt.log 2>&1 || { cat /run/apt.log; exit 1; }
    grep -q "spank_steelyard.so loads" /run/said'
rm -rf "$source/build/deb-$suite"
mkdir -p "$source/build/deb-$suite"
mv "$root"/src/build/deb/*.deb "$source/build/deb-$suite/"
ls "$source/build/deb-$suite"/*.deb
