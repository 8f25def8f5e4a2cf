#!/bin/sh
set -u
export LC_ALL=C

UNFINISHED_MIN=$((60 * 1440)) # a record without an end: of a sampler that lives, or of one that was lost
LEFT_MIN=$((7 * 1440))        # what no record is beside: of a sampler that was killed as it began or ended
sent=0 kept=0 failed=0 alone=0 removed=0

say() { echo "steelyard-forward: $*" >&2; }

# As the owner of the shared folder: root may be nobody there.
as_owner() {
    if [ "$owner" ]; then runuser -u "$owner" -- "$@"; else "$@"; fi
}

sum() { sha256sum | cut -d ' ' -f 1; }

# is_older FOLDER STEM MINUTES: nothing of a record has been touched for so long.
is_older() {
    ! find "$1" \( -name "$2.*" -o -name ".$2.json.tmp" \) -newermt "-$3 minutes" | grep -q .
}

# is_over FOLDER STEM: nobody writes to this record any more.
is_over() {
    is_older "$1" "$2" "$UNFINISHED_MIN" && return 0
    [ ! -e "$1/.$2.json.tmp" ] && [ -s "$1/$2.json" ] && ! grep -q '"end_unix_s": null' "$1/$2.json"
}

# send FILE FOLDER: copy the complete file into the folder, under its name.
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
    send_all "$folder" "$stem" || return
    rm -f "$folder/$stem.csv" "$folder/.$stem.json.tmp"
    rm -f "$folder/$stem.json"
    rmdir "$folder" 2>/dev/null
    sent=$((sent + 1))
}

# send_all FOLDER STEM: what there is of a record, to the folder of its day.
send_all() {
    place=$records/$(date -u -d "@${2##*.}" +%Y-%m/%d)/${1##*/} || return 1
    for ending in csv json; do
        [ -f "$1/$2.$ending" ] || continue
        if ! send "$1/$2.$ending" "$place"; then
            say "$1/$2.$ending could not be sent to $place, or another file has its name there: it stays here"
            failed=$((failed + 1))
            return 1
        fi
    done
}

# alone SAMPLES: of which there is no record.
alone() {
    folder=${1%/*} stem=${1##*/}
    stem=${stem%.csv}
    if ! is_older "$folder" "$stem" "$LEFT_MIN"; then
        kept=$((kept + 1))
        return
    fi
    send_all "$folder" "$stem" || return
    rm -f "$folder/.$stem.json.tmp" "$1"
    rmdir "$folder" 2>/dev/null
    alone=$((alone + 1))
}

# left_over TEMPORARY: room that was set aside for a record which never came.
left_over() {
    stem=${1##*/.}
    stem=${stem%.json.tmp}
    [ -e "${1%/*}/$stem.json" ] || [ -e "${1%/*}/$stem.csv" ] && return
    is_older "${1%/*}" "$stem" "$LEFT_MIN" && rm -f "$1" && removed=$((removed + 1))
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
for samples in "$spool"/*/*.csv; do
    [ -f "$samples" ] && [ ! -h "$samples" ] && [ ! -e "${samples%.csv}.json" ] && alone "$samples"
done
for temporary in "$spool"/*/.*.json.tmp; do
    [ -f "$temporary" ] && [ ! -h "$temporary" ] && left_over "$temporary"
done
find "$spool" -mindepth 1 -maxdepth 1 -type d -empty ! -newermt "-$LEFT_MIN minutes" -exec rmdir {} + 2>/dev/null
if [ $((sent + failed + alone + removed)) -gt 0 ]; then
    more=
    [ $alone -eq 0 ] || more=", $alone samples without a record sent"
    [ $removed -eq 0 ] || more="$more, $removed that killed samplers left removed"
    echo "$sent records sent to $records, $kept not over yet, $failed failed$more"
fi
[ "$failed" -eq 0 ] || exit 3
