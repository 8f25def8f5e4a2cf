# shellcheck shell=bash
# For tests that need somebody without rights. The checkout may lie below a home that only its owner
# may enter: in mounts of the command's own, that folder is another one with nothing in it but the way.

as_nobody() { # COMMAND…
    # shellcheck disable=SC2016 # "$@" is the inner shell's
    unshare --mount -- bash -euc 'root=$1 above=
        shift
        IFS=/ read -ra names <<<"${root%/*}"
        for name in "${names[@]:1}"; do
            above+=/$name
            [[ $(stat -c %A -- "$above") == *[xt] ]] && continue
            mount --bind -- "$root" /mnt
            mount -t tmpfs -o mode=755 none "$above"
            mkdir -p -- "$root"
            mount --bind -- /mnt "$root"
            break
        done
        exec setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ "$@"' bash "$ROOT" "$@"
}
