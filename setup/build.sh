#!/bin/bash
# Build the C parts by Meson in build/meson, and put them into build/bin, build/lib and build/man:
# setup/build.sh [OPTION OF MESON…]
# Meson reads CC, CFLAGS, CPPFLAGS and LDFLAGS; when one of them changes, everything is rebuilt. A part
# that was left out because a package was missing is looked for at each call.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
readonly folder=build/meson
given="$PWD${CC:+ CC=$CC}${CFLAGS:+ CFLAGS=$CFLAGS}${CPPFLAGS:+ CPPFLAGS=$CPPFLAGS}${LDFLAGS:+ LDFLAGS=$LDFLAGS} $*"

for program in meson ninja; do
    type -P "$program" >/dev/null || {
        echo "setup/build.sh: no $program (Debian: meson, ninja-build)" >&2
        exit 3
    }
done
mkdir -p build
# Two of these at once would spoil each other's.
exec 9>build/.meson.lock
flock 9
if [[ ! -e $folder/build.ninja || $(cat "$folder/given" 2>/dev/null) != "$given" ]]; then
    rm -rf "$folder"
    meson setup "$folder" -Dplace=build "$@"
    echo "$given" >"$folder/given"
elif [[ -s $folder/notes ]]; then
    meson configure --clearcache "$folder"
    meson setup --reconfigure "$folder"
fi
# Not the C tests, which `meson test` builds; and not a word where all is there.
[[ $(ninja -C "$folder" -n placed) == *'no work to do'* ]] || ninja -C "$folder" placed
cat "$folder/notes"
