#!/bin/bash
# powercap.ko and our own zones for the kernel of virtual nodes, out of the sources of that kernel:
# tests/guests/powercap/build.sh FOLDER. Debian's package of the sources is fetched (133 MB), once.
set -euo pipefail
folder=$(realpath -m "$1") here=$(realpath "${0%/*}")
readonly folder here
readonly config=/usr/share/doc/user-mode-linux/config.gz

need() { # CODE WORDS…
    echo "tests/guests/powercap/build.sh: $2" >&2
    exit "$1"
}

for program in make gcc flex bison bc xz apt-get dpkg-deb linux.uml; do
    command -v "$program" >/dev/null || need 3 "no $program: apt-get install make gcc flex bison bc xz-utils user-mode-linux"
done
[[ -f $config ]] || need 3 "no $config: apt-get install user-mode-linux"
release=$(basename "$(find /usr/lib/uml/modules -mindepth 1 -maxdepth 1 -name '[0-9]*')")
readonly release
readonly sources=$folder/linux-$release

fetch() {
    local package=linux-source-${release%.*} version
    version=$(apt-cache madison "$package" | awk -v want="$release-" 'index($3, want) == 1 { print $3; exit }')
    [[ $version ]] || need 3 "Debian no longer has $package $release, of which linux.uml was built"
    (cd "$folder" && apt-get -qq download "$package=$version")
    dpkg-deb -x "$folder/$package"_*.deb "$folder/deb"
    mkdir -p "$sources.new"
    tar -xJf "$folder/deb/usr/src/$package.tar.xz" -C "$sources.new" --strip-components=1
    rm -rf "$folder/deb" "$folder/$package"_*.deb
    zcat "$config" >"$sources.new/.config"
    make -s -C "$sources.new" ARCH=um olddefconfig modules_prepare
    mv "$sources.new" "$sources"
}

# Debian builds User Mode Linux without powercap, which needs nothing that is not in there.
build() {
    local at=$folder/modules
    mkdir -p "$at"
    cp "$sources/drivers/powercap/powercap_sys.c" "$here/steelyard_powercap.c" "$at"
    printf 'obj-m := powercap.o steelyard_powercap.o\npowercap-y := powercap_sys.o\n' >"$at/Kbuild"
    make -s -C "$sources" ARCH=um M="$at" CFLAGS_MODULE=-DCONFIG_POWERCAP=1 KBUILD_MODPOST_WARN=1 \
        modules >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
    cp "$at/powercap.ko" "$at/steelyard_powercap.ko" "$folder"
}

mkdir -p "$folder"
[[ -d $sources ]] || fetch
build
