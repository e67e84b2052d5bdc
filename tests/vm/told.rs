//! What the kernel's own tools say of an interface, and the comparison with what weaklink says.

use std::collections::BTreeMap;

use serde_json::Value;
use weaklink::model::Outcome;
use weaklink::model::link::{Bond, BondPort, Duplex, Interface, InterfaceKind};
use weaklink::model::outcome::Fact;
use weaklink::units::BitRate;

use super::port::Port;

/// The words of `ip`, `ethtool` and `/proc` about one host.
pub(super) struct Told {
    /// By the command, such as `ethtool -i p1`.
    words: BTreeMap<String, String>,
    /// `ip -d -j link`, by interface.
    links: BTreeMap<String, Value>,
    /// Counters before and after weaklink's look.
    counters: [BTreeMap<String, Value>; 2],
}

fn by_name(json: &str) -> BTreeMap<String, Value> {
    let rows: Vec<Value> = serde_json::from_str(json.trim()).unwrap_or_else(|error| panic!("ip said {json:?}: {error}"));
    rows.into_iter().map(|row| (row["ifname"].as_str().unwrap_or_default().to_owned(), row)).collect()
}

/// Compares words and counts them.
pub(super) struct Compare<'a> {
    interface: &'a str,
    words: usize,
}

impl Compare<'_> {
    /// Weaklink's word beside the tool's; where the tool knows, weaklink must.
    pub(super) fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: &T, theirs: &T) {
        assert_eq!(ours, theirs, "{}: {what}, weaklink's on the left, the tool's on the right", self.interface);
        self.words += 1;
    }

    /// The same of a fact that may be missing at both.
    #[expect(clippy::needless_pass_by_value, reason = "the tool's word is made for this call")]
    pub(super) fn fact<T: PartialEq + std::fmt::Debug + Clone>(
        &mut self,
        what: &str,
        ours: &Outcome<Fact<T>>,
        theirs: Option<T>,
    ) {
        self.same(what, &ours.measured().map(|fact| fact.value.clone()), &theirs);
    }
}

impl Told {
    /// From the parts of a script.
    pub(super) fn new(told: &str, before: &str, after: &str) -> Self {
        let mut words: BTreeMap<String, String> = BTreeMap::new();
        let mut name = "";
        for line in told.lines() {
            if let Some(next) = line.strip_prefix("=== ") {
                name = next;
                continue;
            }
            let text = words.entry(name.to_owned()).or_default();
            text.push_str(line);
            text.push('\n');
        }
        let links = by_name(&words["ip"]);
        Self { words, links, counters: [by_name(before), by_name(after)] }
    }

    pub(super) fn words(&self, command: &str) -> &str {
        self.words.get(command).map_or("", String::as_str)
    }

    /// The value of a line `key: value` in the words of a command.
    pub(super) fn line(&self, command: &str, key: &str) -> Option<&str> {
        let mut lines = self.words(command).lines();
        lines.find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    /// The link modes under a heading of `ethtool`, which go on over several lines.
    pub(super) fn modes(&self, command: &str, heading: &str) -> Vec<&str> {
        let mut lines = self.words(command).lines().skip_while(|line| !line.trim().starts_with(heading));
        let first = lines.next().and_then(|line| line.split_once(':')).map(|(_, rest)| rest);
        let rest = lines.take_while(|line| !line.contains(':'));
        let all = first.into_iter().chain(rest).flat_map(str::split_whitespace);
        all.filter(|mode| mode.contains("base")).collect()
    }

    /// Panics where weaklink says of an interface what a tool does not; gives how many words were compared.
    pub(super) fn agrees(&self, it: &Interface) -> usize {
        let mut compare = Compare { interface: &it.name, words: 0 };
        self.ip(it, &mut compare);
        self.ethtool(it, &mut compare);
        self.count(it, &mut compare);
        if self.words.contains_key(&format!("ethtool -k {}", it.name)) {
            Port { told: self, name: &it.name }.agrees(it, &mut compare);
        }
        if it.kind == InterfaceKind::Bond {
            self.bonding(it.bond.as_ref().expect("a bond has a bond's facts"), &it.name, &mut compare);
        }
        compare.words
    }

    fn ip(&self, it: &Interface, compare: &mut Compare<'_>) {
        let row = self.links.get(&it.name).unwrap_or_else(|| panic!("ip knows no {}", it.name));
        compare.fact("mtu", &it.mtu, row["mtu"].as_u64().map(|mtu| weaklink::units::Mtu(mtu as u32)));
        let flags = row["flags"].as_array().map(Vec::as_slice).unwrap_or_default();
        let carrier = flags.iter().any(|flag| flag == "LOWER_UP");
        compare.same("carrier", &it.carrier, &Outcome::Measured(carrier));
        let kind = match row["linkinfo"]["info_kind"].as_str() {
            Some("bond") => InterfaceKind::Bond,
            Some("team") => InterfaceKind::Team,
            Some("vlan") => InterfaceKind::Vlan,
            Some("veth") => InterfaceKind::Veth,
            Some(other) => panic!("{}: a kind that the test does not know: {other}", it.name),
            // ip has no word for hardware; which is emulated the test knows.
            None => it.kind,
        };
        compare.same("kind", &it.kind, &kind);
        if let Outcome::Measured(nic) = &it.nic {
            compare.fact("hardware address", &nic.mac, row["address"].as_str().map(str::to_owned));
        }
        let changes = self.words(&format!("carrier_changes {}", it.name)).trim().parse().expect("the kernel counts them");
        compare.same("carrier changes", &it.carrier_changes, &Outcome::Measured(changes));
    }

    fn ethtool(&self, it: &Interface, compare: &mut Compare<'_>) {
        let command = format!("ethtool {}", it.name);
        let speed = self.line(&command, "Speed").and_then(|word| word.strip_suffix("Mb/s")?.parse().ok());
        compare.fact("speed", &it.speed_bps, speed.map(BitRate::from_mbit));
        let duplex = match self.line(&command, "Duplex") {
            Some("Full") => Some(Duplex::Full),
            Some("Half") => Some(Duplex::Half),
            _ => None,
        };
        compare.fact("duplex", &it.duplex, duplex);
        if let Outcome::Measured(autoneg) = &it.autoneg {
            compare.same("autoneg", &Some(autoneg.value), &self.line(&command, "Auto-negotiation").map(|word| word == "on"));
        }
        compare.fact("driver", &it.driver, self.line(&format!("ethtool -i {}", it.name), "driver").map(str::to_owned));
        if let Outcome::Measured(modes) = &it.modes {
            for (heading, ours) in [
                ("Supported link modes", &modes.supported_bps),
                ("Advertised link modes", &modes.advertised_bps),
                ("Link partner advertised link modes", &modes.partner_bps),
            ] {
                let number = |mode: &&str| mode.split("base").next().and_then(|number| number.parse().ok());
                let mut theirs: Vec<BitRate> =
                    self.modes(&command, heading).iter().filter_map(number).map(BitRate::from_mbit).collect();
                theirs.sort_unstable();
                theirs.dedup();
                compare.same(heading, ours, &theirs);
            }
        } else {
            compare.same("modes", &self.modes(&command, "Supported link modes").len(), &0);
        }
    }

    /// Counters go on counting, so each stands between those before and those after.
    fn count(&self, it: &Interface, compare: &mut Compare<'_>) {
        let ours = it.counters.measured().expect("this kernel counts");
        for (ours_name, way, theirs) in [
            ("rx_bytes", "rx", "bytes"),
            ("rx_packets", "rx", "packets"),
            ("rx_errors", "rx", "errors"),
            ("rx_dropped", "rx", "dropped"),
            ("multicast", "rx", "multicast"),
            ("rx_length_errors", "rx", "length_errors"),
            ("rx_crc_errors", "rx", "crc_errors"),
            ("rx_frame_errors", "rx", "frame_errors"),
            ("rx_missed_errors", "rx", "missed_errors"),
            ("tx_bytes", "tx", "bytes"),
            ("tx_packets", "tx", "packets"),
            ("tx_errors", "tx", "errors"),
            ("tx_dropped", "tx", "dropped"),
            ("collisions", "tx", "collisions"),
            ("tx_carrier_errors", "tx", "carrier_errors"),
        ] {
            let [before, after] =
                self.counters.each_ref().map(|all| all.get(&it.name).and_then(|row| row["stats64"][way][theirs].as_u64()));
            let (Some(before), Some(after)) = (before, after) else { continue };
            let ours = ours.get(ours_name).unwrap_or_else(|| panic!("{}: weaklink has no {ours_name}", it.name));
            assert!((before..=after).contains(&ours), "{}: {ours_name} {ours}, ip says {before} and {after}", it.name);
            compare.words += 1;
        }
    }

    fn bonding(&self, bond: &Bond, name: &str, compare: &mut Compare<'_>) {
        let row = &self.links[name]["linkinfo"]["info_data"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        compare.same("mode", &Some(bond.mode.clone()), &text(&row["mode"]));
        if let Some(policy) = &bond.hash_policy {
            compare.same("policy", &Some(policy.clone()), &text(&row["xmit_hash_policy"]));
        }
        let info = &row["ad_info"];
        if bond.mode == "802.3ad" {
            let number = |value: &Value| value.as_u64().map(|number| number as u32);
            compare.same("aggregator", &bond.active_aggregator, &number(&info["aggregator"]));
            compare.same("ports in it", &bond.active_ports, &number(&info["num_ports"]));
            compare.same("partner", &bond.partner_mac, &text(&info["partner_mac"]));
        }
        Self::settings(bond, row, compare);
        let proc = self.words(&format!("bonding {name}"));
        let (head, ports) = blocks(proc);
        let current = head.get("Currently Active Slave").map(String::as_str);
        compare.same("number of ports", &bond.ports.len(), &ports.len());
        for (port, told) in bond.ports.iter().zip(&ports) {
            compare.same("port", &port.name, &told["Slave Interface"]);
            if bond.mode == "active-backup" {
                compare.same("active port", &port.active, &Some(Some(port.name.as_str()) == current));
            }
            self.port(port, told, compare);
        }
    }

    /// How it is set up; a mode has its own settings, and of others nothing need be said.
    fn settings(bond: &Bond, row: &Value, compare: &mut Compare<'_>) {
        let settings = &bond.settings;
        let numbers = [
            ("miimon", settings.miimon_ms),
            ("updelay", settings.up_delay_ms),
            ("downdelay", settings.down_delay_ms),
            ("arp_interval", settings.arp_interval_ms),
            ("min_links", settings.min_links),
            ("lp_interval", settings.lp_interval_s),
            ("tlb_dynamic_lb", settings.tlb_dynamic.map(u32::from)),
            ("packets_per_slave", settings.packets_per_port),
        ];
        for (key, ours) in numbers.into_iter().filter_map(|(key, ours)| Some((key, u64::from(ours?)))) {
            let theirs = &row[key];
            compare.same(key, &Some(ours), &theirs.as_u64().or_else(|| theirs.as_bool().map(u64::from)));
        }
        let words = [
            ("primary", &settings.primary),
            ("fail_over_mac", &settings.fail_over_mac),
            ("ad_lacp_rate", &settings.lacp_rate),
            ("ad_select", &settings.ad_select),
        ];
        for (key, ours) in words.into_iter().filter_map(|(key, ours)| Some((key, ours.as_deref()?))) {
            compare.same(key, &Some(ours), &row[key].as_str());
        }
        if let Some(active) = settings.lacp_active {
            compare.same("ad_lacp_active", &Some(if active { "on" } else { "off" }), &row["ad_lacp_active"].as_str());
        }
        assert!(settings.miimon_ms == Some(100), "the script sets it");
        assert_eq!(settings.lacp_rate.is_some(), bond.mode == "802.3ad", "LACP has a rate: {settings:?}");
    }

    fn port(&self, port: &BondPort, told: &BTreeMap<String, String>, compare: &mut Compare<'_>) {
        let row = &self.links[&port.name]["linkinfo"]["info_slave_data"];
        let number = |value: &Value| value.as_u64().map(|number| number as u32);
        compare.same("port up", &port.up, &row["mii_status"].as_str().map(|word| word == "UP"));
        compare.same("port up in /proc", &port.up, &told.get("MII Status").map(|word| word == "up"));
        compare.same("failures", &port.failures, &row["link_failure_count"].as_u64());
        compare.same("permanent address", &port.permanent_mac.as_deref(), &row["perm_hwaddr"].as_str());
        compare.same("queue", &port.queue_id.map(u64::from), &row["queue_id"].as_u64());
        let speed = told.get("Speed").and_then(|word| word.strip_suffix(" Mbps")?.parse().ok()).map(BitRate::from_mbit);
        compare.same("port speed", &port.speed_bps, &speed);
        let duplex = match told.get("Duplex").map(String::as_str) {
            Some("full") => Some(Duplex::Full),
            Some("half") => Some(Duplex::Half),
            _ => None,
        };
        compare.same("port duplex", &port.duplex, &duplex);
        if told.contains_key("Aggregator ID") {
            compare.same("aggregator of the port", &port.aggregator, &number(&row["ad_aggregator_id"]));
            compare.same("our LACP state", &port.actor_state, &number(&row["ad_actor_oper_port_state"]));
            compare.same("partner's LACP state", &port.partner_state, &number(&row["ad_partner_oper_port_state"]));
            let churn = ["Actor Churn State", "Partner Churn State"].map(|key| told.get(key).cloned().unwrap_or_default());
            compare.same("churn", &port.churn, &Some(churn));
            let key = |key: &str| told.get(key).and_then(|word| word.parse().ok());
            compare.same("our key", &port.actor_key, &key("actor port key"));
            compare.same("partner's key", &port.partner_key, &key("partner oper key"));
            compare.same("partner's port", &port.partner_port, &key("partner port number"));
            compare.same("partner's system", &port.partner_system.as_ref(), &told.get("partner system mac address"));
        }
    }
}

/// The lines of a file of `/proc/net/bonding` before the first port, and those of each port; what each end says by LACP stands
/// there under `actor …` and `partner …`.
fn blocks(text: &str) -> (BTreeMap<String, String>, Vec<BTreeMap<String, String>>) {
    let mut all = vec![BTreeMap::new()];
    let mut end = "";
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "Slave Interface" => {
                all.push(BTreeMap::new());
                end = "";
            }
            "details actor lacp pdu" => end = "actor ",
            "details partner lacp pdu" => end = "partner ",
            _ => {}
        }
        let block: &mut BTreeMap<String, String> = all.last_mut().expect("there is one");
        block.insert(format!("{end}{}", key.trim()), value.trim().to_owned());
    }
    let head = all.remove(0);
    (head, all)
}
