# shellcheck shell=bash
# A temporary machine with Debian 12's kernel, emulated in software, for features that User Mode Linux
# lacks. It is some twenty times slower. Sourced by run.sh.

readonly kernels=/var/tmp/steelyard-kernels # fetched once
readonly file_server=/usr/lib/qemu/virtiofsd

require_emulator() {
    if ! type -P qemu-system-x86_64 >/dev/null || [[ ! -x $file_server ]]; then
        echo "tests/guests/layouts/run.sh: apt-get install qemu-system-x86 qemu-system-common" >&2
        exit 3
    fi
}

fetch_kernel() {
    mkdir -p "$kernels"
    if [[ ! -d $kernels/modules ]]; then
        rm -f "$kernels/bookworm-whole.vmlinuz" # of an interrupted download
        tests/guests/kernels/kernel.sh bookworm "$kernels/bookworm-whole.vmlinuz" "$kernels/modules"
    fi
    release=$(ls "$kernels/modules")
}

# Make the initrd: busybox, and the modules for virtiofs.
make_initrd() { # FOLDER
    local -r root=$1/initrd
    local module
    mkdir -p "$root"/{bin,proc,dev,host,"lib/modules/$release"}
    cp "$(type -P busybox)" "$root/bin/busybox"
    ldd "$root/bin/busybox" | grep -o '/[^ ]*' | while read -r module; do
        install -D -m 755 "$module" "$root$module"
    done
    for module in virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev fuse virtiofs; do
        (cd "$kernels/modules/$release" &&
            find . -name "$module.ko" -exec cp --parents {} "$root/lib/modules/$release/" \;)
    done
    depmod -b "$root" "$release" 2>/dev/null
    install -m 755 tests/guests/layouts/emulated_init.sh "$root/init"
    (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$1/initrd.cpio"
}

serve_folder() { # FOLDER NAME SOURCE
    "$file_server" --socket-path="$1/$2.socket" -o "source=$3,cache=auto,sandbox=chroot" \
        >"$1/$2.log" 2>&1 &
    servers+=($!)
    until [[ -S $1/$2.socket ]]; do
        kill -0 $! 2>/dev/null || {
            cat "$1/$2.log" >&2
            return 1
        }
        sleep 0.1
    done
}

boot_emulated() { # LAYOUT OUT SOURCE: this checkout's path in the guest
    local -r machine=$2/machine
    local -a servers=()
    mkdir -p "$machine"
    fetch_kernel
    make_initrd "$machine"
    gcc -O2 -pthread -o "$2/load" tests/system/bpf/load.c
    serve_folder "$machine" root /
    serve_folder "$machine" out "$2"
    timeout 1500 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1536 \
        -object memory-backend-memfd,id=memory,size=1536M,share=on -numa node,memdev=memory \
        -nodefaults -no-reboot -display none -serial "file:$2/console" \
        -kernel "$kernels/bookworm-whole.vmlinuz" -initrd "$machine/initrd.cpio" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off SY_LAYOUT=$1 SY_SOURCE=$3 \
SY_OUT=virtiofs SY_MODULES=$kernels/modules SY_INSIDE=tests/guests/layouts/counted.sh" \
        -chardev "socket,id=root,path=$machine/root.socket" -device vhost-user-fs-pci,chardev=root,tag=root \
        -chardev "socket,id=out,path=$machine/out.socket" -device vhost-user-fs-pci,chardev=out,tag=out \
        </dev/null >"$machine/log" 2>&1 || :
    kill "${servers[@]}" 2>/dev/null || : # without a machine they would wait forever
    wait
    rm -rf "$machine"
}
