#!/bin/bash
# A job as pbs_mom begins and ends it, this shell being pbs_mom: job.sh STEELYARD_NODE FOLDER
# Prints what `job end` does. Exit code: of `job begin` if it refuses the job, else of `job end`.
set -uo pipefail
readonly node=$1 folder=$2
readonly mark=STEELYARD_TORTURE=$$
readonly where=(--job-id 7 --node n1 --run-dir "$folder/run" --record-dir "$folder/records"
    --node-program "$folder/node" --config "$folder/pbs.conf")

# What it starts as nobody's child gets no environment of ours: its calls count, too.
wrap() {
    local name
    echo '#!/bin/sh'
    for name in FAIL_NTH ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS; do
        printf "export %s='%s'\n" "$name" "${!name:-}"
    done
    printf "exec %s \"\$@\"\n" "$node"
}

samples() { cat "$folder"/records/7/*.csv 2>/dev/null | wc -l; }

# Two samples more have seen it with all that it wrote, or a second is over: there may be no sampler.
until_seen() {
    local -i before tries=20
    before=$(samples)
    while ((tries-- > 0 && $(samples) < before + 2)); do sleep 0.05; done
}

wrap >"$folder/node"
chmod 755 "$folder/node"
mkfifo "$folder/gate"
"$node" job begin "${where[@]}" --owner "$(id -u):$(id -g)" --parent $$ --mark "$mark" --rate 20 || exit
# shellcheck disable=SC2016 # the job's
env "$mark" bash -c 'dd if=/dev/zero of="$1/eight" bs=1M count=8 status=none; read -r <"$1/gate"' - "$folder" &
readonly job=$!
until [[ $(stat -c %s "$folder/eight" 2>/dev/null) == 8388608 ]]; do sleep 0.01; done
until_seen
echo >"$folder/gate"
wait "$job"
"$node" job end "${where[@]}" --exit-status 0
