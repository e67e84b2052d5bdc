//! What kind of interface a name is.

use super::facts::LinkRow;
use super::tree::Tree;
use crate::model::link::InterfaceKind as Kind;

/// `ARPHRD_*` of linux/if_arp.h that `/sys/class/net/NAME/type` gives.
const LOOPBACK: &str = "772";
/// No link layer at all (tun, WireGuard), PPP, and tunnels: ipip, ip6tnl, sit, gre, ip6gre.
const TUNNELS: [&str; 7] = ["65534", "512", "768", "769", "776", "778", "823"];

/// Drivers of ports that a hypervisor makes up: the speed that they state is a constant.
const VIRTUAL: [&str; 12] = [
    "virtio_net",
    "vmxnet3",
    "hv_netvsc",
    "netvsc",
    "vif",
    "xen_netfront",
    "xen-netfront",
    "ena",
    "gve",
    "gvnic",
    "vmxnet",
    "ibmveth",
];

/// PCI subsystem vendors of network cards that are emulated: QEMU (Red Hat), VMware, Parallels, VirtualBox (Oracle).
const EMULATED: [&str; 4] = ["0x1af4", "0x15ad", "0x1ab8", "0x80ee"];

/// Intel's cards that QEMU imitates without a subsystem vendor of its own (its devices e1000e and igb): 82574L and 82576.
const IMITATED: [&str; 2] = ["0x10d3", "0x10c9"];

/// Whether a card is QEMU's imitation of one of Intel's: on a machine that is virtual itself (the processor's flag), with the
/// subsystem 8086:0000 that QEMU gives. Boards with the real chip have that number too, but they are no virtual machines.
fn imitated(tree: &Tree, file: impl Fn(&str) -> String) -> bool {
    let is = |part: &str, words: &[&str]| tree.read(&file(part)).is_ok_and(|word| words.contains(&word.as_str()));
    is("device/subsystem_vendor", &["0x8086"])
        && is("device/subsystem_device", &["0x0000"])
        && is("device/device", &IMITATED)
        && tree.read("/proc/cpuinfo").is_ok_and(|text| text.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The kind that the kernel's own word names (`IFLA_INFO_KIND`); none for a word that says nothing about it.
fn of_word(word: &str) -> Option<Kind> {
    Some(match word {
        "veth" | "netkit" | "vxcan" => Kind::Veth,
        "bond" => Kind::Bond,
        "team" => Kind::Team,
        // An internal port of Open vSwitch stands for the software switch, as on NAS systems that use it.
        "bridge" | "openvswitch" => Kind::Bridge,
        "vlan" => Kind::Vlan,
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" => Kind::Macvlan,
        "tun" | "wireguard" | "gre" | "gretap" | "ip6gre" | "ip6gretap" | "erspan" | "ip6erspan" | "vxlan" | "geneve"
        | "ipip" | "ip6tnl" | "sit" | "vti" | "vti6" | "xfrm" | "ppp" | "l2tpeth" | "gtp" | "bareudp" | "amt" | "ovpn" => {
            Kind::Tunnel
        }
        "dsa" => Kind::Physical,
        _ => return None,
    })
}

/// The kind that a driver's name tells (`ETHTOOL_GDRVINFO` names virtual devices too).
fn of_driver(driver: &str) -> Option<Kind> {
    if VIRTUAL.contains(&driver) {
        return Some(Kind::VirtualMachine);
    }
    match driver {
        "bonding" => Some(Kind::Bond),
        "802.1Q VLAN Support" => Some(Kind::Vlan),
        word => of_word(word).filter(|kind| *kind != Kind::Physical),
    }
}

/// Recognises an interface from the kernel's list, its driver's name, and its files.
pub(super) fn recognise(tree: &Tree, name: &str, row: Option<&LinkRow>, driver: Option<&str>) -> Kind {
    let file = |part: &str| format!("/sys/class/net/{name}/{part}");
    let hardware_type = tree.read(&file("type")).unwrap_or_default();
    if row.is_some_and(|row| row.loopback) || hardware_type == LOOPBACK {
        return Kind::Loopback;
    }
    let uevent = tree.read(&file("uevent")).unwrap_or_default();
    let devtype = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).unwrap_or_default();
    if devtype == "wlan" || tree.has(&file("wireless")) || tree.has(&file("phy80211")) {
        return Kind::Wifi;
    }
    let word = row.and_then(|row| row.kind.as_deref()).or(Some(devtype).filter(|word| !word.is_empty()));
    if let Some(kind) = word.and_then(of_word).or_else(|| driver.and_then(of_driver)) {
        return kind;
    }
    if tree.has(&file("bonding")) || tree.has(&format!("/proc/net/bonding/{name}")) {
        return Kind::Bond;
    }
    if tree.has(&file("bridge")) {
        return Kind::Bridge;
    }
    if tree.has(&format!("/proc/net/vlan/{name}")) {
        return Kind::Vlan;
    }
    if tree.has(&file("tun_flags")) || TUNNELS.contains(&hardware_type.as_str()) {
        return Kind::Tunnel;
    }
    if tree.has(&file("device")) {
        let maker = tree.read(&file("device/subsystem_vendor")).unwrap_or_default();
        let emulated = EMULATED.contains(&maker.as_str()) || imitated(tree, file);
        return if emulated { Kind::VirtualMachine } else { Kind::Physical };
    }
    Kind::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_and_drivers_name_the_kind() {
        let tree = Tree::new("/nonexistent");
        let row = |word: &str| LinkRow { kind: (!word.is_empty()).then(|| word.to_owned()), ..LinkRow::default() };
        for (word, driver, kind) in [
            ("veth", None, Kind::Veth),
            ("bond", None, Kind::Bond),
            ("team", None, Kind::Team),
            ("bridge", None, Kind::Bridge),
            ("openvswitch", None, Kind::Bridge),
            ("vlan", None, Kind::Vlan),
            ("macvlan", None, Kind::Macvlan),
            ("wireguard", None, Kind::Tunnel),
            ("tun", None, Kind::Tunnel),
            ("vxlan", None, Kind::Tunnel),
            ("", Some("virtio_net"), Kind::VirtualMachine),
            ("", Some("ena"), Kind::VirtualMachine),
            ("", Some("veth"), Kind::Veth),
            ("", Some("802.1Q VLAN Support"), Kind::Vlan),
            ("", Some("r8169"), Kind::Unknown),
            ("ifb", None, Kind::Unknown),
        ] {
            assert_eq!(recognise(&tree, "x", Some(&row(word)), driver), kind, "{word:?} {driver:?}");
        }
        let lo = LinkRow { loopback: true, ..LinkRow::default() };
        assert_eq!(recognise(&tree, "lo", Some(&lo), None), Kind::Loopback);
    }

    #[test]
    fn an_intel_card_that_qemu_imitates_is_no_port_with_a_cable() {
        for (device, subsystem, flags, kind) in [
            ("0x10d3", "0x0000", "fpu hypervisor sse", Kind::VirtualMachine),
            ("0x10d3", "0x0000", "fpu sse", Kind::Physical),
            ("0x10d3", "0xa01f", "fpu hypervisor sse", Kind::Physical),
            ("0x15f3", "0x0000", "fpu hypervisor sse", Kind::Physical),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = dir.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            write("proc/cpuinfo", &format!("flags\t\t: {flags}\n"));
            for (file, text) in [("subsystem_vendor", "0x8086"), ("subsystem_device", subsystem), ("device", device)] {
                write(&format!("sys/class/net/eth0/device/{file}"), &format!("{text}\n"));
            }
            assert_eq!(recognise(&Tree::new(dir.path()), "eth0", None, None), kind, "{device} {subsystem} {flags}");
        }
    }
}
