#!/usr/bin/env bats
# The command line as a person meets it: exact exit codes, and messages that say what to do.

bats_require_minimum_version 1.5.0
load somebody

setup() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    PATH="$ROOT/build/venv/bin:$PATH"
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "steelyard alone tells its commands on stderr and is wrong usage" {
    run -2 --separate-stderr steelyard
    [[ -z $output ]]
    # shellcheck disable=SC2154 # set by run --separate-stderr
    [[ $stderr == *"commands:"*"submit"*"exit codes:"* ]]
}

@test "every command that --help lists has a help of its own" {
    run -0 steelyard --help
    local names name
    names=$(awk '/^commands:/ {on = 1; next} /^$/ {on = 0} on {print $1}' <<<"$output")
    [[ $(wc -w <<<"$names") -ge 12 ]]
    for name in $names; do
        run -0 steelyard "$name" --help
        [[ $output == "usage: steelyard $name "* ]]
    done
}

@test "a terminal without our characters gets question marks, a program all of them" {
    export PYTHONIOENCODING=ascii
    run -0 --separate-stderr steelyard --help
    [[ $output == *"0 done ? 1 a bug"* && -z $stderr ]]
    run -0 bash -c 'set -o pipefail; steelyard list hpl --json | jq -r ".benchmarks[0].parameters.n.help"'
    [[ $output == *"8 n² bytes"* ]]
}

@test "an unknown command is refused with the nearest one" {
    run -2 steelyard sumbit
    [[ ${lines[0]} == "steelyard: unknown command 'sumbit'; did you mean 'submit'?" ]]
}

@test "list has a line for each benchmark, and all of one when it is named" {
    run -0 steelyard list
    [[ $output == *"npb "*"mops "* && ${#lines[@]} -lt 50 ]]
    run -0 steelyard list npb
    [[ $output == *"kernel"*"ep: random numbers"*"mops *"* ]]
    run -2 steelyard list nbp
    [[ $output == *"did you mean 'npb'"* ]]
}

@test "an unknown option is wrong usage" {
    run -2 steelyard probe --jsn
    [[ $output == *"unrecognized arguments: --jsn"* ]]
}

@test "run measures a command and says why there are no joules, or how many" {
    run -0 steelyard run --repeat 3 -- sleep 0.05
    [[ $output =~ elapsed[^$'\n']*\ ms\ [^$'\n']*\ 3($'\n'|$) ]]
    [[ $output == *"RAPL"* || $output == *" J"* ]]
}

@test "run stops when the command fails and exits as it did; with -i it goes on and exits 5" {
    run -7 steelyard run --repeat 2 -- sh -c 'exit 7'
    [[ $output == *"failed (exit code 7): stopped after 1 run; -i goes on"* ]]
    run -5 steelyard run -i --repeat 2 -- sh -c 'exit 7'
    [[ $output == *"run 2 failed (exit code 7)"* ]]
}

@test "run of a program that is not there exits 3 and names it" {
    run -3 steelyard run -- /no/such/program
    [[ $output == *"/no/such/program"* ]]
}

@test "a study that does not parse is one line that names file and place" {
    printf '[study\nname = "x"\n' >broken.toml
    run -2 steelyard submit broken.toml --scheduler local
    [[ ${#lines[@]} -eq 1 ]]
    [[ $output == *"broken.toml"*"line 1"* ]]
}

@test "an unknown key names the key and what is near" {
    cat >study.toml <<'END'
[study]
name = "x"
repaet = 3
[[benchmark]]
use = "hpl"
END
    run -2 steelyard submit study.toml --scheduler local
    [[ ${#lines[@]} -eq 1 ]]
    [[ $output == *"repaet"*"repeat"* ]]
}

@test "a dry run prints the exact batch script and writes nothing" {
    run -0 steelyard submit "$ROOT/jobscripts/demo/clients.toml" --dir "$PWD/studies" \
        --scheduler slurm --dry-run
    [[ $output == *"#!/bin/bash"*"#SBATCH --array="* ]]
    [[ ! -e studies ]]
}

@test "a report without a database says to collect first" {
    mkdir -p empty.study
    echo '{}' >empty.study/plan.json
    run -3 steelyard report empty.study
    [[ $output == *"steelyard collect"* ]]
}

@test "probe --json is one JSON document of the format it names" {
    run -0 --separate-stderr steelyard probe --json
    jq -e '.format == "steelyard-probe" and .version == 1' <<<"$output"
}

@test "doctor names each check, and what to do where something is not as it should be" {
    run steelyard doctor --json
    ((status == 0 || status == 3))
    [[ $output == *'"state"'* ]]
    jq -e 'all(.[]; .state == "ok" or (.advice | length > 10))' <<<"$output"
}

@test "a reader that leaves early is no error" {
    run -0 bash -c 'set -o pipefail; steelyard --help | head -n 1'
}

@test "a full disk is one line and exit 3" {
    ((EUID == 0)) || skip "needs root to mount a small disk"
    local -r disk=$BATS_TEST_TMPDIR/disk
    mkdir "$disk"
    cat >full.sh <<'END'
mount -t tmpfs -o size=64k tmpfs "$1" && cd "$1" || exit 1
printf '[[benchmark]]\nuse = "app"\ncommand = "true"\n' >s.toml
dd if=/dev/zero of=fill bs=4k 2>/dev/null
shift
exec "$@"
END
    run -3 --separate-stderr unshare -m bash full.sh "$disk" steelyard submit s.toml --scheduler local
    # shellcheck disable=SC2154 # set by run --separate-stderr
    [[ ${#stderr_lines[@]} == 1 && $stderr == *"No space left on device: make room "* ]]
    run -3 --separate-stderr unshare -m bash full.sh "$disk" steelyard run -o out -- true
    [[ $stderr == *"No space left on device"*"left no record in "*"is its disk full?"* && $stderr != *Traceback* ]]
}

@test "a folder that the user may not use is one line and exit 3, in every command" {
    ((EUID == 0)) || skip "needs root to become another user"
    local -r open=$(mktemp -d /tmp/sy-cli.XXXXXX) # the folders of bats are closed to others
    chmod 755 "$open"
    printf '[study]\nrepeat = 1\n[[benchmark]]\nuse = "filesystem"\n' >"$open/a.toml"
    run -3 as_nobody steelyard submit "$open/a.toml" --scheduler local
    [[ $output == "steelyard submit: $open/a.study: you may not read it, or not write there"* ]]
    mkdir -m 700 "$open/a.study"
    local command
    for command in "submit $open/a.toml --scheduler local" "status $open/a.toml" "collect $open/a.toml" \
        "report $open/a.toml -o $open/r.html"; do
        # shellcheck disable=SC2086 # words
        run -3 as_nobody steelyard $command
        [[ $output == "steelyard ${command%% *}: $open/a.study/"*": you may not read it"* ]]
        ((${#lines[@]} == 1))
    done
    rm -r "$open"
}
