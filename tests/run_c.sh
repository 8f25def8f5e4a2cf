#!/bin/bash
# Run the C tests, one program after another: tests/run_c.sh PROGRAM…
# The output of one that failed is shown; at the end, the slowest ones.
set -uo pipefail

readonly log=build/test/log
times=

for program in "$@"; do
    begin=${EPOCHREALTIME/./}
    if ! "$program" build/lib/spank_steelyard.so >"$log" 2>&1; then
        cat "$log"
        printf '%s failed\n' "$program" >&2
        exit 1
    fi
    printf '%s: %s ok\n' "$program" "$(grep -c '^ok' "$log")"
    times+="$(((${EPOCHREALTIME/./} - begin) / 1000)) ms $program"$'\n'
done
printf 'slowest:\n%s\n' "$(sort -rn <<<"${times%$'\n'}" | head -20)"
