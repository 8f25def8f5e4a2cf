#!/bin/bash
# This checkout's files as git has them, changed ones too, and nothing that was built: source.sh FOLDER
# In a source tar, which is no checkout, all files but those.
set -euo pipefail

root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)

names() {
    if [[ -e $root/.git ]]; then
        git -C "$root" ls-files -co --exclude-standard -z
    else
        (cd "$root" && find . -path ./build -prune -o ! -type d -printf '%P\0')
    fi
}

mkdir -p "$1"
names |
    (cd "$root" && while IFS= read -rd '' name; do [[ ! -e $name ]] || printf '%s\0' "$name"; done) |
    tar -C "$root" --null -T - -c | tar -x -C "$1"
