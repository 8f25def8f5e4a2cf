#!/bin/bash
# A newer kernel as a program (User Mode Linux), out of another release of Debian than this machine's,
# with the C library that it needs. Usage: tests/guests/netem/kernel.sh SUITE DIR; into DIR: linux.uml,
# modules, lib.
set -euo pipefail
# shellcheck source=tests/debian_suite.sh
source "${BASH_SOURCE[0]%/*}/../../debian_suite.sh"

suite=$1 dir=$2
[[ -x $dir/linux.uml ]] && exit
work=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$work"' EXIT
suite_open "$suite" "$work"
suite_unpack "$work" user-mode-linux libc6
mkdir -p "$dir"
mv "$work/root/usr/lib/uml/modules" "$dir/modules"
mkdir -p "$dir/lib"
find "$work/root" -path '*x86_64-linux-gnu/*.so.*' -maxdepth 5 -type f -exec mv -t "$dir/lib" {} +
mv "$work/root/usr/bin/linux.uml" "$dir/linux.uml"
