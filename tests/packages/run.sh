#!/bin/bash
# Steelyard laid down on a clean Debian with Slurm, without a compiler, by the very words of docs/admin.md,
# and a job run there:
#   tests/packages/run.sh dist|deb [SUITE]     (root; build/dist, build/deb must be there)
# Exit code 3: something is missing. All of it ends with this command: namespaces of its own for
# processes, network and mounts.
set -euo pipefail

readonly what=${1:?dist or deb} suite=${2:-bookworm}
root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
readonly root

((EUID == 0)) || {
    echo "tests/packages/run.sh: needs root: a chroot, namespaces, and a user besides root" >&2
    exit 3
}
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/steelyard-node.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
"$root/tests/packages/base.sh" "$suite" "$folder"
mkdir -p "$folder/work"/{build,setup,docs,tests/packages}
cp -r "$root/build/$what" "$folder/work/build/"
[[ $what == dist ]] || cp -r "$root/build/dist" "$folder/work/build/"
cp "$root"/docs/admin{,-pbs}.md "$folder/work/docs/"
cp "$root/setup/slurm_in_chroot.sh" "$folder/work/setup/"
cp "$root"/tests/packages/{inside.sh,commands.py,pbs.sh,torque_job.py} "$root/tests/system/torque/mom.py" "$folder/work/tests/packages/"
printf '127.0.0.1 localhost %s\n' "$(hostname -s)" >"$folder/etc/hosts"
unshare --net --mount --pid --fork --kill-child --propagation private \
    chroot "$folder" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    bash /work/tests/packages/inside.sh "$what"
