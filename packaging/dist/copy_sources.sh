#!/bin/bash
# Copy this checkout's files without built ones, with uncommitted changes: copy_sources.sh FOLDER
# In a source tar, which is no checkout, all files but build/.
set -euo pipefail

root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)

list_files() {
    if [[ -e $root/.git ]]; then
        git -C "$root" ls-files -co --exclude-standard -z
    else
        (cd "$root" && find . -path ./build -prune -o ! -type d -printf '%P\0')
    fi
}

mkdir -p "$1"
list_files |
    (cd "$root" && while IFS= read -rd '' name; do [[ ! -e $name ]] || printf '%s\0' "$name"; done) |
    tar -C "$root" --null -T - -c | tar -x -C "$1"
