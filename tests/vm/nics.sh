# Ports: emulated ones, and those of labnic, which link at what they are told.
. /lib.sh
load virtio_net e1000e vmxnet3
modprobe labnic pairs=6 driver=igc

port() { # NUMBER WORDS...: a port, what ethtool shall say of it, and its cable
    local number=$1
    shift
    echo "$*" >/sys/kernel/debug/labnic/lab$((2 * number))
    for end in 0 1; do ip link set lab$((2 * number + end)) up; done
}
all=10half,10,100half,100,1000,2500,tp,autoneg
# The partner offers no more than 1G.
port 0 speed=1000 supported=$all,pause advertised=10,100,1000,2500,tp,autoneg,pause partner=10,100,1000,autoneg
# Both offer 2.5G, and it came up at 100 Mbit/s with one way at a time.
port 1 speed=100 duplex=half mdix=on supported=$all advertised=$all partner=100half,100,1000,2500,autoneg
# A speed that was set by hand.
port 2 speed=100 autoneg=off supported=$all advertised=100,tp
# A cable of copper with a plug at each end; it negotiates nothing.
port 3 speed=10000 autoneg=off port=da supported=1000,10000cr,fibre advertised=10000cr,fibre
# A cable that was out and in again, three times; and damaged frames.
port 4 speed=2500 crc=231 align=7
for _ in 1 2 3; do
    echo carrier=off >/sys/kernel/debug/labnic/lab8
    ip link show lab8 >&2
    echo carrier=on >/sys/kernel/debug/labnic/lab8
    ip link show lab8 >&2
done
# No cable.
port 5 carrier=off

for name in $(ls /sys/class/net | grep eth); do ip link set "$name" up; done
ready() { [ "$(cat /sys/class/net/eth*/carrier | grep -c 1)" = 3 ]; }
await 300 ready
look ports all "k a g c l"

# A look that lasts, while one cable comes loose and another damages frames.
(
    frames=0
    while :; do
        frames=$((frames + 40))
        echo crc=$frames >/sys/kernel/debug/labnic/lab4
        for state in off on; do
            echo carrier=$state >/sys/kernel/debug/labnic/lab8
            usleep 150000
        done
    done
) &
cable=$!
part watched
weaklink link --watch 3 --json
say "watched: $?"
kill $cable

# A test over the port that links below what it can, while the cable damages frames.
for host in pc nas; do
    ip netns add $host
    ip -n $host link set lo up
done
ip link set lab0 netns pc
ip link set lab1 netns nas
ip -n pc link set lab0 up
ip -n nas link set lab1 up
ip -n pc addr add 10.77.0.1/24 dev lab0
ip -n nas addr add 10.77.0.2/24 dev lab1
ip netns exec nas weaklink serve --code-file /tmp/code >&2 &
agent=$!
await 300 test -s /tmp/code
# As long as it runs: the test tells of what grew during its passes.
(
    frames=0
    while :; do
        frames=$((frames + 40))
        echo crc=$frames >/sys/kernel/debug/labnic/lab1
        usleep 100000
    done
) &
cable=$!
part throughput
ip netns exec pc weaklink throughput 10.77.0.2 --code-file /tmp/code --upload -P 1 -t 3 --json
say "throughput: $?"
kill $cable

# A test during which the cable comes loose again and again, of which the driver writes into the kernel's log.
for number in 0 1; do echo says=on >/sys/kernel/debug/labnic/lab$number; done
(
    while :; do
        for state in off on; do
            echo carrier=$state >/sys/kernel/debug/labnic/lab1
            if [ $state = off ]; then usleep 100000; else usleep 1200000; fi
        done
    done
) &
cable=$!
part loose
ip netns exec pc weaklink throughput 10.77.0.2 --code-file /tmp/code --upload -P 1 -t 3 --json
say "loose: $?"
kill $cable $agent
exit 0
