#!/bin/sh
# The installation steps that a package cannot do: PBS_HOME and existing prologues belong to the site.
set -e
PROGRAMS=@PREFIX@/libexec/steelyard
DOC=@DOC_DIR@
CONFIG=@CONFIG@
RECORD_DIR=@RECORD_DIR@
CRON=$DESTDIR/etc/cron.d/steelyard-torque

print_usage() {
    cat <<'END'
usage: steelyard-torque on [PBS_HOME] | off [PBS_HOME] | again

Has the pbs_mom of this node measure its jobs, or gives a site its own prologues back.

  on     puts prologues and epilogues into PBS_HOME/mom_priv; what a site has there goes on as
         NAME.site, called by ours. Makes the sweep's line of cron, the folder of records and, from
         its example, pbs.conf, where they are not there. Without cron a timer must call the sweep
  off    the site's own prologues and epilogues have their names back, and the line is gone.
         Records and pbs.conf stay
  again  where it is on: the same with the scripts of today, after an upgrade

PBS_HOME: /var/spool/torque, for `off` where it was switched on. DESTDIR of the environment stands
before all paths. Exit code 3: something there is not as it should be, and nothing was replaced.
END
}

switch_on() { # PBS_HOME
    "$DESTDIR$PROGRAMS/torque-install" put "$DESTDIR$PROGRAMS/torque-sweep" "$DESTDIR$1/mom_priv"
    install -d -m 0755 "$DESTDIR$RECORD_DIR" "$DESTDIR${CONFIG%/*}" "${CRON%/*}"
    echo "* * * * * root test ! -x $PROGRAMS/torque-sweep || $PROGRAMS/torque-sweep $1/mom_priv" >"$CRON"
    [ -e "$DESTDIR$CONFIG" ] || { install -m 0644 "$DESTDIR$DOC/pbs.conf.example" "$DESTDIR$CONFIG" && echo "new: $CONFIG"; }
    command -v cron crond >/dev/null || echo "required: this node has no cron, and without $PROGRAMS/torque-sweep $1/mom_priv each minute conditions of refused jobs stay on it. Install the timer: $DOC/steelyard-torque-sweep.timer.example"
}

# Set pbs_home to the argument of the last `on`.
read_pbs_home() {
    pbs_home=
    [ ! -r "$CRON" ] || pbs_home=$(sed -n 's|.* \(.*\)/mom_priv$|\1|p' "$CRON")
}

switch_off() { # PBS_HOME
    "$DESTDIR$PROGRAMS/torque-install" remove "$DESTDIR$1/mom_priv"
    rm -f "$CRON"
}

read_pbs_home
case ${1-} in
on) switch_on "${2:-/var/spool/torque}" ;;
off) switch_off "${2:-${pbs_home:-/var/spool/torque}}" ;;
again) [ ! "$pbs_home" ] || switch_on "$pbs_home" ;;
--help) print_usage ;;
*)
    print_usage >&2
    exit 2
    ;;
esac
