# shellcheck shell=bash
# iperf3 between the job's nodes: the server on the second, a client on every other one.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    sy_environment iperf3
}

sy_client() {
    sy_program iperf3 '' 'install the Debian package iperf3' >/dev/null || return
    sy_run_pairs "$SY_PARAM_MODE" json sy_iperf3_client iperf3 --server --bind @ADDRESS@ --port @PORT@ ||
        return
    sy_tag_iperf3
}

# Tag the congestion control: it differs between kernels, and results depend on it.
sy_tag_iperf3() {
    local name
    name=$(sed -nE 's/.*"sender_tcp_congestion":[[:space:]]*"([^"]*)".*/\1/p' \
        "$SY_ATTEMPT_DIR/pair.0.out" | tail -n 1)
    [[ -z $name ]] || sy_tag network.congestion_control "$name"
}

sy_iperf3_client() { # <node> <address> <port>
    local -a options=(--client "$2" --port "$3" --json --connect-timeout 10000
        --time "$SY_PARAM_SECONDS" --parallel "$SY_PARAM_STREAMS"
        # 0 is without a limit; the default for UDP is 1 Mbit/s.
        --bitrate "$SY_PARAM_BANDWIDTH")
    if [[ $SY_PARAM_PROTOCOL == udp ]]; then
        # No --omit: 3.12 counts the datagrams lost in the omitted seconds.
        options+=(--udp)
    else
        options+=(--omit "$SY_PARAM_OMIT")
    fi
    case $SY_PARAM_DIRECTION in
    reverse) options+=(--reverse) ;;
    both) options+=(--bidir) ;;
    esac
    ((SY_PARAM_WINDOW == 0)) || options+=(--window "$SY_PARAM_WINDOW")
    [[ -z $SY_PARAM_CONGESTION ]] || options+=(--congestion "$SY_PARAM_CONGESTION")
    # Without an answer from the server it would wait forever at the end of a test.
    sy_on_node "$1" timeout --kill-after=5 "$((SY_PARAM_SECONDS + SY_PARAM_OMIT + 60))" \
        iperf3 "${options[@]}"
}
