#!/bin/bash
# One group of `make test`: says that it begins, and every minute that it still runs; what the group
# prints comes when it ends: tests/run_group.sh NAME COMMAND…
set -uo pipefail

readonly name=$1
shift

say() { printf '[%(%T)T] %s %s\n' -1 "$name" "$1"; }

still() { # until nobody holds the other end of the pipe
    while
        read -r -t "${STILL_S:-60}"
        (($? > 128))
    do
        say "still runs after $SECONDS s"
    done
}

say begins
exec {alive}> >(still)
"$@" {alive}>&-
code=$?
say "ends after $SECONDS s: $([[ $code == 0 ]] && echo green || echo red)"
exit "$code"
