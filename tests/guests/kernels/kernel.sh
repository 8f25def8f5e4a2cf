#!/bin/bash
# The kernel of a release of Debian, as its cloud images have it: tests/guests/kernels/kernel.sh SUITE FILE [FOLDER]:
# its modules go into that folder, which is not there yet.
# Exit code 3: Debian has that release no more.
set -euo pipefail
# shellcheck source=tests/debian_suite.sh
source "${BASH_SOURCE[0]%/*}/../../debian_suite.sh"

suite=$1 file=$2 modules=${3:-}
[[ -e $file ]] && exit
work=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf "$work"' EXIT
suite_open "$suite" "$work" || exit 3
list_needed() { # PACKAGE PATTERN: what it needs
    "${suite_cache[@]}" depends "$1" | grep -o "$2[0-9][^ ]*" | head -1
}
image=$(list_needed linux-image-cloud-amd64 linux-image-)
# The newest has its program in a package of its own.
program=$(list_needed "$image" linux-binary-) || program=$image
suite_unpack "$work" "$program"
find "$work/root" -name 'vmlinuz*' -type f -exec mv {} "$file" \;
if [[ $modules ]]; then
    for folder in "$work/root/lib/modules/"*; do depmod -b "$work/root" "${folder##*/}"; done
    mv "$work/root/lib/modules" "$modules"
fi
[[ -e $file ]]
