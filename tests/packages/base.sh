#!/bin/bash
# A node of a Debian cluster before Steelyard, without a compiler, as a folder: base.sh SUITE FOLDER
# (root). Its packages are fetched once and kept: build/packages/SUITE.tar, 300 MB; with them, not
# installed, what the page has one install for Steelyard, since the test has no network.
set -euo pipefail

readonly suite=$1 folder=$2
root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
readonly root kept=$root/build/packages/$suite.tar
readonly packages=slurmctld,slurmd,slurmdbd,slurm-client,munge,mariadb-server-core,mariadb-client-core,python3,iproute2,kmod,mount,procps,jq

mkdir -p "${kept%/*}"
exec 9>"$kept.lock"
flock 9
if [[ ! -e $kept ]]; then
    # shellcheck disable=SC2016 # mmdebstrap's shell expands it
    # sid's lists are days old on mirrors that stand still.
    mmdebstrap -q --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' --include="$packages" \
        --skip=cleanup/apt --customize-hook='chroot "$1" apt-get install -y -q --download-only libjansson4 libmnl0 libbpf1 libgomp1 libslurm38' \
        "$suite" "$kept.part.tar" http://deb.debian.org/debian
    mv "$kept.part.tar" "$kept"
fi
exec 9>&-
mkdir -p "$folder"
tar -x -C "$folder" -f "$kept" --exclude='./dev/*'
