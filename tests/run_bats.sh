#!/bin/bash
# Run bats; at the end, the slowest tests, and why one that had a second try has failed at the first. One
# that skips everything has shown nothing: tests/run_bats.sh PATH…
set -uo pipefail

log=$(mktemp)
outputs=$(mktemp -d)
trap 'rm -rf "$log" "$outputs"' EXIT

bats --tap --timing --gather-test-outputs-in "$outputs/of" "$@" | tee "$log"
code=${PIPESTATUS[0]}
if ! grep '^ok ' "$log" | grep -qv '# skip'; then
    printf 'run_bats.sh: no test ran to its end\n' >&2
    exit 1
fi
printf 'slowest:\n%s\n' "$(sed -nE 's/^(not )?ok [0-9]+ (.*) in ([0-9]+)(ms|sec)$/\3 \4 \2/p' "$log" | sort -rn | head -20)"
for output in "$outputs"/of/*-try1-*.log; do
    [[ ! -e $output ]] || printf 'failed at the first try: %s\n%s\n' "${output##*-try1-}" "$(cat "$output")"
done
exit "$code"
