# Which port of an aggregation each of many random flows leaves by: three ports, so that a wrong remainder shows.
. /lib.sh
load bonding veth 8021q
seed=0

pass() { # NAME VLANS...: flows over bond0 and VLANs on it
    local name=$1
    shift
    seed=$((seed + 1))
    for vlan; do
        ip -n pc link add link bond0 name "bond0.$vlan" type vlan id "$vlan"
        ip -n pc link set "bond0.$vlan" up
    done
    part "$name state"
    ip netns exec pc cat /sys/class/net/bond0/address /proc/net/bonding/bond0
    part "$name flows"
    ip netns exec pc env WEAKLINK_VM_PART="flows $seed p1,p2,p3 $*" link_vm --exact plays_a_part --nocapture --test-threads=1
    say "$name: $?"
    gone pc nas
}

part release
uname -r

for policy in layer2 layer2+3 layer3+4 encap2+3 encap3+4; do
    hosts 3 pc nas
    ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" balance-xor xmit_hash_policy $policy
    await 300 carrier pc 3
    pass "balance-xor $policy" 20 21
done
# Each VLAN has its port there.
hosts 3 pc nas
ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" balance-xor xmit_hash_policy vlan+srcmac
await 300 carrier pc 3
pass "balance-xor vlan+srcmac" 20 21 22 23 24 25 26 27

for policy in layer2+3 layer3+4; do
    hosts 3 pc nas
    ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" 802.3ad xmit_hash_policy $policy
    ADDRESS=02:00:00:00:00:20 bond nas "p1 p2 p3" 802.3ad xmit_hash_policy $policy
    await 600 in_step pc 3
    pass "802.3ad $policy" 20
done

hosts 3 pc nas
ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" balance-tlb tlb_dynamic_lb 0 xmit_hash_policy layer3+4
await 300 carrier pc 3
pass "balance-tlb layer3+4" 20

hosts 3 pc nas
ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" balance-xor xmit_hash_policy layer3+4
await 300 carrier pc 3
ip -n nas link set p2 down
await 300 carrier pc 2
pass "cable out layer3+4" 20

for mode in active-backup broadcast balance-rr; do
    hosts 3 pc nas
    ADDRESS=02:00:00:00:00:10 bond pc "p1 p2 p3" $mode
    await 300 carrier pc 3
    pass $mode
done
exit 0
