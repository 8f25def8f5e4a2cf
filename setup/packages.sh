#!/bin/bash
# Install the Debian packages of the named lists: setup/packages.sh LIST…
# Lists are files of this folder (run.txt, bpf.txt, test.txt): one package a line, `#` starts a comment;
# NAME? is skipped where the release has no such package.
# As an ordinary user nothing is installed: the one missing command is printed, exit code 3.
set -euo pipefail

readonly here=${BASH_SOURCE[0]%/*}

list_packages() { # LIST…
    local list
    for list in "$@"; do
        sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/[[:space:]]//g' "$here/$list.txt"
    done
}

list_missing_packages() { # LIST…
    local package
    while read -r package; do
        if [[ $package == *\? ]]; then
            package=${package%\?}
            [[ $(apt-cache search --names-only "^$package\$") ]] || continue
        fi
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            printf '%s\n' "$package"
    done < <(list_packages "$@")
}

# Debian starts a service as soon as its package is installed. Only the programs are needed, not another
# munged or slurmd on the machine: policy-rc.d (invoke-rc.d(8)) forbids starts during the installation.
install_packages() { # PACKAGE…
    local -r policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 0755 "$policy"
    fi
    "$here/step.sh" "1/3 Debian's lists of packages" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "$here/step.sh" "1/3 $# Debian packages: $*" \
        apt-get install -y -qq -o APT::Status-Fd=1 --no-install-recommends "$@"
}

main() { # LIST…
    local -a missing
    if ! command -v dpkg-query >/dev/null; then
        printf 'steelyard: this is no Debian-like system (no dpkg-query); packages are not checked.\n' >&2
        printf 'steelyard: what is needed, by its Debian name: %s\n' "$(list_packages "$@" | xargs)" >&2
        exit 0
    fi
    mapfile -t missing < <(list_missing_packages "$@")
    if ((${#missing[@]} == 0)); then
        exit 0
    fi
    if ((EUID != 0)); then
        printf 'steelyard: Debian packages are missing. As root, run:\n' >&2
        printf '  apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
        exit 3
    fi
    install_packages "${missing[@]}"
}

main "$@"
