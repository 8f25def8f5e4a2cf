#!/bin/bash
# Run bats; at the end, the slowest tests. One that skips everything has shown nothing: tests/run_bats.sh PATH…
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

bats --tap --timing "$@" | tee "$log"
code=${PIPESTATUS[0]}
if ! grep '^ok ' "$log" | grep -qv '# skip'; then
    printf 'run_bats.sh: no test ran to its end\n' >&2
    exit 1
fi
printf 'slowest:\n%s\n' "$(sed -nE 's/^(not )?ok [0-9]+ (.*) in ([0-9]+)(ms|sec)$/\3 \4 \2/p' "$log" | sort -rn | head -20)"
exit "$code"
