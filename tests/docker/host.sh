#!/bin/bash
# The image of SUITE=host: next to nothing, because its containers see this machine's own /usr
# (host.yaml): its Slurm, its MariaDB, and in /usr/local the Steelyard that is built here. Nothing
# is fetched and nothing compiled. host.sh CHECKOUT FOLDER IMAGE
set -euo pipefail
readonly checkout=$1 root=$2 image=$3

print_passwd() { # as useradd would write it
    local -i id=100
    local name
    echo root:x:0:0:root:/root:/bin/bash
    echo nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin
    for name in munge slurm mysql; do
        echo "$name:x:$((++id)):$id::/nonexistent:/usr/sbin/nologin"
    done
    echo alice:x:1001:1001::/home/alice:/bin/bash
    echo bob:x:1002:1002::/home/bob:/bin/bash
}

# What /usr does not hold. Whose each file is start.sh says.
make_folders() {
    mkdir -p "$root"/{dev,home,opt,proc,root,run,sys,tmp,usr,var/{lib,log,spool,tmp}} "$root"/etc/{munge,slurm}
    chmod 1777 "$root/tmp" "$root/var/tmp"
    ln -sfn /run "$root/var/run"
    local name
    for name in bin sbin lib lib32 lib64 libx32; do
        [[ ! -L /$name ]] || ln -sfn "usr/$name" "$root/$name"
    done
}

write_configuration() {
    cp -a /etc/alternatives "$root/etc"
    print_passwd >"$root/etc/passwd"
    cut -d: -f1,2,4 <<<"$(print_passwd)" | sed 's/$/:/' >"$root/etc/group"
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
    head -c 1024 /dev/urandom >"$root/etc/munge/munge.key"
    chmod 400 "$root/etc/munge/munge.key"
}

rm -rf "$root"
make -s --no-print-directory -C "$checkout" install-slurm install-programs DESTDIR="$root" >&2
"$checkout/tests/docker/assemble.sh" "$checkout" "$root"
make_folders
write_configuration
tar -C "$root" --exclude=./usr --owner=0 --group=0 --numeric-owner -c . |
    docker import --change 'ENTRYPOINT ["/start.sh"]' - "$image"
