# shellcheck shell=bash
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# For the suites: commands in the containers of the cluster that cluster.sh has made.

bats_require_minimum_version 1.5.0

# Daemons on a machine that does other things, too: tests/run_bats.sh tells who has needed it.
# shellcheck disable=SC2034 # bats reads it
BATS_TEST_RETRIES=1
readonly RECORDS=/var/lib/steelyard/records

on() { # ROLE COMMAND…: as root
    docker exec "${STEELYARD_DOCKER:?the cluster that cluster.sh test makes}-$1" "${@:2}"
}

as() { # USER COMMAND…: on the login node
    docker exec -u "$1" -w "/home/$1" "${STEELYARD_DOCKER:?}-login" "${@:2}"
}

alice() { as alice "$@"; }

# A condition is looked at where it is to hold: no process of this machine for each look.
until_on() { # ROLE SECONDS CONDITION
    on "$1" timeout "$2" bash -c "until $3; do sleep 0.2; done" && return
    printf 'on %s not within %s s: %s\n' "$@"
    return 1
}

all_idle() { until_on ctl 60 '[[ $(sinfo -h -p main -t idle -o %D) == 2 && -z $(squeue -h -a) ]]'; }

submit() { alice sbatch --parsable -o /dev/null "$@"; }

# A job that a node was taken from has several rows.
state() { alice sacct -X -n -P -j "$1" -o State | tail -n 1; }
comment() { # JOB: ours, with what goes without saying (docs/formats.md)
    alice sacct -X -n -P -j "$1" -o AdminComment | tail -n 1 |
        jq -c '.steelyard | .nodes_measured //= .nodes | .tags //= {}'
}

in_state() { # JOB STATE: slurmctld says so
    until_on ctl 60 "[[ \$(scontrol show job $1) == *JobState=$2* ]]"
}

# A job that runs until it is let go, so that what is done meanwhile may take its time.
gated() { # OPTION…
    submit "$@" --wrap 'until [ -e "go.$SLURM_JOB_ID" ]; do sleep 0.2; done'
}

let_go() { alice touch "go.$1"; }

ended() { # JOB: the accounting says so of all its tasks
    until_on login 60 "ends=\$(sacct -X -n -P -j $1 -o End) && [[ \$ends == 20* && \$ends != *Un* ]]"
}

measured() { # JOB: the totals are in the accounting
    ended "$1"
    until_on login 30 "[[ \$(sacct -X -n -P -j $1 -o AdminComment) == *elapsed_s* ]]"
}

record_that_says() { # PATTERN JOB NODE: that of its last start there, when it is finished
    local -r last="\$(ls $RECORDS/$2/$3.*.json | tail -n 1)"
    until_on login 30 "grep -Eq '$1' $last" || {
        alice bash -c "grep -h 'incomplete_reason' $last" >&2
        return 1
    }
    alice bash -c "cat $last"
}

# Neither a cgroup nor the kernel counts the processes of a job here: nothing else may be missing.
record() { record_that_says '"complete": true|"incomplete_of": "processes"' "$@"; } # JOB NODE

seconds() { # JOB [-X]: Slurm's Elapsed, of the last start; one that has lost a node has a row for each part
    alice sacct -D -n -P -j "$1" -o State,ElapsedRaw "${@:2}" |
        awk -F'|' '{ sum = $2 + (parted ? sum : 0); parted = $1 == "RESIZING" } END { print sum }'
}

# How long it was measured, between two truths: what ran in it, and Slurm's Elapsed, which has whole
# seconds at both ends. The comment's to the end of the batch step, the record's to the extern step's.
comment_lasts() { # JOB SECONDS
    comment "$1" | jq -e --argjson least "$2" --argjson most "$(seconds "$1" -X)" \
        '.elapsed_s >= $least and .elapsed_s < $most + 1'
}

record_lasts() { # JOB NODE SECONDS
    until_on login 60 "ends=\$(sacct -n -P -j $1.extern -o End) && [[ \$ends == 20* && \$ends != *Un* ]]"
    record "$1" "$2" | jq -e --argjson least "$3" --argjson most "$(seconds "$1.extern")" \
        '(.complete or .incomplete_of == "processes") and .elapsed_s >= $least and .elapsed_s < $most + 1'
}

# Not by SIGKILL: a job that is younger than its last save of state would be forgotten.
leave_slurmctld() {
    on ctl sh -c 'touch /run/hold && pkill -TERM -x slurmctld'
    until_on ctl 30 '! pgrep -x slurmctld >/dev/null'
}

return_slurmctld() {
    on ctl rm /run/hold
    until_on ctl 60 'scontrol ping | grep -q UP'
}

# Of both nodes: one word more for the plugin, and back again.
plugin_told() { # WORD
    local role
    for role in c1 c2; do
        on "$role" sed -i.before "s/^optional .*/& $1/" /etc/slurm/plugstack.conf
    done
}

plugin_as_before() {
    local role
    for role in c1 c2; do
        on "$role" mv /etc/slurm/plugstack.conf.before /etc/slurm/plugstack.conf
    done
}

setup() { all_idle; }

# Of a test that is red: what the daemons said last; and what it had not come to undo.
complaints() {
    [[ -z ${BATS_TEST_COMPLETED:-} ]] || return 0
    local role
    for role in db ctl c1 c2; do
        docker start "$STEELYARD_DOCKER-$role" >/dev/null
        on "$role" sh -c 'tail -n 12 /var/log/slurm/slurm*d.log | cut -c1-200' || :
        on "$role" sh -c 'rm -f /run/hold; ! cd /etc/slurm || ! test -e plugstack.conf.before || mv plugstack.conf.before plugstack.conf' || :
    done
    on ctl scancel -u alice || :
}

teardown() { complaints; }
