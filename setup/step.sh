#!/bin/bash
# One step of the set-up: setup/step.sh TITLE COMMAND…
# Says that it begins, and after how many seconds it has ended. On a terminal one more line tells, twice
# a second, for how long it is at work and at what (apt, pip and compilers are understood). What the
# command says comes when it fails; else only its notes (`note: …`).
set -uo pipefail

readonly title=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

tell() { printf 'steelyard: %s\n' "$1" >&2; }

# What the last line of the command means, with how far it is.
at_work() {
    local line words percent
    line=$(tail -n 1 "$log")
    case $line in
    dlstatus:* | pmstatus:*)
        IFS=: read -r _ _ percent words <<<"$line"
        printf '%s %%, %s' "${percent%.*}" "$words"
        ;;
    Collecting* | *Downloading* | *Using\ cached*)
        printf '%d Python packages found, %s' "$(grep -c '^Collecting' "$log")" "${line#"${line%%[! ]*}"}"
        ;;
    *) printf '%s' "$line" ;;
    esac
}

live() { # until nobody holds the other end of the pipe
    columns=$(tput cols 2>/dev/null || echo 80)
    while
        draw
        read -r -t 0.5
        (($? > 128))
    do :; done
    draw
    printf '\r\033[K' >&2
}

draw() {
    local -r line="  $SECONDS s  $(at_work)"
    printf '\r\033[K%s' "${line:0:columns-1}" >&2
}

tell "$title"
if [[ -t 2 ]]; then
    exec {alive}> >(live)
    drawn=$!
    "$@" >"$log" 2>&1 {alive}>&-
    code=$?
    exec {alive}>&-
    wait "$drawn"
else
    "$@" >"$log" 2>&1
    code=$?
fi
if [[ $code != 0 ]]; then
    cat "$log" >&2
    tell "failed after $SECONDS s: $title"
    exit "$code"
fi
grep '^note:' "$log" >&2
tell "done after $SECONDS s"
