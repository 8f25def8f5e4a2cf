#!/bin/bash
# A node, another node and a container on the first one, three network namespaces, with a network
# condition by steelyard-node on the device between the nodes; then what a run does with containers
# on two nodes before it measures: sy_condition_look. Only the pipe to the container is not a real
# launcher's. Prints a JSON object.
#   between.sh LIBRARY STEELYARD-NODE FOLDER APPLIED TOLD CHANGE [transfer]
# APPLIED is the condition on the node, TOLD what the run was told, CHANGE a command before it looks.
set -u
library=$1 node=$2 folder=$3 applied=$4 told_spec=$5 change=$6
far=sy-far-$$ box=sy-box-$$
# shellcheck disable=SC2064
trap "ip netns delete $far; ip netns delete $box" EXIT
ip -batch - <<END || exit
netns add $far
netns add $box
link set lo up
link add up0 type veth peer name eth0 netns $far
link add in0 type veth peer name eth0 netns $box
address add 10.9.0.1/24 dev up0
address add 198.18.0.14/28 dev in0
link set up0 up
link set in0 up
END
ip -netns "$far" -batch - <<END || exit
link set lo up
address add 10.9.0.2/24 dev eth0
address add 198.18.0.17/32 dev lo
link set eth0 up
route add 198.18.0.0/28 via 10.9.0.1
END
ip -netns "$box" -batch - <<END || exit
address add 198.18.0.1/28 dev eth0
link set eth0 up
route add default via 198.18.0.14
END
ip route add 198.18.0.16/28 via 10.9.0.2 || exit
for name in all default; do
    echo 1 >/proc/sys/net/ipv6/conf/$name/disable_ipv6
done
echo 1 >/proc/sys/net/ipv4/ip_forward
whose=(--run-dir="$folder/run" --node=n --job-id=1)
"$node" netem apply "${whose[@]}" --uid=0 --no-policy --peer=10.9.0.2 -- "$applied,dev=up0" >"$folder/applied" || exit

# shellcheck disable=SC1090
. "$library"
# shellcheck disable=SC2034 # the library's
SY_NETWORK_CONDITION=$told_spec SY_LAUNCHER=box SY_THIS_NODE=a SY_PLACES=$folder \
    SY_PLACE_ADDRESSES='10.9.0.1 10.9.0.2' SY_PLACE_NODES=(a b) tag=''
printf '%s\n' 'localhost a 198.18.0.1/28 -' '198.18.0.17 b 198.18.0.17/28 -' >"$folder/list"
sy_tag() { tag=$2; }
sy_places_let_go() { :; }
in_box() { nsenter "--net=/run/netns/$box" "$@"; }
sy_launcher_tell() {
    # shellcheck disable=SC2016 # for the shell inside
    in_box bash -c '. "$1"
        case $2 in
        send*) echo "sent $(sy_counts_send "${2#* }")" ;;
        trip*) echo "trip $(sy_condition_trip "${2#* }")" ;;
        esac' bash "$library" "$1" >&"$SY_LAUNCHER_IN" &
}
mkfifo "$folder/answer" && exec {SY_LAUNCHER_IN}<>"$folder/answer" || exit
# shellcheck disable=SC2034 # the library's
sy_launcher_answer() {
    read -r _ answer <&"$SY_LAUNCHER_IN"
}
received() { # datagrams that came to the other node's container, where nobody listens
    nsenter "--net=/run/netns/$far" grep ^Udp: /proc/net/snmp | sed -n '2s/^Udp: [0-9]* \([0-9]*\) .*/\1/p'
}
transfer() { # bit/s that the other container reads of a TCP stream, after its first half second
    in_box python3 -c 'import socket, sys, time
for _ in range(200):
    try:
        with socket.create_connection(("198.18.0.17", 5001), timeout=5) as cable:
            while True:
                cable.sendall(bytes(65536))
    except ConnectionRefusedError:
        time.sleep(0.05)
    except OSError:
        sys.exit()' &
    nsenter "--net=/run/netns/$far" python3 -c 'import socket, time
door = socket.create_server(("198.18.0.17", 5001))
door.settimeout(20)
cable, _ = door.accept()
def read(seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += len(cable.recv(65536))
    return count
read(0.5)
begin = time.monotonic()
print(int(read(1.5) * 8 / (time.monotonic() - begin)))'
    wait $!
}
in_box bash -c ": >/dev/tcp/198.18.0.17/9" 2>/dev/null
eval "$change" || exit
begin=${EPOCHREALTIME//[^0-9]/}
sy_condition_look 2>"$folder/err"
code=$?
took=$((${EPOCHREALTIME//[^0-9]/} - begin))
[[ ! -s $folder/counts ]] || tc -s qdisc show dev up0 >"$folder/tc" 2>&1
cat "$folder/err" >&2
printf '{"code": %d, "tag": "%s", "received": %s, "took_us": %d, "transfer": %d}\n' "$code" "$tag" \
    "$(received)" "$took" "$([[ -z ${7:-} ]] || transfer)"
