#!/bin/bash
# Sourced by tests/packages/inside.sh: what packages bring for Torque and OpenPBS, as far as it goes without
# a server: the prologues are called as pbs_mom calls them, around a real process.
: "${user:?} ${programs:?}"

readonly mom=/var/spool/torque/mom_priv

make_mom() {
    mkdir -p "$mom/jobs"
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\necho "$2" >/tmp/site.prologue\n' >"$mom/prologue"
    chmod 0500 "$mom/prologue"
    cp "$mom/prologue" /tmp/prologue.before
}

# shellcheck disable=SC2317 # `ok` runs it
is_refreshed() { # COMMAND…: an upgrade
    echo "# Steelyard: around a job of Torque" >"$mom/epilogue"
    "$@" && cmp "$mom/epilogue" "$programs/torque-sweep"
}

# A second of CPU, and what the job says of itself.
check_torque_job() {
    local told used record measured
    told=$(python3 tests/packages/torque_job.py "$mom" steelyard-try)
    check_output "Torque: prologue, job and epilogue end well" '{"prologue": 0, "job": 0, "epilogue": 0,' "$told"
    wait_until 30 compgen -G '/var/lib/steelyard/records/7.server/*.json'
    record=$(compgen -G '/var/lib/steelyard/records/7.server/*.json')
    check_output "Torque: the record is whole" true "$(jq .complete "$record")"
    used=$(jq .cpu_s <<<"$told") measured=$(jq .cpu.cpu_s "$record")
    # shellcheck disable=SC2016 # jq's
    # Its end comes after what it says; ticks and the shell's start are 10 ms each.
    ok "Torque: $used s of CPU by its own clock, measured $measured" \
        jq -en --argjson a "$used" --argjson b "$measured" '$b - $a > -0.02 and $b - $a < 0.1'
}

check_torque() { # COMMAND…, which upgrades
    make_mom
    ok "Torque: switched on" "$programs/steelyard-torque" on
    check_output "Torque: the site's own goes on" prologue.site "$(ls "$mom")"
    check_torque_job
    check_output "Torque: it was called, too" steelyard-try "$(cat /tmp/site.prologue)"
    ok "Torque: an upgrade brings today's scripts" is_refreshed "$@"
    check_output "Torque: qsub's filter" 'steelyard:tag' "$(printf '#STEELYARD --tag=a=b\ntrue\n' | as_user "$programs/torque-submitfilter" script)"
}

check_openpbs() {
    local said path hook=$1
    said=$("$hook/qmgr.sh" print)
    check_output "OpenPBS: what is said to qmgr" "import hook steelyard application/x-python default $hook/steelyard_hook.py" "$said"
    while read -r path; do ok "OpenPBS: $path is there" test -f "$path"; done < <(sed -n "s|.* default \(/.*\)'$|\1|p" <<<"$said")
    ok "OpenPBS: the hook is Python" python3 -c "compile(open('$hook/steelyard_hook.py').read(), 'hook', 'exec')"
    path=$(jq -r .node_program /etc/steelyard/openpbs.json)
    ok "OpenPBS: the program that it names" "$path" job check --tag=a=b
}
