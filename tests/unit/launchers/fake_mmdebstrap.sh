#!/bin/bash
# In mmdebstrap's place, without a network: a folder or a tar of a few files, its arguments noted beside
# it in $MMDEBSTRAP_NOTES. As the suite says it fails, or waits until it is killed.
set -eu
printf '%s\n' "$@" >"$MMDEBSTRAP_NOTES"
while [[ $1 == -* ]]; do
    shift
done
echo 'I: running apt-get update...' >&2
case $1 in
lost) echo 'E: Unable to locate package nonesuch' >&2 && exit 1 ;;
full) printf 'tar: ./%s: Cannot write: No space left on device\n' {1..99} >&2 && exit 1 ;;
slow) mkdir -p "$2" && touch "$2/half" && sleep 100.4711 ;;
esac
root=$2
[[ $root != *.tar ]] || root=$(mktemp -d)
mkdir -p "$root"/{etc,usr/bin}
echo "ID=debian" >"$root/etc/os-release"
[[ $2 != *.tar ]] || tar -C "$root" -cf "$2" .
