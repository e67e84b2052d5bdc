# Words of the guest's scripts (busybox sh, as root in the virtual machine).
#
# What a script prints is for the test: parts that begin with a line `@@@ NAME`. Complaints go to stderr, which is the console.

# busybox takes its own programs first, and its `ip` knows little.
ip() { /sbin/ip "$@"; }

part() { echo "@@@ $*"; }

say() { echo "$(cut -d' ' -f1 /proc/uptime) $*" >&2; }

load() {
    for module; do modprobe "$module" || say "no module $module"; done
    # The bonding driver makes a bond by itself.
    ip link del bond0 2>/dev/null
}

# Waits until a command succeeds, at most this many tenths of a second.
await() { # TENTHS COMMAND...
    local tenths=$1 begun
    shift
    begun=$(cut -d. -f1 /proc/uptime)
    until "$@"; do
        if [ $(($(cut -d. -f1 /proc/uptime) - begun)) -gt $((tenths / 10)) ]; then
            say "in vain after $tenths tenths of a second: $*"
            return 1
        fi
        usleep 100000
    done
}

# Two hosts with this many cables between them: p1, p2 ... at both.
hosts() { # CABLES PC NAS
    local cables=$1 host number
    shift
    for host; do
        ip netns add "$host"
        ip -n "$host" link set lo up
    done
    for number in $(seq "$cables"); do
        ip link add "p$number" netns "$1" type veth peer name "p$number" netns "$2"
        for host; do ip -n "$host" link set "p$number" up; done
    done
}

gone() { for host; do ip netns del "$host"; done; }

bond() { # HOST PORTS MODE [OPTIONS]; its hardware address is ADDRESS, where that is set
    local host=$1 ports=$2 mode=$3 port
    shift 3
    ip -n "$host" link add bond0 ${ADDRESS:+address $ADDRESS} type bond mode "$mode" miimon 100 "$@"
    for port in $ports; do
        ip -n "$host" link set "$port" down
        ip -n "$host" link set "$port" master bond0
        ip -n "$host" link set "$port" up
    done
    ip -n "$host" link set bond0 up
}

# Whether exactly so many ports of the bond are up.
carrier() { # HOST PORTS
    [ "$(ip netns exec "$1" grep -A1 'Slave Interface' /proc/net/bonding/bond0 | grep -c 'MII Status: up')" = "$2" ]
}

# Whether LACP is settled at so many ports, at both ends: active, aggregated, in step, collecting, distributing, and 2 where the
# rate is fast.
in_step() { # HOST PORTS
    [ "$(ip netns exec "$1" grep -cE 'port state: 6[13]$' /proc/net/bonding/bond0)" = $((2 * $2)) ]
}

# In a host (a namespace), or the machine itself where that is called `all`. One entry for many commands: each costs 0.1 s.
inside() { # HOST COMMAND...
    local host=$1
    shift
    if [ "$host" = all ]; then "$@"; else ip netns exec "$host" "$@"; fi
}

# What the kernel's own tools say, here, of all that does not move by itself.
told() {
    local name letter
    echo "=== ip"
    ip -d -j link
    for name in $(ls /proc/net/bonding 2>/dev/null); do
        echo "=== bonding $name"
        cat "/proc/net/bonding/$name"
    done
    for name in $(ls /sys/class/net); do
        [ "$name" != lo ] && [ "$name" != bonding_masters ] || continue
        echo "=== ethtool $name"
        ethtool "$name" 2>&1
        for letter in i $LETTERS; do
            echo "=== ethtool -$letter $name"
            ethtool "-$letter" "$name" 2>&1
        done
        echo "=== carrier_changes $name"
        cat "/sys/class/net/$name/carrier_changes"
    done
}

# A look at a host by weaklink, between two by the kernel's own tools that say the same: so nothing changed meanwhile.
looked() {
    local try
    for try in 1 2 3 4 5 6 7 8 9 10; do
        told >/tmp/told
        ip -s -s -j link >/tmp/before
        weaklink link --json >/tmp/weaklink
        ip -s -s -j link >/tmp/after
        told >/tmp/told-after
        cmp -s /tmp/told /tmp/told-after && return
        say "something moved during look $try"
        diff /tmp/told /tmp/told-after >&2
    done
}

look() { # NAME HOST [LETTERS]: with what `ethtool -LETTER` says of each port
    inside "$2" env LETTERS="$3" sh -c ". /lib.sh; looked"
    part "$1 told" && cat /tmp/told
    part "$1 before" && cat /tmp/before
    part "$1 after" && cat /tmp/after
    part "$1 weaklink" && cat /tmp/weaklink
    say "$1"
}
