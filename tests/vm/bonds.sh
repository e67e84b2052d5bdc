# Aggregations between two hosts (network namespaces): what each is said to be, in every mode and state.
. /lib.sh
load bonding bridge veth 8021q team team_mode_loadbalance

addresses() { # INTERFACE
    ip -n pc addr add 10.77.0.1/24 dev "$1"
    ip -n nas addr add 10.77.0.2/24 dev "$1"
}

for mode in balance-rr active-backup balance-xor broadcast 802.3ad balance-tlb balance-alb; do
    hosts 2 pc nas
    options=
    [ $mode = 802.3ad ] && options="lacp_rate fast xmit_hash_policy layer3+4"
    bond pc "p1 p2" $mode $options
    bond nas "p1 p2" $mode $options
    addresses bond0
    await 300 carrier pc 2
    [ $mode != 802.3ad ] || await 600 in_step pc 2
    look "mode $mode" pc
    gone pc nas
done

# LACP that nobody answers: both ends' facts of it stand still once both ports have given up (bit 6, defaulted).
hosts 2 pc nas
bond pc "p1 p2" 802.3ad lacp_rate fast
ip -n pc addr add 10.77.0.1/24 dev bond0
given_up() {
    ip netns exec pc cat /proc/net/bonding/bond0 | awk '/details actor/ { own = 1 }
        own && /port state/ { given_up += int($3 / 64) % 2; own = 0 } END { exit given_up != 2 }'
}
await 600 given_up
look "dead partner" pc
gone pc nas

# A VLAN on top, then a cable out at the far end.
hosts 2 pc nas
for host in pc nas; do
    bond $host "p1 p2" 802.3ad lacp_rate fast xmit_hash_policy layer2+3
    ip -n $host link add link bond0 name bond0.20 type vlan id 20
    ip -n $host link set bond0.20 up
done
addresses bond0.20
await 600 in_step pc 2
look "vlan on bond" pc
ip -n nas link set p1 down
alone() { [ "$(ip netns exec pc cat /sys/class/net/bond0/bonding/ad_num_ports)" = 1 ]; }
await 300 alone
look "cable out" pc
gone pc nas

# The other aggregation of Linux; its daemon decides, and ends with its interface.
hosts 2 pc nas
for port in p1 p2; do ip -n pc link set $port down; done
mkdir -p /run/teamd
nsenter --net=/run/netns/pc teamd -d -t team0 -c '{"device": "team0", "runner": {"name": "loadbalance",
    "tx_hash": ["eth", "ipv4", "tcp"]}, "link_watch": {"name": "ethtool"}, "ports": {"p1": {}, "p2": {}}}' >&2
ip -n pc link set team0 up
ip -n pc addr add 10.77.0.1/24 dev team0
up() { ip -n pc link show team0 | grep -q LOWER_UP; }
await 300 up
look "team" pc
kill "$(cat /run/teamd/team0.pid)"
gone pc nas

# A bridge with a port to each of two hosts: its table knows which of them leads to the one that is asked about.
hosts 1 pc nas
ip netns add other
ip link add p2 netns pc type veth peer name p2 netns other
ip -n pc link add br0 type bridge
for port in p1 p2; do
    ip -n pc link set $port up
    ip -n pc link set $port master br0
done
ip -n pc link set br0 up
ip -n other link set p2 up
ip -n pc addr add 10.77.0.1/24 dev br0
ip -n nas addr add 10.77.0.2/24 dev p1
ip -n other addr add 10.77.0.3/24 dev p2
for far in 2 3; do
    # The first packet may come before the bridge forwards.
    await 300 ip netns exec pc ping -c 1 -W 1 10.77.0.$far >&2
    part "bridge to $far"
    ip netns exec pc weaklink link 10.77.0.$far --no-agent --json
done
gone pc nas other
exit 0
