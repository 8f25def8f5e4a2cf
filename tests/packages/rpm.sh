#!/bin/bash
# The packages of `make package KIND=rpm` in a root of their own: their files are those of the one list, scriptlets do
# what they say, and nothing stays: tests/packages/rpm.sh (root; build/rpm must be there)
# No system with rpm is pulled: the root is a Debian without Steelyard, and nobody asks for dependencies.
set -Eeuo pipefail

root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
readonly root
((EUID == 0)) || {
    echo "tests/packages/rpm.sh: needs root: a chroot" >&2
    exit 3
}
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/steelyard-rpm.XXXXXX")
readonly folder mom=/var/spool/torque/mom_priv
trap 'rm -rf --one-file-system "$folder"' EXIT
failed=0

ok() { # NAME COMMAND…
    local said
    if said=$("${@:2}" 2>&1); then
        echo "ok $1"
    else
        printf 'not ok %s: exit code %s\n%s\n' "$1" "$?" "$said"
        failed=1
    fi
}

in_root() { rpm --root "$folder" --dbpath /var/lib/rpm "$@"; }

# Everything but rpm's own database and what the test makes, with mode and owner.
list_files() {
    (cd "$folder" && find . -path ./var/lib/rpm -prune -o -path ./var/spool/torque -prune -o -printf '%M %u %P %l\n' | LC_ALL=C sort)
}

# What packaging/install.sh puts there, by packaging/parts.txt: the same list that the packages are from.
list_expected_files() {
    meson setup "$folder.meson" "$root" -Dmpi=disabled -Dplace="$folder.built" >/dev/null
    ninja -C "$folder.meson" placed >/dev/null
    BUILT="$folder.built" PREFIX=/usr DOC_DIR=/usr/share/steelyard DESTDIR="$folder.want" "$root/packaging/install.sh" packaged >/dev/null
    "$root/packaging/parts.sh" "$folder.want" /usr /usr/share/steelyard /var/lib/steelyard/records | sed 's|^[a-z]* ||'
    rm -rf "$folder".{want,meson,built}
}

# Without what rpm adds by itself (notes of builds, packed man pages), folders only where they are empty.
list_packaged_files() {
    rpm -qlp "$root"/build/rpm/*.rpm 2>/dev/null | grep -vE '^/usr/(share/(doc|licenses)|lib/\.build-id)(/|$)' |
        sort -u | while read -r path; do
        [[ -d $folder$path && -n $(ls -A "$folder$path") ]] || echo "${path%.gz}"
    done
}

# The database is there before: it is no package's.
"$root/tests/packages/base.sh" bookworm "$folder"
mknod -m 0666 "$folder/dev/null" c 1 3 # scriptlets write there; base.sh brings no devices
# What every system with rpm has.
mkdir -p "$folder$mom" "$folder"/usr/share/{man/man1,man/man8,licenses} "$folder/etc/cron.d"
printf '#!/bin/sh\nexit 0\n' >"$folder$mom/prologue"
chmod 0500 "$folder$mom/prologue"
cp -p "$folder$mom/prologue" "$folder/tmp/prologue.before"
in_root --initdb
list_files >"$folder.before"

ok "installed" in_root --nodeps -i "$root"/build/rpm/*.rpm
ok "its files are those of packaging/parts.txt" diff <(list_expected_files | LC_ALL=C sort) <(list_packaged_files | LC_ALL=C sort)
ok "all as they were packed" in_root -Va --nodeps
ok "Torque: switched on" chroot "$folder" /usr/libexec/steelyard/steelyard-torque on
echo "# Steelyard: around a job of Torque" >"$folder$mom/epilogue"
ok "the same package again, as an upgrade" in_root --nodeps -U --force "$root"/build/rpm/*.rpm
ok "brings today's scripts" cmp "$folder$mom/epilogue" "$folder/usr/libexec/steelyard/torque-sweep"
rm -f "$folder/etc/steelyard/pbs.conf"
mapfile -t names < <(in_root -qa --qf '%{NAME}\n' | LC_ALL=C sort)
echo "# ${names[*]}"
ok "removed again" in_root --nodeps -e "${names[@]}"
ok "nothing is left" diff "$folder.before" <(list_files)
ok "the site's own prologue is back, alone" test "$(ls "$folder$mom")" = prologue
ok "and as it was" cmp "$folder$mom/prologue" "$folder/tmp/prologue.before"
rm -f "$folder.before"
exit $failed
