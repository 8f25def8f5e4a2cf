#!/bin/bash
# Install what was built: packaging/install.sh COMPONENT…
#   slurm          the plugin for a real cluster
#   torque         prologues and epilogues for a node with pbs_mom (PBS_HOME=/var/spool/torque)
#   torque-parts   the same files, not switched on, for packages
#   torque-login   the submit filter of Torque, for a host where users submit
#   openpbs        the hook for OpenPBS; RUN=yes configures the server, too
#   programs       steelyard-node, the benchmarks' programs, and man pages of `steelyard` that `make docs` built
#   redfish        steelyard-redfish, which writes a BMC's watts where samplers read them
#   hypervisor     for a host of virtual machines: the sampler, a unit of systemd, a hook of libvirt
#   sweep          for the machine that sweeps the folder of records: a unit, its timer, a line for cron
#   spool          for nodes whose root may not write to the shared folder of records
#   packaged       the files of all packages
#   uninstall-torque, uninstall-openpbs
# From the environment: PREFIX=/usr/local DESTDIR= RECORD_DIR DOC_DIR PBS_HOME CONFIG RUN BUILT=build
# Safe while jobs start: each file is renamed when it is complete, which `meson install` does not do.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
prefix=${PREFIX:-/usr/local} root=${DESTDIR:-} record_dir=${RECORD_DIR:-/var/lib/steelyard/records}
doc=${DOC_DIR:-$prefix/share/doc/steelyard} pbs_home=${PBS_HOME:-/var/spool/torque}
config=${CONFIG:-/etc/steelyard/pbs.conf}
readonly prefix root record_dir doc pbs_home config built=${BUILT:-build}
readonly libexec=$prefix/libexec/steelyard openpbs=$prefix/share/steelyard/openpbs
readonly host_records=/var/lib/steelyard/host

put() { # MODE FILE PATH
    local -r to=$root$3
    install -D -m "$1" "$2" "${to%/*}/.${to##*/}.new"
    mv -f "${to%/*}/.${to##*/}.new" "$to"
}

fill_paths() { # FILE: prints it with this installation's paths
    local keys
    keys=$(sed -nE 's/^(KEY|FORM)\([a-z_]+, "([a-z_]+)".*/\2/p' facts/netem_keys.def | xargs)
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@CONFIG@|$config|g" -e "s|@DOC_DIR@|$doc|g" \
        -e "s|@RECORD_DIR@|$record_dir|g" -e "s|@HOST_RECORD_DIR@|$host_records|g" -e "s|@PBS_HOME@|$pbs_home|g" -e "s|@NETEM_KEYS@|$keys|" "$1"
}

put_filled() { # MODE FILE PATH
    fill_paths "$2" | put "$1" /dev/stdin "$3"
}

put_man_page() { # NAME
    local file
    for file in "$built/man/$1".[18]; do
        [[ ! -e $file ]] || put_filled 0644 "$file" "$prefix/share/man/man${file##*.}/${file##*/}"
    done
}

# Install programs and their man pages. A program that `make all` could not build is skipped.
put_programs() { # NAME…
    local name
    for name; do
        [[ -e $built/bin/$name ]] || continue
        put 0755 "$built/bin/$name" "$libexec/$name"
        put_man_page "$name"
    done
}

# Install a node's programs, and the page that their messages name.
put_node_programs() {
    put_programs steelyard-node steelyard-left steelyard-bpf
    put 0644 docs/netem.md "$doc/netem.md"
}

# Make the folder of records. A new folder sorts jobs by day, which its mark states. A package sets no
# mark, since the folder may exist; nor is it set with a spool, where the mark shows that the file system
# is mounted.
make_record_folder() {
    [[ ! -d $root$record_dir ]] || return 0
    install -d -m 0755 "$root$record_dir"
    if [[ -z $root && ! -d /var/spool/steelyard ]]; then
        : >"$record_dir/.steelyard-records"
        echo "new: $record_dir, where records lie by day (docs/records.md)"
    fi
}

slurm() {
    [[ -e $built/lib/spank_steelyard.so ]] || {
        echo "install-slurm: the plugin was not built: slurm/spank.h is not under ${SLURM_INC:-/usr/include}. Install Slurm's headers (Debian: libslurm-dev, RHEL: slurm-devel) or say make SLURM_INC=DIR." >&2
        exit 3
    }
    put 0755 "$built/lib/spank_steelyard.so" "$prefix/lib/steelyard/spank_steelyard.so"
    put_node_programs
    put_programs steelyard-slurmdb
    make_record_folder
    put_filled 0644 plugins/slurm/plugstack.conf.example "$doc/plugstack.conf.example"
    put 0644 plugins/node/netem/netem.conf.example "$doc/netem.conf.example"
    echo "Next: put the line of $doc/plugstack.conf.example into plugstack.conf (docs/admin.md)."
}

torque() {
    torque-parts
    DESTDIR=$root "$root$libexec/steelyard-torque" on "$pbs_home"
    echo "Next: the line SUBMITFILTER on hosts where users submit, with Torque 6.1.3 (docs/admin-pbs.md)."
}

torque-parts() {
    torque-login
    put_filled 0755 plugins/torque/steelyard-torque.sh "$libexec/steelyard-torque"
    put_man_page steelyard-torque
    put 0755 plugins/torque/install.sh "$libexec/torque-install"
    put_filled 0755 plugins/torque/pelog.sh "$libexec/torque-sweep"
    put_filled 0644 plugins/torque/steelyard-torque-sweep.service.example "$doc/steelyard-torque-sweep.service.example"
    put_filled 0644 plugins/torque/steelyard-torque-sweep.timer.example "$doc/steelyard-torque-sweep.timer.example"
    make_record_folder
}

torque-login() {
    put_node_programs
    put_filled 0755 plugins/torque/submitfilter.sh "$libexec/torque-submitfilter"
    put_filled 0644 plugins/torque/pbs.conf.example "$doc/pbs.conf.example"
    put 0644 plugins/node/netem/netem.conf.example "$doc/netem.conf.example"
}

uninstall-torque() {
    plugins/torque/install.sh remove "$root$pbs_home/mom_priv"
    rm -f "$root/etc/cron.d/steelyard-torque"
}

# The hook itself goes through the server to every mom; steelyard-node and the file of netem do not.
openpbs() {
    put_node_programs
    make_record_folder
    put 0644 "$built/openpbs/steelyard_hook.py" "$openpbs/steelyard_hook.py"
    put 0644 plugins/node/netem/netem.conf.example "$doc/netem.conf.example"
    put 0755 plugins/openpbs/qmgr.sh "$openpbs/qmgr.sh"
    [[ -e $root/etc/steelyard/openpbs.json ]] ||
        put_filled 0644 plugins/openpbs/openpbs.json.example /etc/steelyard/openpbs.json
    echo "steelyard-node belongs on every node and on the server's host. Then, once, as a manager of the server:"
    if [[ ${RUN-} == yes ]]; then
        "$root$openpbs/qmgr.sh" run
    else
        plugins/openpbs/qmgr.sh print "$openpbs"
    fi
    echo "From then on no mom runs a mom_priv/epilogue of yours: the hook runs it, as mom did (docs/admin-pbs.md)."
}

uninstall-openpbs() {
    if [[ ${RUN-} == yes ]]; then
        plugins/openpbs/qmgr.sh remove
    else
        echo "First, as a manager of the server: $openpbs/qmgr.sh remove (or say RUN=yes)"
    fi
    rm -rf "$root$openpbs"
    echo "Left: steelyard-node, /etc/steelyard, the records: docs/admin-pbs.md"
}

programs() {
    local file
    put_node_programs
    put_programs steelyard-time steelyard-load steelyard-fstest steelyard-stream steelyard-npb steelyard-mpiprof
    for file in "$built"/bin/npb-* "$built"/lib/libsteelyard-{mpiprof,samples}.so; do
        [[ ! -e $file ]] || put 0755 "$file" "$libexec/${file##*/}"
    done
    # Those of the command `steelyard`.
    for file in "$built"/man/commands/*.1; do
        [[ ! -e $file ]] || put 0644 "$file" "$prefix/share/man/man1/${file##*/}"
    done
}

redfish() {
    put 0755 contrib/redfish/steelyard_redfish.py "$libexec/steelyard-redfish"
    put_man_page steelyard-redfish
    put_filled 0644 contrib/redfish/steelyard-redfish.service.example "$doc/steelyard-redfish.service.example"
    echo "Next: docs/admin.md, \"Watts of the node by Redfish\"."
}

hypervisor() {
    put_programs steelyard-node
    install -d -m 0755 "$root$host_records"
    put_filled 0644 contrib/hypervisor/steelyard-vm@.service.example "$doc/steelyard-vm@.service.example"
    put 0755 contrib/hypervisor/libvirt_sampler_hook.sh "$doc/libvirt_sampler_hook.sh"
    echo "Next: docs/virtual.md, \"The host's joules\"."
}

put_timer() { # FILES: a unit of systemd, its timer, a line for cron
    local kind
    for kind in service timer cron; do
        put_filled 0644 "$1.$kind.example" "$doc/${1##*/}.$kind.example"
    done
}

sweep() {
    put_timer setup/steelyard-sweep
    echo "Next: docs/records.md, \"Swept every night\"."
}

spool() {
    install -d -m 0755 "$root/var/spool/steelyard"
    put 0755 contrib/spool/forward.sh "$libexec/steelyard-forward"
    put_man_page steelyard-forward
    put_timer contrib/spool/steelyard-forward
    echo "Next: docs/records.md, \"A spool on every node\"."
}

# packaging/parts.txt assigns files to packages.
packaged() {
    programs
    redfish
    hypervisor
    sweep
    spool
    torque-parts
    openpbs
    [[ ! -e $built/lib/spank_steelyard.so ]] || slurm
}

# Only the functions in the list above are components.
components=$(sed -n 's/^#   //p' packaging/install.sh)
for component; do
    sed 's/  .*//; s/, /\n/' <<<"$components" | grep -qxF -- "$component" || {
        printf "packaging/install.sh: unknown component '%s'; the components are:\n%s\n" "$component" "$components" >&2
        exit 2
    }
    "$component"
done
