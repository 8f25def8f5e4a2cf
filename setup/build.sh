#!/bin/bash
# Build the C programs by Meson in build/meson, and install them in build/bin, build/lib and build/man:
# setup/build.sh [OPTION OF MESON…]
# Meson reads CC, CFLAGS, CPPFLAGS and LDFLAGS; when one of them changes, everything is rebuilt. Each call
# checks again for packages that were missing.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
readonly folder=build/meson
settings="$PWD${CC:+ CC=$CC}${CFLAGS:+ CFLAGS=$CFLAGS}${CPPFLAGS:+ CPPFLAGS=$CPPFLAGS}${LDFLAGS:+ LDFLAGS=$LDFLAGS} $*"

for program in meson ninja; do
    type -P "$program" >/dev/null || {
        echo "setup/build.sh: no $program (Debian: meson, ninja-build)" >&2
        exit 3
    }
done
mkdir -p build
# Two builds at once would overwrite each other's files.
exec 9>build/.meson.lock
flock 9
if [[ ! -e $folder/build.ninja || $(cat "$folder/given" 2>/dev/null) != "$settings" ]]; then
    rm -rf "$folder"
    meson setup "$folder" -Dplace=build "$@"
    echo "$settings" >"$folder/given"
elif [[ -s $folder/notes ]]; then
    meson configure --clearcache "$folder"
    meson setup --reconfigure "$folder"
fi
# Not the C tests, which `meson test` builds. Without output where all is built.
[[ $(ninja -C "$folder" -n placed) == *'no work to do'* ]] || ninja -C "$folder" placed
cat "$folder/notes"
