#!/bin/bash
# Checks the plugin with every layout of cgroups on real kernels and every release of Slurm.
# Usage (root): tests/guests/layouts/run.sh [SUITE[:LAYOUT]…]; SUITE: bookworm, trixie, sid (all); LAYOUT:
# v1, v2, v2-ids, none (all that the suite has), v2-counted (bookworm alone, and only when it is named:
# an emulated machine with Debian's kernel, which counts; some minutes). A virtual node (User Mode Linux) for each, half a
# minute where nothing else runs; a release that is not this machine's gets a folder, which is kept
# (setup/release_root.sh). Prints a table, which docs/admin.md sums up; exit code 1: a check failed.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/../../.."
work=$(mktemp -d /tmp/steelyard-layouts.XXXXXX)
readonly work
failed=0
# shellcheck source=tests/guests/layouts/emulated.sh
source tests/guests/layouts/emulated.sh

if ((EUID != 0)); then
    echo "tests/guests/layouts/run.sh: needs root: User Mode Linux on folders of root's" >&2
    exit 3
fi
type -P linux.uml >/dev/null || {
    echo "tests/guests/layouts/run.sh: apt-get install user-mode-linux" >&2
    exit 3
}

list_layouts() { # SUITE[:LAYOUT]
    case $1 in
    *:*) echo "${1#*:}" ;;
    bookworm | trixie) echo v1 v2 none ;;
    *) echo v1 v2 v2-ids none ;;
    esac
}

# Set the root of a suite, and the path of this checkout in it.
prepare() { # SUITE
    if grep -q "VERSION_CODENAME=$1" /etc/os-release; then
        root=/ source=$PWD
    else
        root=/var/tmp/steelyard-$1 source=/src
        setup/release_root.sh "$1" "$root"
        chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            make -s -C /src all >&2
    fi
}

# The preloaded library lets the kernel save the registers of a processor with AMX (plugins/uml).
boot() { # LAYOUT OUT
    TMPDIR=/dev/shm LD_PRELOAD=$PWD/build/lib/libsteelyard-uml.so \
        unshare --pid --net --fork --kill-child timeout 900 \
        linux.uml rootfstype=hostfs rootflags="$root" ro mem=768M \
        init="$source/tests/guests/layouts/guest_init.sh" quiet con=null con0=fd:0,fd:1 \
        umid="layout$$" uml_dir="$2/uml/" SY_LAYOUT="$1" SY_SOURCE="$source" SY_OUT="$2" \
        </dev/null >"$2/console" 2>&1 || :
}

run_layout() { # SUITE LAYOUT
    local -r out=$work/$1-$2
    mkdir -p "$out"
    if [[ $2 == *-counted ]]; then
        require_emulator
        boot_emulated "$2" "$out" "$source"
    else
        boot "$2" "$out"
    fi
    sed "s/^\(not \)\?ok /&$1, $2: /" "$out/console" | grep -E '^(not )?ok ' || :
    if [[ $(cat "$out/rc" 2>/dev/null) != 0 ]]; then
        echo "not ok $1, $2: $out/console says last:"
        tail -n 20 "$out/console"
        failed=1
    fi
}

for suite in "${@:-bookworm trixie sid}"; do
    # shellcheck disable=SC2086 # the default is three words
    for one in $suite; do
        prepare "${one%%:*}"
        for layout in $(list_layouts "$one"); do
            run_layout "${one%%:*}" "$layout"
        done
    done
done
if compgen -G "$work/*/row" >/dev/null; then
    printf '\n%s\n| --- | --- | --- | --- | --- | --- | --- | --- |\n' "| Slurm | layout | the job's group | CPU, memory by | CPU s: record of shells | the sampler is in | ms: shaped and not | --async |"
    cat "$work"/*/row | sort | sed 's/|/ | /g; s/^/| /; s/$/ |/'
fi
((failed)) || rm -rf "$work"
exit $failed
