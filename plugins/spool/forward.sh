#!/bin/sh
set -u
export LC_ALL=C

UNFINISHED_MIN=$((60 * 1440)) # a record without an end: of a sampler that lives, or of one that was lost
sent=0 kept=0 failed=0

say() { echo "steelyard-forward: $*" >&2; }

# As the owner of the shared folder: root may be nobody there.
as_owner() {
    if [ "$owner" ]; then runuser -u "$owner" -- "$@"; else "$@"; fi
}

sum() { sha256sum | cut -d ' ' -f 1; }

# is_over FOLDER STEM: nobody writes to this record any more.
is_over() {
    [ "$(find "$1" -name "$2.*" -newermt "-$UNFINISHED_MIN minutes" | head -n 1)" ] || return 0
    [ ! -e "$1/.$2.json.tmp" ] && [ -s "$1/$2.json" ] && ! grep -q '"end_unix_s": null' "$1/$2.json"
}

# send FILE FOLDER: it lies there, whole, under its name.
send() {
    want=$(sum <"$1") && name=${1##*/} || return 1
    # shellcheck disable=SC2016 # for the other shell
    as_owner sh -c '
        umask 022
        mkdir -p "$1" && cd "$1" || exit 1
        if [ ! -e "$2" ]; then
            rm -f ".$2.part" && cat >".$2.part" && chmod "$4" ".$2.part" && sync ".$2.part" &&
                [ "$(sha256sum <".$2.part" | cut -d " " -f 1)" = "$3" ] && mv ".$2.part" "$2" && sync . || exit 1
        fi
        [ "$(sha256sum <"$2" | cut -d " " -f 1)" = "$3" ]' \
        sh "$2" "$name" "$want" "${STEELYARD_FORWARD_MODE:-0440}" <"$1"
}

# forward RECORD: its samples before it, so that no reader misses them; away the other way round.
forward() {
    folder=${1%/*} stem=${1##*/}
    stem=${stem%.json}
    if ! is_over "$folder" "$stem"; then
        kept=$((kept + 1))
        return
    fi
    place=$records/$(date -u -d "@${stem##*.}" +%Y-%m/%d)/${folder##*/} || return
    for ending in csv json; do
        [ -f "$folder/$stem.$ending" ] || continue
        if ! send "$folder/$stem.$ending" "$place"; then
            say "$folder/$stem.$ending could not be sent to $place, or another file has its name there: it stays here"
            failed=$((failed + 1))
            return
        fi
    done
    rm -f "$folder/$stem.csv" "$folder/.$stem.json.tmp"
    rm -f "$folder/$stem.json"
    rmdir "$folder" 2>/dev/null
    sent=$((sent + 1))
}

if [ "${1-}" = --help ]; then
    cat <<'END'
usage: steelyard-forward SPOOL RECORD_DIR [USER]

Sends records that samplers left in this node's spool on to the shared folder.

As USER, who may write there, and removed here once they are there, by their checksum. For a timer
or a cron line of root's, on every node (docs/records.md). Killed anywhere, or run twice: nothing is
lost, nothing comes twice. Exit code 2: no such spool; 3: RECORD_DIR does not bear its mark
.steelyard-records, or a record could not be sent.
END
    exit 0
fi
if [ $# -lt 2 ] || ! [ -d "$1" ]; then
    say "expected: steelyard-forward SPOOL RECORD_DIR [USER]; SPOOL a folder that is there"
    exit 2
fi
spool=$1 records=$2 owner=${3:-}
exec 9<"$spool"
flock -n 9 || exit 0 # another one is at it
as_owner test -f "$records/.steelyard-records" || {
    say "$records does not bear its mark .steelyard-records: is it mounted? Nothing was sent"
    exit 3
}
for record in "$spool"/*/*.json; do
    [ -f "$record" ] && [ ! -h "$record" ] && forward "$record"
done
[ $((sent + failed)) -eq 0 ] || echo "$sent records sent to $records, $kept not over yet, $failed failed"
[ "$failed" -eq 0 ] || exit 3
