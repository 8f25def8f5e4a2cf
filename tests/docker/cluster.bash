# shellcheck shell=bash
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# Helpers of the suites: commands in the containers of the cluster that cluster.sh starts.

bats_require_minimum_version 1.5.0

# A busy machine may delay daemons; tests/run_bats.sh reports the tests that were retried.
# shellcheck disable=SC2034 # bats reads it
BATS_TEST_RETRIES=1
readonly RECORDS=/var/lib/steelyard/records

run_on() { # ROLE COMMAND…: as root
    docker exec "${STEELYARD_DOCKER:?the cluster that cluster.sh test makes}-$1" "${@:2}"
}

run_as() { # USER COMMAND…: on the login node
    docker exec -u "$1" -w "/home/$1" "${STEELYARD_DOCKER:?}-login" "${@:2}"
}

alice() { run_as alice "$@"; }

# Wait for a condition inside of the container: polling starts no process on this machine.
wait_on() { # ROLE SECONDS CONDITION
    run_on "$1" timeout "$2" bash -c "until $3; do sleep 0.2; done" && return
    printf 'on %s not within %s s: %s\n' "$@"
    return 1
}

wait_until_idle() { wait_on ctl 60 '[[ $(sinfo -h -p main -t idle -o %D) == 2 && -z $(squeue -h -a) ]]'; }

submit() { alice sbatch --parsable -o /dev/null "$@"; }

# A job that has lost a node has several rows.
read_state() { alice sacct -X -n -P -j "$1" -o State | tail -n 1; }
read_comment() { # JOB: Steelyard's part, with its defaults (docs/formats.md)
    alice sacct -X -n -P -j "$1" -o AdminComment | tail -n 1 |
        jq -c '.steelyard | .nodes_measured //= .nodes | .tags //= {}'
}

wait_for_state() { # JOB STATE: of slurmctld
    wait_on ctl 60 "[[ \$(scontrol show job $1) == *JobState=$2* ]]"
}

# Submit a job that runs until release_job.
submit_gated() { # OPTION…
    submit "$@" --wrap 'until [ -e "go.$SLURM_JOB_ID" ]; do sleep 0.2; done'
}

release_job() { alice touch "go.$1"; }

wait_for_end() { # JOB: until the accounting has the end of all its tasks
    wait_on login 60 "ends=\$(sacct -X -n -P -j $1 -o End) && [[ \$ends == 20* && \$ends != *Un* ]]"
}

wait_for_totals() { # JOB: until they are in the accounting
    wait_for_end "$1"
    wait_on login 30 "[[ \$(sacct -X -n -P -j $1 -o AdminComment) == *elapsed_s* ]]"
}

wait_for_record() { # PATTERN JOB NODE: prints the record of the last start on the node
    local -r last="\$(ls $RECORDS/$2/$3.*.json | tail -n 1)"
    wait_on login 30 "grep -Eq '$1' $last" || {
        alice bash -c "grep -h 'incomplete_reason' $last" >&2
        return 1
    }
    alice bash -c "cat $last"
}

# These containers have neither cgroups nor BPF to count a job's processes: only that may be missing.
read_record() { wait_for_record '"complete": true|"incomplete_of": "processes"' "$@"; } # JOB NODE

elapsed_seconds() { # JOB [-X]: Slurm's Elapsed of the last start; a job that lost a node has several rows
    alice sacct -D -n -P -j "$1" -o State,ElapsedRaw "${@:2}" |
        awk -F'|' '{ sum = $2 + (parted ? sum : 0); parted = $1 == "RESIZING" } END { print sum }'
}

# Check the measured time: at least the given seconds, at most Slurm's Elapsed and 1 s, since it has whole
# seconds. The comment's time ends with the batch step, the record's with the extern step.
check_comment_time() { # JOB SECONDS
    read_comment "$1" | jq -e --argjson least "$2" --argjson most "$(elapsed_seconds "$1" -X)" \
        '.elapsed_s >= $least and .elapsed_s < $most + 1'
}

check_record_time() { # JOB NODE SECONDS
    wait_on login 60 "ends=\$(sacct -n -P -j $1.extern -o End) && [[ \$ends == 20* && \$ends != *Un* ]]"
    read_record "$1" "$2" | jq -e --argjson least "$3" --argjson most "$(elapsed_seconds "$1.extern")" \
        '(.complete or .incomplete_of == "processes") and .elapsed_s >= $least and .elapsed_s < $most + 1'
}

# Not by SIGKILL: a job that is newer than the last saved state would be lost.
stop_slurmctld() {
    run_on ctl sh -c 'touch /run/hold && pkill -TERM -x slurmctld'
    wait_on ctl 30 '! pgrep -x slurmctld >/dev/null'
}

start_slurmctld() {
    run_on ctl rm /run/hold
    wait_on ctl 60 'scontrol ping | grep -q UP'
}

# Add an option to the plugin's line on both nodes.
add_plugin_option() { # OPTION
    local role
    for role in c1 c2; do
        run_on "$role" sed -i.before "s/^optional .*/& $1/" /etc/slurm/plugstack.conf
    done
}

restore_plugin_options() {
    local role
    for role in c1 c2; do
        run_on "$role" mv /etc/slurm/plugstack.conf.before /etc/slurm/plugstack.conf
    done
}

setup() { wait_until_idle; }

# After a failed test: print the daemons' last log lines, and undo the test's changes.
report_failure() {
    [[ -z ${BATS_TEST_COMPLETED:-} ]] || return 0
    local role
    for role in db ctl c1 c2; do
        docker start "$STEELYARD_DOCKER-$role" >/dev/null
        run_on "$role" sh -c 'tail -n 12 /var/log/slurm/slurm*d.log | cut -c1-200' || :
        run_on "$role" sh -c 'rm -f /run/hold; ! cd /etc/slurm || ! test -e plugstack.conf.before || mv plugstack.conf.before plugstack.conf' || :
    done
    run_on ctl scancel -u alice || :
}

teardown() { report_failure; }
