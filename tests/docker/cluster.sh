#!/bin/bash
# A small Slurm cluster of containers: SUITE of Debian decides the release of Slurm, `host` is this
# machine's own (README.md).
#   cluster.sh base SUITE             the image it is made from, where none can be pulled
#   cluster.sh build SUITE            the cluster's image
#   cluster.sh up SUITE               five containers, two idle nodes: $STEELYARD_DOCKER-db, -ctl, -c1, -c2, -login
#   cluster.sh down SUITE             and nothing is left but the image
#   cluster.sh test SUITE [FILE.bats…]  a cluster of its own, the suites, and down again
# STEELYARD_DOCKER (steelyard-SUITE) tells clusters apart; CLUSTERS=2: test shares the files out among
# as many. Exit code 3: Docker or a program is missing.
set -euo pipefail

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
root=$(cd "$here/../.." && pwd)
readonly here root

skip_run() {
    printf 'docker-slurm not run: %s\n' "$1" | tee -a "${GROUP_NOT_RUN:-/dev/null}" >&2
    exit 3
}

require_programs() { # PROGRAM…
    local program
    for program in "$@"; do
        type -P "$program" >/dev/null || skip_run "no $program: setup/packages.sh docker installs what these tests need"
    done
}

require_engine() {
    require_programs docker
    local said
    said=$(docker version -f '{{.Server.Version}}' 2>&1) ||
        skip_run "no Docker engine answers: $said. Start one (systemctl start docker; as root dockerd) and be in its group"
    docker compose version >/dev/null 2>&1 || require_programs docker-compose
}

compose() {
    local -a call=(docker-compose)
    ! docker compose version >/dev/null 2>&1 || call=(docker compose)
    call+=(-p "$STEELYARD_DOCKER" -f "$here/compose.yaml")
    [[ $SUITE != host ]] || call+=(-f "$here/host.yaml")
    "${call[@]}" "$@"
}

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# Debian's own image where it can be had. Else one from Debian's packages, kept as a tar: with all
# that the Dockerfile would install, since unpacking it once here is far faster than in layers there.
base() {
    local -r pulled=debian:$SUITE-slim ours=steelyard-debian
    local -r tar=$root/build/docker/$SUITE.tar
    FROM=debian
    has_image "$pulled" || timeout 300 docker pull -q "$pulled" >/dev/null 2>&1 && return
    FROM=$ours
    has_image "$ours:$SUITE-slim" && return
    if [[ ! -e $tar ]]; then
        require_programs mmdebstrap
        mkdir -p "${tar%/*}"
        # A suite's lists may be some days old on a mirror that stands still.
        mmdebstrap -q --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
            --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
            --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
            --include="$(cat "$here"/packages/*.txt | paste -sd,)" \
            "$SUITE" "${tar%.tar}.part.tar" http://deb.debian.org/debian
        mv "${tar%.tar}.part.tar" "$tar"
    fi
    docker import "$tar" "$ours:$SUITE-slim" >/dev/null
}

build() {
    if [[ $SUITE == host ]]; then
        build_host_image
    else
        base
        export FROM
        compose build ctl
    fi
}

build_host_image() {
    require_programs slurmd slurmctld slurmdbd munged mariadbd setpriv python3 tc
    local -r image=steelyard-slurm-host:$TAG
    "$here/host.sh" "$root" "$LOCAL" "$image" || return 1
    docker run --rm --entrypoint /start.sh -v /usr:/usr:ro -v "$LOCAL/usr/local:/usr/local:ro" "$image" configure ||
        skip_run "the engine's containers cannot use this machine's /usr and $LOCAL: is it another machine's engine (DOCKER_HOST)?"
}

# shellcheck disable=SC2317 # wait_until runs it
is_idle() { [[ $(docker exec "$STEELYARD_DOCKER-ctl" sinfo -h -p main -t idle -o %D) == 2 ]]; }

wait_until() { # SECONDS COMMAND…
    local -r end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.3
    done
}

up() {
    build_with_log
    start
}

build_with_log() {
    local code=0
    (build) >"$log" 2>&1 || code=$?
    [[ $code == 0 ]] || tail -n 40 "$log" >&2
    return "$code"
}

start() {
    compose up -d --no-build >>"$log" 2>&1
    wait_until 120 is_idle || {
        compose logs --tail 20 >&2
        printf 'docker-slurm: %s: the nodes were not idle after 120 s\n' "$STEELYARD_DOCKER" >&2
        return 1
    }
}

down() {
    compose down -v -t 1 >>"$log" 2>&1
    [[ $SUITE != host ]] || rm -rf "$LOCAL"
}

run_suites() { # [FILE.bats…]
    require_programs bats jq
    # The longest first; none runs twice.
    (($#)) || set -- "$here"/{totals,publish,accounting}.bats "$here"/*.bats
    build_with_log
    claims=$(mktemp -d)
    trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$claims" "$LOCAL"' EXIT
    local -i n code=0
    for ((n = 1; n <= clusters; n++)); do
        run_share "$STEELYARD_DOCKER-$n" "$@" >"$claims/$n.out" 2>&1 &
    done
    for ((n = 1; n <= clusters; n++)); do
        wait -n || code=1
    done
    cat "$claims"/*.out
    return "$code"
}

# Each cluster takes the next file that none has taken.
run_share() { # CLUSTER FILE.bats…
    STEELYARD_DOCKER=$1
    local file code=0
    trap 'compose down -v -t 1 >>"$log" 2>&1' EXIT
    start
    printf '# %s: %s, %s\n' "$SUITE" "$(docker exec "$1-ctl" slurmctld -V)" "$(uptime | sed 's/.*load/load/')"
    for file in "${@:2}"; do
        ! mkdir "$claims/${file##*/}" 2>/dev/null || "$root/tests/run_bats.sh" "$file" || code=1
    done
    exit "$code"
}

print_usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

(($# >= 2)) || print_usage
readonly verb=$1
export SUITE=$2
shift 2
[[ $verb != test ]] || : "${STEELYARD_DOCKER:=steelyard-$SUITE-$$}"
export STEELYARD_DOCKER=${STEELYARD_DOCKER:-steelyard-$SUITE}
# Checkouts side by side have images of their own.
TAG=$(cksum <<<"$root" | cut -d' ' -f1)
LOCAL=$root/build/docker/$STEELYARD_DOCKER-root
SITE=$(echo "$root"/build/venv/lib/python3*/site-packages)
export TAG LOCAL SITE
mkdir -p "$root/build/docker"
readonly log=$root/build/docker/$STEELYARD_DOCKER.log clusters=${CLUSTERS:-1}
require_engine
case $verb in
base | build | up | down) "$verb" ;;
test) run_suites "$@" ;;
*) print_usage ;;
esac
