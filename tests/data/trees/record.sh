#!/bin/bash
# Record what `steelyard-node probe` reads on this machine into a small folder, so that it can be
# read again anywhere (--root) and become a test. Run it on a machine that Steelyard judges wrongly,
# or that no tree is there for yet; as root more is readable. docs/probe.md says how to contribute.
#
#   tests/data/trees/record.sh FOLDER "what machine this is: product, version, who"
#
# Nothing personal goes in: host name, machine id, boot id, MAC addresses and serial numbers are
# replaced or left out, so is the kernel's command line; of environments only the variables that
# the probe looks for. Look through the folder all the same: mountinfo names your file servers.
set -euo pipefail
shopt -s nullglob

usage="usage: record.sh FOLDER \"what machine this is\""
tree=${1:?$usage}
note=${2:?$usage}
if [[ -e $tree ]]; then
    printf 'record.sh: %s is there already: remove it or name another folder\n' "$tree" >&2
    exit 2
fi
node_program=${STEELYARD_NODE:-$(dirname "$0")/../../../build/bin/steelyard-node}

put() { # <path in the tree>, text on stdin
    mkdir -p "$tree$(dirname "$1")"
    cat >"$tree$1"
}

copy() { # <path>..., small files as they are; those that cannot be read are left out
    local path
    for path in "$@"; do
        if [[ -f $path ]]; then
            mkdir -p "$tree$(dirname "$path")"
            head -c 65536 "$path" >"$tree$path" 2>/dev/null || rm "$tree$path"
        fi
    done
}

mark() { # <path>..., only that it is there (git keeps no empty folders)
    local path
    for path in "$@"; do
        if [[ -d $path ]]; then
            put "$path/KEEP" </dev/null
        elif [[ -e $path ]]; then
            put "$path" </dev/null
        fi
    done
}

link() { # <path>..., a symbolic link as it is
    local path
    for path in "$@"; do
        if [[ -L $path ]] && readlink "$path" >/dev/null; then
            mkdir -p "$tree$(dirname "$path")"
            ln -s "$(readlink "$path")" "$tree$path"
        fi
    done
}

first_entry() { # <folder>, one name of it
    local entries=("$1"/*)
    if ((${#entries[@]})); then
        put "$1/$(basename "${entries[0]}")" </dev/null
    fi
}

record_origin() {
    printf 'Recorded by record.sh on %s as uid %s: %s\n' "$(date -u +%F)" "$(id -u)" "$note" |
        put /ORIGIN
    if [[ -x $node_program ]]; then
        "$node_program" probe --quick | sed -n 's/.*signature \\"\([^\\]*\)\\".*/\1/p' |
            put /.steelyard/cpuid-hypervisor
        [[ -s $tree/.steelyard/cpuid-hypervisor ]] || rm -r "$tree/.steelyard"
    fi
}

record_system() {
    local number=0000000000000000000000000000
    printf 'node\n' | put /proc/sys/kernel/hostname
    printf '%s0001\n' "$number" | put /etc/machine-id
    printf '00000000-0000-4000-8000-000000000001\n' | put /proc/sys/kernel/random/boot_id
    copy /proc/version /proc/sys/kernel/osrelease /proc/sysinfo /etc/os-release
    copy /sys/module/{nvidia,amdgpu,lustre,beegfs,mmfs26,mlx5_core,xpmem,knem}/version
    copy /sys/fs/lustre/version
    sed '/^$/q' /proc/cpuinfo | put /proc/cpuinfo # the first CPU
    grep -E '^(MemTotal|SwapTotal|Huge[A-Za-z_]*):' /proc/meminfo | put /proc/meminfo
    copy /sys/devices/system/clocksource/clocksource0/{current,available}_clocksource
    copy /proc/sys/net/ipv4/tcp_{,available_}congestion_control /proc/sys/net/core/default_qdisc
}

record_cpus() {
    local cpu=/sys/devices/system/cpu
    copy $cpu/online $cpu/smt/control $cpu/cpu0/cpufreq/cpuinfo_max_freq
    copy $cpu/cpufreq/policy*/scaling_governor
    copy $cpu/cpu[0-9]*/topology/{thread,core}_siblings_list
    copy $cpu/{intel_pstate/no_turbo,cpufreq/boost} $cpu/vulnerabilities/*
    copy /sys/devices/system/node/online /sys/kernel/mm/transparent_hugepage/enabled
    copy /proc/sys/kernel/numa_balancing
}

record_machine_layer() {
    local dmi=/sys/class/dmi/id
    copy $dmi/{sys_vendor,product_name,product_version,bios_vendor,bios_version,bios_date}
    copy $dmi/{board_vendor,chassis_vendor,chassis_asset_tag}
    copy /sys/hypervisor/{type,guest_type,properties/features} /proc/xen/capabilities
    copy /proc/device-tree/compatible /proc/device-tree/hypervisor/compatible
    mark /proc/device-tree/ibm,partition-name '/proc/device-tree/hmc-managed?'
    mark /dev/vboxguest /dev/prl_tg /dev/hpilo /dev/ipmi0 /sys/bus/acpi/devices/AMZNC10C:00
    mark /sys/bus/pci/drivers/{xen-platform-pci,vmw_pvscsi}/bind
    first_entry /sys/bus/vmbus/devices
    first_entry /sys/bus/virtio/devices
    if [[ -r /sys/firmware/acpi/tables/FACP ]]; then
        head -c 36 /sys/firmware/acpi/tables/FACP | put /sys/firmware/acpi/tables/FACP
    fi
    copy /run/cloud-init/cloud-id
}

record_container_layer() {
    local names='^(container|APPTAINER_CONTAINER|SINGULARITY_CONTAINER|KUBERNETES_SERVICE_HOST'
    names+='|CH_RUNNING|SHIFTER_RUNTIME)='
    copy /run/systemd/container /run/host/container-manager
    copy /proc/{1,self}/cgroup /proc/self/mountinfo
    grep -E '^(Name|VxID|s_context):' /proc/self/status | put /proc/self/status
    head -n 1 /proc/1/sched 2>/dev/null | sed 's/^[^(]*/init /' | put /proc/1/sched
    if [[ -r /proc/2/comm && $(cat /proc/2/comm) == kthreadd ]]; then
        copy /proc/2/comm
    fi
    link /proc/self/ns/{pid,cgroup,user,ipc}
    if head -c 1 /proc/1/environ >/dev/null 2>&1; then
        { grep -zE '^container=' /proc/1/environ || true; } | put /proc/1/environ
    fi
    { grep -zE "$names" /proc/self/environ || true; } | put /proc/self/environ
    mark /.dockerenv /.dockerinit /run/.containerenv /.singularity.d /WEIRD_AL_YANKOVIC
    mark /{,var/}run/secrets/kubernetes.io /dev/lxd/sock /dev/.lxc-boot-id
    mark /proc/vz /proc/bc /proc/user_beancounters
}

# veth, macvlan …: sysfs does not tell them apart, the kernel does on a question.
record_kind() { # <device>
    local kinds='veth|macvlan|macvtap|ipvlan|ipvtap|tun|bond|vlan|dummy|bridge'
    { ip -d link show dev "$1" 2>/dev/null | grep -owE "$kinds" | head -n 1 || true; } |
        sed "s/^/$1 /" >>"$tree/.steelyard/netdev-kinds"
}

record_network() {
    local device name number=0
    mkdir -p "$tree/.steelyard"
    for device in /sys/class/net/*/; do
        device=${device%/}
        name=$(basename "$device")
        copy "$device"/{type,ifindex,iflink,mtu,speed,operstate,uevent,tun_flags}
        printf '02:00:00:00:00:%02x\n' $((number += 1)) | put "$device/address"
        mark "$device"/{bridge,bonding,device,device/physfn} "$device"/lower_*
        copy "$device"/device/{vendor,device}
        link "$device"/{master,device/driver,device/subsystem}
        [[ -e $device/device ]] || record_kind "$name"
    done
}

record_energy() {
    local zone
    for zone in /sys/class/powercap/*:*/; do
        copy "${zone%/}"/{name,energy_uj,max_energy_range_uj}
    done
    if [[ -d /sys/class/powercap && ! -e $tree/sys/class/powercap ]]; then
        put /sys/class/powercap/KEEP </dev/null
    fi
}

mkdir -p "$tree"
record_origin
record_system
record_cpus
record_machine_layer
record_container_layer
record_network
record_energy
find "$tree" -empty -type d -delete
printf '%s: %s files, %s KB. Now look through it, then write %s/expected.json:\n' \
    "$tree" "$(find "$tree" ! -type d | wc -l)" "$(du -sk "$tree" | cut -f1)" "$tree"
printf '  steelyard probe --root %s\n' "$tree"
