//! What `ethtool` says of a port beyond its speed, beside weaklink's words.

use weaklink::model::link::{Interface, InterfaceKind};
use weaklink::model::nic::{Channels, Coalescing, Mdi, Nic, Pause, PortKind, Rings};
use weaklink::model::{Fact, Outcome};

use super::told::{Compare, Told};

/// The features of which weaklink tells, by the kernel's names, and the older name under which `ethtool -k` shows some of them.
const FEATURES: [(&str, &str); 14] = [
    ("rx-checksum", "rx-checksumming"),
    ("tx-checksum-ipv4", "tx-checksum-ipv4"),
    ("tx-checksum-ipv6", "tx-checksum-ipv6"),
    ("tx-checksum-ip-generic", "tx-checksum-ip-generic"),
    ("tx-scatter-gather", "tx-scatter-gather"),
    ("tx-tcp-segmentation", "tx-tcp-segmentation"),
    ("tx-tcp6-segmentation", "tx-tcp6-segmentation"),
    ("tx-generic-segmentation", "generic-segmentation-offload"),
    ("tx-udp-segmentation", "tx-udp-segmentation"),
    ("rx-gro", "generic-receive-offload"),
    ("rx-gro-hw", "rx-gro-hw"),
    ("rx-lro", "large-receive-offload"),
    ("rx-hashing", "receive-hashing"),
    ("tx-vlan-hw-insert", "tx-vlan-offload"),
];

/// The words of a port of which every `ethtool` command was asked.
pub(super) struct Port<'a> {
    pub(super) told: &'a Told,
    pub(super) name: &'a str,
}

impl Port<'_> {
    pub(super) fn agrees(&self, it: &Interface, compare: &mut Compare<'_>) {
        let offloads = it.offloads.measured().expect("this kernel tells them");
        for (ours, theirs) in FEATURES {
            // `off [fixed]`: the driver does not have it. `on [fixed]`, `off`, `off [requested on]`: it has.
            let word = self.line("ethtool -k", theirs).filter(|word| !word.starts_with("off [fixed]"));
            compare.same(ours, &offloads.get(ours).copied(), &word.map(|word| word.starts_with("on")));
        }
        let nic = it.nic.measured().expect("a port's facts");
        if it.kind == InterfaceKind::Physical {
            self.plug(nic, compare);
        }
        self.link(nic, compare);
        self.queues(nic, compare);
    }

    fn line(&self, command: &str, key: &str) -> Option<&str> {
        self.told.line(&format!("{command} {}", self.name), key)
    }

    fn link(&self, nic: &Nic, compare: &mut Compare<'_>) {
        let command = format!("ethtool {}", self.name);
        if let Outcome::Measured(modes) = &nic.mode_names {
            for (heading, ours) in [
                ("Supported link modes", &modes.value.supported),
                ("Advertised link modes", &modes.value.advertised),
                ("Link partner advertised link modes", &modes.value.partner),
            ] {
                let ours: Vec<&str> = ours.iter().map(String::as_str).filter(|mode| mode.contains("base")).collect();
                compare.same(heading, &ours, &self.told.modes(&command, heading));
            }
        }
        let word = |key: &str| self.line("ethtool -i", key).filter(|word| !word.is_empty()).map(str::to_owned);
        compare.fact("version", &nic.driver_version, word("version"));
        compare.fact("firmware", &nic.firmware, word("firmware-version").filter(|word| word != "N/A"));
        compare.fact("bus address", &nic.bus_address, word("bus-info"));
        let set = |key: &str| self.line("ethtool -a", key).map(|word| word == "on");
        let pause = (|| Some((set("Autonegotiate")?, set("RX")?, set("TX")?)))();
        let ours = measured(&nic.pause).map(|Pause { autoneg, rx, tx, .. }| (*autoneg, *rx, *tx));
        compare.same("flow control", &ours, &pause);
    }

    /// What only a port with a plug has.
    fn plug(&self, nic: &Nic, compare: &mut Compare<'_>) {
        let port = match self.line("ethtool", "Port") {
            Some("Twisted Pair") => Some(PortKind::TwistedPair),
            Some("FIBRE") => Some(PortKind::Fibre),
            Some("Direct Attach Copper") => Some(PortKind::DirectAttach),
            Some("Other") => Some(PortKind::Other),
            Some("None") => Some(PortKind::None),
            Some("MII") => Some(PortKind::Mii),
            _ => None,
        };
        compare.fact("connector", &nic.port, port);
        let mdi = self.line("ethtool", "MDI-X").and_then(|word| match word.split_whitespace().next() {
            Some("on") => Some(Mdi::Crossed),
            Some("off") => Some(Mdi::Straight),
            _ => None,
        });
        compare.fact("crossing", &nic.mdi, mdi);
    }

    /// The numbers of a key in the answer of a command: of what is possible, then of what is set; 0 where it says `n/a`.
    fn both(&self, command: &str, key: &str) -> Option<[u32; 2]> {
        let text = self.told.words(&format!("{command} {}", self.name));
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'));
        let numbers: Vec<u32> = lines.map(|word| word.trim().parse().unwrap_or(0)).collect();
        numbers.try_into().ok()
    }

    fn queues(&self, nic: &Nic, compare: &mut Compare<'_>) {
        let ring = |key| self.both("ethtool -g", key);
        let rings = ring("RX").zip(ring("TX"));
        let rings = rings.map(|([rx_max, rx], [tx_max, tx])| Rings { rx, rx_max, tx, tx_max });
        compare.fact("rings", &nic.rings, rings);
        let channel = |key| self.both("ethtool -l", key);
        let channels = channel("RX").zip(channel("TX")).zip(channel("Combined"));
        let channels = channels.map(|(([rx_max, rx], [tx_max, tx]), [combined_max, combined])| Channels {
            rx,
            tx,
            combined,
            rx_max,
            tx_max,
            combined_max,
        });
        compare.fact("queues", &nic.channels, channels);
        // "n/a" of a number is none, and so is a number of a driver that answers nothing.
        let number = |key: &str| self.line("ethtool -c", key).and_then(|word| word.parse::<u32>().ok());
        if let Outcome::Measured(Fact { value: Coalescing { rx_us, rx_frames, tx_us, tx_frames, .. }, .. }) = &nic.coalescing {
            for (key, ours) in [("rx-usecs", rx_us), ("rx-frames", rx_frames), ("tx-usecs", tx_us), ("tx-frames", tx_frames)] {
                compare.same(key, ours, &number(key));
            }
        } else {
            compare.same("coalescing", &None, &number("rx-usecs"));
        }
    }
}

fn measured<T>(fact: &Outcome<Fact<T>>) -> Option<&T> {
    fact.measured().map(|fact| &fact.value)
}
