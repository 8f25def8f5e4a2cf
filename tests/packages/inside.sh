#!/bin/bash
# What tests/packages/run.sh runs in the chroot, as the first process of its namespaces.
set -Eeuo pipefail

readonly site=/etc/slurm user=4711 what=$1
host=$(hostname -s)
readonly host
export SLURM_CONF=$site/slurm.conf
failed=0
cd /work
# shellcheck source=setup/slurm_in_chroot.sh
source setup/slurm_in_chroot.sh
programs=/usr/libexec/steelyard
[[ $what != dist ]] || programs=/usr/local/libexec/steelyard
readonly programs
# shellcheck source=tests/packages/pbs.sh
source tests/packages/pbs.sh

declare -A headings=([dist]='One tar for all' [deb]="Debian's packages")
readonly headings

ok() { # NAME COMMAND…
    local said
    if said=$("${@:2}" 2>&1); then
        echo "ok $1"
    else
        printf 'not ok %s: exit code %s\n%s\n' "$1" "$?" "$said"
        failed=1
    fi
}

check_output() { # NAME EXPECTED FOUND
    if [[ $3 == *"$2"* ]]; then
        echo "ok $1"
    else
        printf 'not ok %s: expected %s, found\n%s\n' "$1" "$2" "$3"
        failed=1
    fi
}

# Makes are the build machine's; what they made is here.
print_commands() { # HEADING…
    python3 tests/packages/commands.py docs/admin.md "$@" | grep -v '^make '
}

# shellcheck disable=SC2317 # `ok` runs it
has_no_compiler() { ! type -P gcc cc c99 clang tcc; }
# shellcheck disable=SC2317 # wait_until runs it
has_comment() { [[ $(sacct -X -n -P -o AdminComment) == *'"elapsed_s":'* ]]; }

# shellcheck disable=SC2317 # `ok` runs it
is_unchanged() {
    local -r folder=$(compgen -G 'steelyard-*/install.sh')
    [[ -z $("$folder" node)$("$folder" user) ]]
}

# As they stand there, one after another, as root.
run_set_up() {
    local line
    while read -r line; do ok "docs/admin.md: $line" bash -c "$line" </dev/null; done < <(
        print_commands "${headings[$what]}" 'The command steelyard' 'Switch it on'
    )
}

check_installation() {
    local line job said
    while read -r line; do
        job=$(as_user sacct -X -n -P -o JobID | tail -n 1)
        said=$(as_user bash -c "${line//JOBID/$job}" 2>&1 </dev/null) || {
            echo "not ok docs/admin.md: $line: exit code $?"
            failed=1
        }
        case $line in
        *'srun --help'*) check_output "$line" "--netem" "$said" ;;
        *'--tag=check=1'*) wait_until 60 has_comment ;;
        *cpu_s*) check_output "$line" '0.' "$said" ;;
        *AdminComment) check_output "$line" '"tags":{"check":"1"}' "$said" ;;
        'ls '*) check_output "$line" .json "$said" ;;
        'steelyard show'*) check_output "$line" "check=1" "$said" ;;
        esac
    done < <(print_commands 'Check that it works')
}

check_doctor() {
    local said
    said=$("$programs/steelyard-node" doctor) || echo "not ok steelyard-node doctor: exit code $?"
    check_output "steelyard-node doctor: the plugin" "spank_steelyard.so loads, built for Slurm" "$said"
    check_output "steelyard-node doctor: the record folder" "record folder: /var/lib/steelyard/records, root can write there" "$said"
    check_output "steelyard doctor --nodes" "plugstack line: $site/plugstack.conf" "$(steelyard doctor --nodes "$host" 2>&1)"
}

# The lines of docs/admin-pbs.md for packages.
run_pbs_commands() {
    local line
    while read -r line; do ok "docs/admin-pbs.md: $line" bash -c "$line" </dev/null; done < <(
        python3 tests/packages/commands.py docs/admin-pbs.md 'From packages' | grep apt-get
    )
}

# shellcheck disable=SC2317 # `ok` runs it
has_pages() { # DEB…
    local deb said name
    for deb; do
        said=$(dpkg -c "$deb")
        while read -r name; do
            grep -q "/man[18]/$name\.[18]\.gz$" <<<"$said" || {
                echo "${deb##*/}: $name has no man page"
                return 1
            }
        done < <(sed -n 's|.*/libexec/steelyard/\(steelyard-[a-z]*\)$|\1|p' <<<"$said")
    done
}

trap 'echo "line $LINENO" >&2; tail -n 5 "$site"/log/* >&2' ERR
set_up_system
add_ordinary_user
configure
sed -i /PrologFlags/d "$SLURM_CONF"
: >"$site/plugstack.conf"
ok "no compiler here" has_no_compiler
start
run_set_up
wait_until 60 is_idle
check_installation
check_doctor
if [[ $what == dist ]]; then
    ok "install.sh again changes nothing" is_unchanged
    ok "install.sh torque" steelyard-*/install.sh torque
    check_torque steelyard-*/install.sh torque
    ok "install.sh openpbs" steelyard-*/install.sh openpbs
    check_openpbs /usr/local/share/steelyard/openpbs
    ok "a program gives the site its own prologues back" "$programs/steelyard-torque" off
else
    ok "a man page of each program" has_pages build/deb/*.deb
    run_pbs_commands
    check_torque apt-get install -y -q --reinstall ./build/deb/steelyard-torque_*.deb
    check_openpbs /usr/share/steelyard/openpbs
    ok "removed again" apt-get purge -y -q 'steelyard-*'
    ok "nothing is left but records" test ! -e /usr/libexec/steelyard -a ! -e /usr/lib/steelyard -a ! -e /etc/steelyard/pbs.conf -a -d /var/lib/steelyard/records
fi
ok "the site's own prologue is back" cmp /tmp/prologue.before "$mom/prologue"
ok "and nothing beside it, no line of cron" test ! -e "$mom/epilogue" -a ! -e "$mom/prologue.site" -a ! -e /etc/cron.d/steelyard-torque
exit $failed
