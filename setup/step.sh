#!/bin/bash
# One step of the set-up: setup/step.sh TITLE COMMAND…
# Prints the title at the start, and the elapsed seconds at the end. On a terminal a line shows, twice a
# second, the elapsed time and the current action (of apt, pip and compilers). The command's output is
# printed when it fails; else only its notes (`note: …`).
set -uo pipefail

readonly title=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

report() { printf 'steelyard: %s\n' "$1" >&2; }

# Print the current action, from the command's last line.
format_action() {
    local line action percent
    line=$(tail -n 1 "$log")
    case $line in
    dlstatus:* | pmstatus:*)
        IFS=: read -r _ _ percent action <<<"$line"
        printf '%s %%, %s' "${percent%.*}" "$action"
        ;;
    Collecting* | *Downloading* | *Using\ cached*)
        printf '%d Python packages found, %s' "$(grep -c '^Collecting' "$log")" "${line#"${line%%[! ]*}"}"
        ;;
    *) printf '%s' "$line" ;;
    esac
}

show_progress() { # until the pipe is closed
    columns=$(tput cols 2>/dev/null || echo 80)
    while
        draw_line
        read -r -t 0.5
        (($? > 128))
    do :; done
    draw_line
    printf '\r\033[K' >&2
}

draw_line() {
    local -r line="  $SECONDS s  $(format_action)"
    printf '\r\033[K%s' "${line:0:columns-1}" >&2
}

report "$title"
if [[ -t 2 ]]; then
    exec {alive}> >(show_progress)
    progress_pid=$!
    "$@" >"$log" 2>&1 {alive}>&-
    code=$?
    exec {alive}>&-
    wait "$progress_pid"
else
    "$@" >"$log" 2>&1
    code=$?
fi
if [[ $code != 0 ]]; then
    cat "$log" >&2
    report "failed after $SECONDS s: $title"
    exit "$code"
fi
grep '^note:' "$log" >&2
report "done after $SECONDS s"
