#!/bin/bash
# Runs tests: tests/run.sh TIER|GROUP…
#
# A tier (fast, test, slow) is a set of groups; a group is one kind of tests. `tests/run.sh list` prints
# both. A tier has lanes, which run side by side, each one group after another. A group that mostly waits
# (clusters, virtual nodes, programs) has a lane of its own, so that the groups that compute never wait
# for it. The script reports when a group starts and ends and, once a minute, that it still runs. The
# output of a group is printed when the group ends. The last lines are a table of all groups; the exit
# code is 1 when one of them is red.
#
# A group that this machine cannot run writes the reason into the file $GROUP_NOT_RUN.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit

readonly VENV=build/venv LOGS=${GROUP_LOGS:-$PWD/build/test/groups}
# A worker a processor, within the memory of a login node.
WORKERS=${WORKERS:-$(n=$(nproc) && echo $((n < 8 ? n : 8)))}
# Each worker, and each command that a test starts, would otherwise compile our sources again.
export PYTHONDONTWRITEBYTECODE=

# Each has a temporary folder of its own: a pytest that starts closes the common one to other users,
# whom a test beside it may have let in.
run_pytest() (
    folder=$(mktemp -d /tmp/sytest-XXXXXX) && trap 'rm -rf "$folder"' EXIT
    "$VENV/bin/python" -P -m pytest -q --durations=10 --basetemp="$folder/t" "$@"
)
spread_tests() { run_pytest -n "$WORKERS" --dist worksteal "$@"; }
# They mostly wait, for samplers and daemons: three workers a processor.
spread_waiting() { WORKERS=$((WORKERS < 3 ? 3 * WORKERS : 8)) spread_tests "$@"; }
spread_files() { run_pytest -n 2 --dist loadfile "$@"; } # each of two workers has its own cluster

# --- groups of make check-fast and make test ----------------------------------------------------

group_units() { spread_tests tests/unit; }
group_units-fast() { spread_tests -m "not thorough" tests/unit; }
group_c() { meson test -C build/meson --quiet --print-errorlogs; }
group_ruff() { "$VENV/bin/ruff" check -q . && "$VENV/bin/ruff" format -q --check .; }
group_compiler() { tests/lint.sh gcc; }
group_lint() { tests/lint.sh; }
group_programs() {
    spread_waiting -m 'not slow' --ignore=tests/system/cluster --ignore=tests/system/network tests/system
}
group_cluster() { spread_files -m 'not slow' tests/system/cluster tests/system/network; }
group_bats() { tests/run_bats.sh tests/bats; }
group_npb() { tests/run_npb.sh quick; }
group_failsafe() { tests/failsafe/run.sh; }

# --- groups of make test-slow -------------------------------------------------------------------

group_guests() { spread_files tests/guests/nodes; } # root, /dev/net/tun
group_slow() { spread_tests -m slow tests/system; }
group_docker-host() { CLUSTERS=2 allow_missing_docker tests/docker/cluster.sh test host; }
group_wheel() { setup/packages.sh check-packages && tests/packages/wheel.sh; } # fetches 0.4 GB the first time
group_compilers() { tests/lint.sh --all-compilers; }
group_sanitize() { tests/run_sanitized.sh tests; }
group_fuzz() { tests/run_sanitized.sh fuzz "${FUZZ_S:-60}"; }
group_torture() { tests/run_sanitized.sh torture "${TORTURE_S:-120}"; }
group_npb-all() { tests/run_npb.sh check; }
group_kernels() { setup/packages.sh kvm && run_pytest tests/guests/kernels; } # fetches 40 MB the first time

allow_missing_docker() { # COMMAND…: its exit code 3 says that Docker or a program is missing
    local code=0
    "$@" || code=$?
    ((code == 3)) || return "$code"
}

# --- groups that are in no tier: they fetch something, or take long ------------------------------

group_papers() { run_pytest tests/guests/papers && ls build/papers/*.html; } # root; half an hour
group_containers() { STEELYARD_LAB_LONG=yes run_pytest tests/guests/nodes/test_launchers_across.py; }
group_counted-cluster() { STEELYARD_LAB_BPF=yes spread_files tests/system/cluster; } # root
group_layouts() { setup/packages.sh docker && tests/guests/layouts/run.sh; }         # root
group_counted() { setup/packages.sh kvm && tests/guests/layouts/run.sh bookworm:v2-counted; }
group_netem() { run_pytest tests/guests/netem; } # root
group_powercap() {
    tests/guests/powercap/build.sh build/powercap &&
        STEELYARD_POWERCAP=$PWD/build/powercap run_pytest tests/guests/powercap
}
group_glusterfs() { setup/packages.sh glusterfs && run_pytest -m glusterfs tests/glusterfs; }
group_spark() { tests/spark/run.sh; }                     # Java 17; 500 MB
group_prometheus() { tests/prometheus/run.sh; }           # 19 MB
group_pbs() { run_pytest -p no:cacheprovider tests/pbs; } # a Torque or OpenPBS that qsub reaches
group_docker() { tests/docker/cluster.sh test "${SUITE:-bookworm}"; }
group_matrix() {
    local suite code=0
    for suite in bookworm trixie sid; do tests/docker/cluster.sh test "$suite" || code=1; done
    tests/guests/layouts/run.sh || code=1
    return "$code"
}
group_dist() { package_and_try dist run.sh dist; }
group_deb() { package_and_try deb run.sh deb; }
group_rpm() { package_and_try rpm rpm.sh; }

package_and_try() { # KIND SCRIPT [ARGUMENT]
    make -s package KIND="$1" && setup/packages.sh check-packages && "tests/packages/$2" "${@:3}"
}

group_soak() { # hours
    tests/run_sanitized.sh fuzz 3600 && tests/run_sanitized.sh torture all &&
        STEELYARD_FAULT_TRIES=30 run_pytest tests/system/cluster/test_netem_faults.py \
            tests/system/network/test_netem_host.py tests/guests/nodes/test_netem_guest_ends.py \
            tests/guests/nodes/test_netem_two_nodes.py tests/system/cluster/test_kills.py \
            tests/system/job/test_trouble.py &&
        STEELYARD_LAB_BPF=yes STEELYARD_FAULT_TRIES=30 run_pytest tests/system/cluster/test_kills.py &&
        STEELYARD_SOAK_TASKS=100000 run_pytest tests/system/bpf/test_soak.py &&
        STEELYARD_JOBS=${STEELYARD_JOBS:-10000} "$VENV/bin/python" bench/soak.py
}

# --- tiers: a line is a lane --------------------------------------------------------------------

lanes_of() { # TIER|GROUP…
    case $* in
    fast) printf '%s\n' 'units-fast' 'ruff compiler c' ;;
    test) printf '%s\n' cluster programs 'lint c units bats failsafe npb' ;;
    slow) printf '%s\n' 'guests docker-host wheel kernels' 'compilers sanitize npb-all slow torture fuzz' ;;
    *) printf '%s\n' "$*" ;;
    esac
}

# tests/failsafe plants groups and tiers of its own.
# shellcheck source=tests/failsafe/planted_groups.sh
[[ -z ${PLANTED_GROUPS:-} ]] || source "$PLANTED_GROUPS"

# --- running ------------------------------------------------------------------------------------

report() { printf '[%(%T)T] %s %s\n' -1 "$1" "$2"; }

report_each_minute() { # NAME: until its stdin, a pipe, is closed
    while
        read -r -t "${HEARTBEAT_S:-60}"
        (($? > 128))
    do report "$1" "still runs"; done
}

run_group() { # NAME
    local -r name=$1 log=$LOGS/$1.log begin=$SECONDS
    local result=green alive
    export GROUP_NOT_RUN=$LOGS/$name.not_run
    rm -f "$GROUP_NOT_RUN"
    report "$name" starts
    exec {alive}> >(report_each_minute "$name")
    "group_$name" >"$log" 2>&1 </dev/null {alive}>&- || result=red
    exec {alive}>&-
    [[ ! -s $GROUP_NOT_RUN || $result == red ]] || result=$(<"$GROUP_NOT_RUN")
    { # one after another, so that the output of two groups does not mix
        flock 9
        cat "$log"
        report "$name" "ends after $((SECONDS - begin)) s: $result"
    } 9>"$LOGS/lock"
    printf '%-16s %5d s  %s\n' "$name" "$((SECONDS - begin))" "$result" >>"$LOGS/table"
}

run_lane() { # NAME…
    local name
    for name; do run_group "$name"; done
}

known_groups() { declare -F | sed -n 's/^declare -f group_//p'; }

check_names() { # NAME…
    local name
    for name; do
        declare -F "group_$name" >/dev/null || {
            printf 'tests/run.sh: "%s" is no tier and no group; tests/run.sh list prints both\n' "$name" >&2
            exit 2
        }
    done
}

main() { # TIER|GROUP…
    local lane
    local -a lanes
    case ${1:-list} in
    -h | --help | list)
        printf 'usage: tests/run.sh TIER|GROUP…\ntiers: fast test slow\ngroups: %s\n' "$(known_groups | xargs)"
        exit 0
        ;;
    esac
    mapfile -t lanes < <(lanes_of "$@")
    # shellcheck disable=SC2048,SC2086 # a lane is a list of names
    check_names ${lanes[*]}
    mkdir -p "$LOGS"
    : >"$LOGS/table"
    for lane in "${lanes[@]}"; do
        # shellcheck disable=SC2086 # a lane is a list of names
        run_lane $lane &
    done
    wait
    printf '\n%-16s %7s  %s\n' group time result
    sort "$LOGS/table"
    printf '%-16s %5d s\n' all "$SECONDS"
    ! grep -q ' red$' "$LOGS/table"
}

main "$@"
