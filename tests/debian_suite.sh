# shellcheck shell=bash disable=SC2034 # what is set is for who sources it
# Packages of another release of Debian than this machine's, whose own lists are not touched. Sourced.

# suite_open SUITE FOLDER: its lists into FOLDER, which is there; from then on `apt` is the words of
# apt-get, and `suite_cache` those of apt-cache, that know no other.
suite_open() {
    local suite=$1 work=$2 words
    mkdir -p "$work"/{lists/partial,cache/archives/partial}
    # Lists of a release that has ended stay as they are.
    words=(-o Dir::Etc::sourceparts=- -o "Dir::Etc::sourcelist=$work/suite.sources"
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root
        -o Acquire::Check-Valid-Until=false)
    apt=(apt-get -qq "${words[@]}")
    suite_cache=(apt-cache "${words[@]}")
    suite_source debian "$suite" >"$work/suite.sources"
    [[ $suite == sid ]] || suite_source debian-security "$suite-security" >>"$work/suite.sources"
    "${apt[@]}" update
}

suite_source() { # ARCHIVE SUITE
    printf '%s\n' "Types: deb" "URIs: http://deb.debian.org/$1" "Suites: $2" "Components: main" \
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" ""
}

# suite_unpack FOLDER PACKAGE…: the newest of each into FOLDER/root.
suite_unpack() {
    local work=$1 package
    shift
    (cd "$work" && "${apt[@]}" download "$@")
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/root"
    done
}
