# shellcheck shell=bash
# nuttcp between the job's nodes: the server on the second, a client on every other one.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    sy_environment nuttcp
}

sy_client() {
    sy_program nuttcp '' 'install the Debian package nuttcp' >/dev/null || return
    sy_run_pairs "$SY_PARAM_MODE" text sy_nuttcp_client \
        nuttcp -S --nofork --no3rdparty -P @PORT@
}

sy_nuttcp_client() { # <node> <address> <port>
    local -a options=(-fparse -P "$3" -p "$(($3 + 1))" -T "$SY_PARAM_SECONDS")
    local -r window=$(((SY_PARAM_WINDOW + 1023) / 1024))
    [[ $SY_PARAM_PROTOCOL == tcp ]] || options+=(-u)
    if ((SY_PARAM_BANDWIDTH > 0)); then
        options+=("-R$(((SY_PARAM_BANDWIDTH + 999) / 1000))") # kbit/s
    elif [[ $SY_PARAM_PROTOCOL == udp ]]; then
        options+=(-R0) # its own default would be 1 Mbit/s
    fi
    ((SY_PARAM_STREAMS == 1)) || options+=("-N$SY_PARAM_STREAMS")
    ((window == 0)) || options+=("-w${window}" "-ws${window}")
    [[ $SY_PARAM_DIRECTION == forward ]] || options+=(-r)
    sy_on_node "$1" timeout --kill-after=5 "$((SY_PARAM_SECONDS + 60))" nuttcp "${options[@]}" "$2"
}
