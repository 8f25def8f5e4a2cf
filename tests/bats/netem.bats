#!/usr/bin/env bats
# Network conditions from the command line: checked by any user, applied and undone by root only.
# What root changes is changed in a network namespace that ends with the command.

bats_require_minimum_version 1.5.0
load somebody

setup() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    PATH="$ROOT/build/venv/bin:$PATH"
    export STEELYARD_RUN_DIR="$BATS_TEST_TMPDIR/run"
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
    [[ -z ${OPEN:-} ]] || rm -r -- "$OPEN"
}

needs_root() {
    ((EUID == 0)) || skip "needs root, to make a network namespace and to be somebody else"
}

# A command in a network namespace of its own that has one device, sy-cli0 (a veth: not every kernel has dummies).
in_namespace() {
    # shellcheck disable=SC2016 # "$@" is the inner shell's
    unshare --net -- sh -c 'ip link set lo up && ip link add sy-cli0 type veth peer sy-cli1 &&
        ip addr add 10.99.0.1/24 dev sy-cli0 && ip link set sy-cli0 up && "$@"' sh "$@"
}

@test "a specification is said in words, and why it cannot be had" {
    run -4 steelyard netem check delay=50ms~5ms,loss=0.1% --policy no-such-policy
    [[ ${lines[0]} == "delay=50ms~5ms,loss=0.1%" ]]
    [[ ${lines[1]} == "  every packet waits 50 ms ± 5 ms"* ]]
    [[ ${lines[2]} == "  0.1 % of the packets are lost" ]]
    [[ $output == *"allowed in your jobs: NO: "*"no-such-policy"* ]]
    [[ $output =~ "kernel has sch_netem: "(yes|NO|\?)": " ]]
}

@test "what a policy allows and what it does not is said with its name" {
    printf 'enabled yes\nmax_delay 100ms\n' >some.conf
    run steelyard netem check rate=10mbit --policy some.conf
    [[ $output == *"allowed in your jobs: yes: by some.conf"* ]]
    run -4 steelyard netem check delay=200ms --policy some.conf
    [[ $output == *"allowed in your jobs: NO: "*"100ms"*"some.conf"* ]]
}

@test "check --json is one document with the numbers in SI units" {
    run -4 --separate-stderr steelyard netem check delay=50ms --policy no-such-policy --json
    jq -e '.requested == "delay=50ms" and .spec.delay_s == 0.05' <<<"$output"
    jq -e '.checks[0].ok == false' <<<"$output"
}

@test "a wrong specification is one line that names the part" {
    local wrong
    # shellcheck disable=SC2016 # meant as it stands
    for wrong in 'delay=-5ms' 'delay=5' 'dealy=5ms' 'delay=5ms;reboot' 'dev=../etc' 'dev=$(id)' ''; do
        run -2 steelyard netem check "$wrong"
        [[ ${#lines[@]} -eq 1 ]]
        [[ $output == "steelyard netem: "* ]]
    done
    run -2 steelyard netem check "delay=$(printf '1%.0s' {1..4096})ms"
    [[ ${#lines[@]} -eq 1 ]]
}

@test "netem without a verb, or with a strange one, is wrong usage" {
    run -2 steelyard netem
    [[ $output == *"VERB"* ]]
    run -2 steelyard netem aply delay=50ms
    [[ $output == *"invalid choice"*"apply"* ]]
}

@test "an ordinary user applies and clears nothing, and is told the way that is open" {
    needs_root
    run -4 as_nobody steelyard netem apply delay=50ms
    [[ ${#lines[@]} -eq 1 ]]
    [[ $output == "steelyard netem: netem apply delay=50ms: needs root"*"sbatch --netem="* ]]
    run -4 as_nobody steelyard netem clear --all
    [[ ${#lines[@]} -eq 1 && $output == *"needs root"* ]]
    run -4 as_nobody steelyard run --netem=delay=50ms -- touch ran
    [[ ${#lines[@]} -eq 1 && $output == *"--netem=delay=50ms: needs root"* ]]
    run -4 as_nobody steelyard run --cache=cold -- touch ran
    [[ ${#lines[@]} -eq 1 && $output == *"--cache=cold: needs root"* ]]
    [[ ! -e ran ]]
}

@test "none is for everybody" {
    run -0 steelyard run --netem=none --cache=warm -- true
    run -2 steelyard netem apply none
    [[ $output == *"nothing is touched"* ]]
    run -2 steelyard run --peer localhost -- true
    [[ $output == *"--peer: goes with --netem"* ]]
}

@test "a wrong specification is wrong usage before it is a matter of rights" {
    needs_root
    run -2 as_nobody steelyard run --netem=delay=50 -- touch ran
    [[ ! -e ran ]]
}

@test "show tells that there is nothing, as text and as JSON" {
    run -0 steelyard netem show
    [[ $output == "no network condition of Steelyard is in force on this machine" ]]
    run -0 --separate-stderr steelyard netem show --json
    [[ $output == "[]" ]]
}

@test "clear wants one job or all" {
    run -2 steelyard netem clear
    run -2 steelyard netem clear 4711 --all
    [[ $output == *"name one JOB"* ]]
}

@test "by hand: apply, show, refuse a second one, clear, and the device is as before" {
    needs_root
    cat >by-hand <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
steelyard netem apply rate=10mbit,dev=sy-cli0
tc qdisc show dev sy-cli0 | grep tbf
steelyard netem show
steelyard netem show --json | jq -e '.[0].job_id == "hand" and .[0].stale == false'
code=0
steelyard netem apply rate=20mbit,dev=sy-cli0 || code=$?
echo "second: $code"
steelyard netem clear hand
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
steelyard netem apply rate=10mbit,dev=sy-cli0 --json | jq -e '.requested == "rate=10mbit,dev=sy-cli0"'
steelyard netem clear --all
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
steelyard netem show
END
    run -0 in_namespace bash by-hand
    [[ $output == *"requested rate=10mbit,dev=sy-cli0"*"job hand on "*"second: 4"* ]]
    [[ ${lines[-1]} == "no network condition"* ]]
}

@test "run --netem: every run under the condition, measured, and the device as before" {
    needs_root
    cat >measure <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
steelyard run --netem=rate=10mbit,dev=sy-cli0 --repeat 2 -o kept -- tc qdisc show dev sy-cli0
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
END
    run -0 in_namespace bash measure
    [[ $output == *"qdisc tbf"*"network conditions of run 1"*"requested rate=10mbit,dev=sy-cli0"* ]]
    [[ $(find kept -name '*.json' | wc -l) -eq 2 ]]
    find kept -name '*.json' -exec cat {} + |
        jq -se 'all(.[]; .network_conditions.valid and .network_conditions.undone)'
    [[ -z $(ls "$STEELYARD_RUN_DIR/netem" 2>/dev/null) ]]
}

@test "run --cache=cold drops caches before every run, and the records say so" {
    needs_root
    run -0 steelyard run --cache=cold --repeat 2 -o kept -- true
    [[ $(find kept -name '*.json' | wc -l) -eq 2 ]]
    find kept -name '*.json' -exec cat {} + |
        jq -se 'all(.[]; .cache.requested == "cold" and (.cache.done | index("page cache")))'
}

@test "run --netem of a device that is not there runs nothing" {
    needs_root
    run -4 in_namespace steelyard run --netem=rate=10mbit,dev=sy-nowhere -- touch ran
    [[ ${#lines[@]} -eq 1 && $output == *"sy-nowhere"* ]]
    [[ ! -e ran ]]
}

@test "run --netem that is killed leaves the device as before: Ctrl-C, SIGTERM, kill -9" {
    needs_root
    cat >killed <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
for number in INT TERM KILL; do
    rm -f ran
    # A shell's background command ignores Ctrl-C.
    env --default-signal=INT \
        steelyard run --netem=rate=10mbit,dev=sy-cli0 -- sh -c 'touch ran; exec sleep 60' &
    pid=$!
    for _ in $(seq 1200); do
        [ ! -e ran ] || break
        sleep 0.05
    done
    tc qdisc show dev sy-cli0 | grep -q tbf
    kill -s "$number" "$pid"
    wait "$pid" && code=0 || code=$?
    echo "$number: $code"
    for _ in $(seq 1200); do
        [ "$before" != "$(tc qdisc show dev sy-cli0)" ] || break
        sleep 0.05
    done
    [ "$before" = "$(tc qdisc show dev sy-cli0)" ]
done
END
    run -0 in_namespace bash killed
    [[ $output == *"INT: 130"*"TERM: 143"*"KILL: 137"* ]]
}

@test "a study on this machine: each run under its own condition, and the device as before" {
    needs_root
    cat >wan.toml <<'END'
[study]
repeat = 1
[factors]
network = ["none", "rate=10mbit,dev=sy-cli0"]
cache = ["warm", "cold"]
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 2
iterations = 1
END
    cat >study <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
steelyard submit wan.toml --scheduler local
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
END
    run -0 in_namespace bash study
    [[ $output == *"4 of 4 runs executed here (0 failed"* ]]
    local held='.network_conditions | if . == null then "none" else .requested end'
    run -0 bash -c "find wan.study -path '*/record/*.json' -exec jq -r '$held' {} + | sort | uniq -c"
    [[ $output == *"2 none"*"2 rate=10mbit,dev=sy-cli0"* ]]
    run -0 bash -c "find wan.study -path '*/record/*.json' -exec jq -r '.cache.requested' {} + | sort | uniq -c"
    [[ $output == *"2 cold"*"2 null"* ]]
}

@test "an ordinary user's study on this machine is refused before anything is run" {
    needs_root
    OPEN=$(mktemp -d /tmp/sy-cli.XXXXXX) # the folders of bats are closed to others
    chown 65534 "$OPEN"
    printf '[factors]\nnetwork = ["rate=10mbit"]\n[[benchmark]]\nuse = "filesystem"\n' >"$OPEN/wan.toml"
    run -4 as_nobody steelyard submit "$OPEN/wan.toml" --scheduler local
    [[ ${lines[-1]} == *"--netem=rate=10mbit: needs root on this machine"* ]]
    [[ -z $(find "$OPEN" -name run.sh) ]]
}

@test "after a kill of everything the condition is stale, and the next run undoes it first" {
    needs_root
    cat >stale <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
steelyard run --netem=rate=10mbit,dev=sy-cli0 -- sh -c 'echo $$ >ran; exec sleep 60' &
pid=$!
for _ in $(seq 1200); do
    [ ! -s ran ] || break
    sleep 0.05
done
sampler=$(pgrep -P "$pid")
kill -9 "$pid" "$sampler" $(pgrep -P "$sampler")
wait "$pid" || true
kill "$(cat ran)" 2>/dev/null || true
tc qdisc show dev sy-cli0 | grep tbf
steelyard netem show
steelyard doctor | grep -A1 "netem states" || true
steelyard run --netem=rate=20mbit,dev=sy-cli0 -- tc qdisc show dev sy-cli0
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
steelyard netem show
END
    run -0 in_namespace bash stale
    [[ $output == *"(STALE: its owner has ended)"*"warning  netem states: 1 left behind"* ]]
    [[ $output == *"tbf "*"rate 20Mbit"* && ${lines[-1]} == "no network condition"* ]]
}

@test "run --netem whose sampler is killed undoes the condition itself" {
    needs_root
    cat >sampler <<'END'
set -eu
before=$(tc qdisc show dev sy-cli0)
steelyard run --netem=rate=10mbit,dev=sy-cli0 -- sh -c 'echo $$ >ran; exec sleep 60' &
pid=$!
for _ in $(seq 1200); do
    [ ! -s ran ] || break
    sleep 0.05
done
sampler=$(pgrep -P "$pid")
kill -9 "$sampler" $(pgrep -P "$sampler")
wait "$pid" && code=0 || code=$?
kill "$(cat ran)" 2>/dev/null || true
echo "code $code"
[ "$before" = "$(tc qdisc show dev sy-cli0)" ]
END
    run -0 in_namespace bash sampler
    [[ $output == *"NOT VALID the record does not say"*"code 5"* ]]
}
