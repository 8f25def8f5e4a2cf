#!/bin/bash
# One group of `make test`: says that it begins, and every minute that it still runs; what the group
# prints comes when it ends. One that cannot run on this machine says why into $GROUP_NOT_RUN.
# tests/run_group.sh NAME COMMAND…
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

GROUP_NOT_RUN=$(mktemp)
export GROUP_NOT_RUN
trap 'rm -f "$GROUP_NOT_RUN"' EXIT
say begins
exec {alive}> >(still)
"$@" {alive}>&-
code=$?
ended=green
[[ ! -s $GROUP_NOT_RUN ]] || ended=$(<"$GROUP_NOT_RUN")
[[ $code == 0 ]] || ended=red
say "ends after $SECONDS s: $ended"
exit "$code"
