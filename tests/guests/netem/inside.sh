#!/bin/bash
# Conditions in the guest that tests/guests/layouts/guest_init.sh has made: each line of $SY_OUT's file
# `cases` (NAME SPEC COMMAND…) put in place, the command run under it, undone. Into run/out go
# NAME.apply and NAME.done (the documents), NAME.out (what the command said), NAME.trees (the queues
# before and after), NAME.err (why it was refused). Its *.dist and *.csv are the node's delay tables and traces.
set -u
readonly out=/run/out state=/run/steelyard
readonly whose=(--run-dir "$state" --node guest)

tree() {
    tc qdisc show dev eth9
    ip -d link show eth9 | grep -o 'gso_max_segs [0-9]*'
}

under() { # NAME SPEC COMMAND
    tree >"$out/$1.before"
    if "$node" netem apply "${whose[@]}" --job-id "$1" --uid 0 --no-policy -- "$2" \
        >"$out/$1.apply" 2>"$out/$1.err"; then
        bash -c "$3" >"$out/$1.out" 2>&1
        "$node" netem finish "${whose[@]}" --job-id "$1"
        mv "$state/netem/guest.$1.done.json" "$out/$1.done"
    fi
    tree >"$out/$1.after"
}

export node=$SY_SOURCE/build/bin/steelyard-node
uname -r >"$out/release"
# Its neighbours are known before chance is let loose on them.
ip neigh replace 10.99.0.1 lladdr "$(ip -n peer -o link show wire | sed 's/.*ether \([^ ]*\).*/\1/')" dev eth9
ip -n peer neigh replace 10.99.0.2 lladdr "$(cat /sys/class/net/eth9/address)" dev wire
mkdir -p /etc/steelyard/netem
cp "$out"/*.dist "$out"/*.csv /etc/steelyard/netem 2>/dev/null
chmod 644 /etc/steelyard/netem/*
while read -r name spec command; do
    under "$name" "$spec" "$command"
done <"$out/cases"
