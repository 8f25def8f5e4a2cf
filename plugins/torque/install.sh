#!/bin/sh
# install.sh put SCRIPT MOM_PRIV | remove MOM_PRIV
# Installs SCRIPT under its five names. A site's own scripts are renamed NAME.site, and SCRIPT calls them.
set -e
NAMES='prologue epilogue prologue.parallel epilogue.parallel epilogue.precancel'
ours='^# Steelyard: around a job of Torque'

fail() {
    echo "install-torque: $*" >&2
    exit 3
}

# Whether pbs_mom would run the file: it does not check NAME.site, which SCRIPT calls.
is_safe() {
    [ "$(id -u)" != 0 ] || [ "$(find "$1" -prune -type f -user 0 ! -perm -020 ! -perm -002)" ]
}

keep_site_script() {
    [ -e "$1" ] || return 0
    ! grep -q "$ours" "$1" || return 0
    [ ! -e "$1.site" ] || fail "$1 is not ours, and $1.site is there, too: join the two in $1.site and remove $1."
    is_safe "$1" || fail "$1: expected a file of root that nobody else can write to: pbs_mom would not run it, nor shall we."
    cp -p "$1" "$1.site"
    echo "kept: $1 as $1.site, called by ours with the same arguments; its exit code counts"
}

install_scripts() {
    [ -d "$2" ] || fail "there is no folder $2: on a node with pbs_mom say where its files are: make install-torque PBS_HOME=DIR, or steelyard-torque on DIR. A host where users only submit needs the line SUBMITFILTER alone (make install-torque-login)."
    for name in $NAMES; do keep_site_script "$2/$name"; done
    for name in $NAMES; do
        # Renamed when it is complete: jobs may start while this runs.
        install -m 0755 "$1" "$2/.$name.new"
        [ "$(id -u)" != 0 ] || chown 0:0 "$2/.$name.new"
        mv -f "$2/.$name.new" "$2/$name"
    done
}

remove_scripts() {
    for name in $NAMES; do
        grep -qs "$ours" "$1/$name" || continue
        if [ -e "$1/$name.site" ]; then mv -f "$1/$name.site" "$1/$name"; else rm -f "$1/$name"; fi
    done
}

case $1 in
put) install_scripts "$2" "$3" ;;
remove) remove_scripts "$2" ;;
*) fail "expected put SCRIPT MOM_PRIV or remove MOM_PRIV, found '$*'" ;;
esac
