#!/bin/bash
# Print the package of each file below a folder that packaging/install.sh filled by DESTDIR: a line `PACKAGE PATH`
# for each file and each empty folder: packaging/parts.sh FOLDER PREFIX DOC_DIR RECORD_DIR
# Exit code 1: packaging/parts.txt knows no package for one of them.
set -euo pipefail
set -f

readonly list=${BASH_SOURCE[0]%/*}/parts.txt
folder=${1:?FOLDER} prefix=${2:?PREFIX} doc=${3:?DOC_DIR} records=${4:?RECORD_DIR}
mapfile -t rules < <(sed -e '/^#/d' -e "s|@PREFIX@|$prefix|g" -e "s|@DOC@|$doc|g" -e "s|@RECORDS@|$records|g" "$list")

package_of() { # PATH
    local rule words pattern
    for rule in "${rules[@]}"; do
        read -ra words <<<"$rule"
        for pattern in "${words[@]:1}"; do
            # shellcheck disable=SC2053 # it is a pattern
            [[ $1 != $pattern ]] || {
                echo "${words[0]}"
                return
            }
        done
    done
    echo "packaging/parts.txt: no package for $1" >&2
    return 1
}

while read -r path; do
    package=$(package_of "$path")
    echo "$package $path"
done < <(cd "$folder" && find . \( ! -type d -o -empty \) -printf '/%P\n' | LC_ALL=C sort)
