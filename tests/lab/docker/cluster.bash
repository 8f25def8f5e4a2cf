# shellcheck shell=bash
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# For the suites: commands in the containers of the cluster that cluster.sh has made.

bats_require_minimum_version 1.5.0

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
        jq -c '.steelyard | .nodes_weighed //= .nodes | .tags //= {}'
}

in_state() { # JOB STATE: slurmctld says so
    until_on ctl 60 "[[ \$(scontrol show job $1) == *JobState=$2* ]]"
}

ended() { # JOB: the accounting says so of all its tasks
    until_on login 60 "ends=\$(sacct -X -n -P -j $1 -o End) && [[ \$ends == 20* && \$ends != *Un* ]]"
}

weighed() { # JOB: the totals are in the accounting
    ended "$1"
    until_on login 30 "[[ \$(sacct -X -n -P -j $1 -o AdminComment) == *elapsed_s* ]]"
}

record() { # JOB NODE: that of its last start there, when it is finished
    local -r last="\$(ls $RECORDS/$1/$2.*.json | tail -n 1)"
    until_on login 30 "grep -q '\"complete\": true' $last"
    alice bash -c "cat $last"
}

setup() { all_idle; }

# Of a test that is red: what the daemons said last.
complaints() {
    [[ -z ${BATS_TEST_COMPLETED:-} ]] || return 0
    local role
    for role in ctl c1 c2; do
        on "$role" sh -c 'tail -n 12 /var/log/slurm/slurm*d.log | cut -c1-200' || :
    done
}

teardown() { complaints; }
