# Reports of `weaklink link` between two hosts, for the golden samples (tests/fixtures/report/link-*.json). No test runs it; by hand:
#
#   tests/vm/setup target/vm && tests/vm/run -t 500 target/vm tests/vm/reports.sh weaklink=target/debug/weaklink >reports
#   awk '/^@@@ /{ file = "tests/fixtures/report/link-" $2 ".json"; next } { print > file }' reports
#
# Then the golden reports are made anew (INSTA_UPDATE=always). The addresses are made up, and nothing else in them names anybody.
. /lib.sh
load veth bridge bonding
modprobe labnic pairs=9 driver=igc

set_port() { echo "$2" >/sys/kernel/debug/labnic/lab"$1"; }
# Both ends of a cable, as words for labnic; then each end to its host, as a port of that name.
cable() { # NUMBER HOST PORT WORDS HOST PORT WORDS
    local number=$((2 * $1)) host port
    set_port $number "$4"
    set_port $((number + 1)) "$7"
    shift
    for end in 0 1; do
        ip link set lab$((number + end)) netns "$1"
        ip -n "$1" link set lab$((number + end)) name "$2"
        ip -n "$1" link set "$2" up
        shift 3
    done
}
host() {
    for host; do
        ip netns add "$host"
        ip -n "$host" link set lo up
    done
}
agent() {
    rm -f /tmp/code
    # The program itself, not the function of its name: that one would be killed in its place.
    /sbin/ip netns exec nas weaklink serve --code-file /tmp/code >&2 &
    agent=$!
    await 300 test -s /tmp/code
}
report() { # NAME ARGUMENTS...
    part "$1"
    shift
    ip netns exec pc weaklink link "$@" --json
    say "status $?"
}
gigabit=10half,10,100half,100,1000
more=10,100,1000,2500
giga="speed=1000 supported=$gigabit,tp,autoneg,pause advertised=$gigabit,tp,autoneg,pause partner=$gigabit,autoneg,pause"

host pc nas
cable 0 pc eth0 "$giga" nas eth0 "$giga"
ip -n pc addr add 192.168.1.10/24 dev eth0
ip -n nas addr add 192.168.1.20/24 dev eth0
agent
report healthy 192.168.1.20 --code-file /tmp/code
report no-agent 192.168.1.20 --no-agent
kill $agent
gone pc nas

host pc nas
cable 8 pc eth0 "$giga" nas eth0 "$giga"
ip -n pc addr add 192.168.1.10/24 dev eth0
ip -n nas addr add 192.168.1.20/24 dev eth0
# The agent dies when it is about to send data.
agent
part broken-off
ip netns exec pc weaklink link 192.168.1.20 --code-file /tmp/code --json 2>&1 >/tmp/report | while read -r line; do
    case $line in *"NAS → PC"*) kill -9 $agent ;; esac
    say "$line"
done
cat /tmp/report
gone pc nas

host pc nas
cable 1 pc eth0 "speed=1000 supported=$more,tp,autoneg,pause advertised=$more,tp,autoneg,pause partner=$gigabit,autoneg,pause" \
    nas eth0 "speed=1000 supported=$gigabit,tp,autoneg,pause advertised=$gigabit,tp,autoneg,pause partner=$more,autoneg,pause"
ip -n pc addr add 192.168.1.10/24 dev eth0
ip -n nas addr add 192.168.1.20/24 dev eth0
agent
report card-at-1g 192.168.1.20 --code-file /tmp/code
kill $agent
gone pc nas

# A switch that speaks LACP to the NAS only.
host pc switch nas
for number in 1 2; do
    cable $((number + 1)) pc eth$number "$giga" switch pc$number "$giga"
    cable $((number + 3)) nas eth$number "$giga" switch nas$number "$giga"
done
bond pc "eth1 eth2" 802.3ad lacp_rate fast xmit_hash_policy layer3+4
bond nas "eth1 eth2" 802.3ad lacp_rate fast xmit_hash_policy layer2+3
bond switch "nas1 nas2" 802.3ad lacp_rate fast
ip -n switch link add br0 type bridge
for port in pc1 pc2 bond0; do ip -n switch link set $port master br0; done
ip -n switch link set br0 up
ip -n pc addr add 192.168.1.10/24 dev bond0
ip -n nas addr add 192.168.1.20/24 dev bond0
given_up() {
    ip netns exec pc cat /proc/net/bonding/bond0 | awk '/details actor/ { own = 1 }
        own && /port state/ { given_up += int($3 / 64) % 2; own = 0 } END { exit given_up != 2 }'
}
await 600 given_up
await 600 in_step nas 2
agent
report dead-partner 192.168.1.20 --code-file /tmp/code
kill $agent
gone pc switch nas

# All ports of a host, watched: one damages frames, one loses its link, one has no cable.
host pc far
cable 6 pc eth0 "$giga" far eth0 "$giga"
cable 7 pc eth1 "speed=2500 supported=$more,tp,autoneg advertised=$more,tp,autoneg partner=$more,autoneg" far eth1 "speed=2500"
ip -n pc addr add 192.168.1.10/24 dev eth0
(
    frames=0
    while :; do
        frames=$((frames + 3))
        set_port 12 crc=$frames
        usleep 500000
    done
) &
damage=$!
(
    sleep 4
    set_port 14 carrier=off
    sleep 1
    set_port 14 carrier=on
) &
report watched --watch 10
kill $damage
exit 0
