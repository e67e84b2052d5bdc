//! The interfaces below the one of the route, down to the ports.

use std::collections::VecDeque;

use super::facts::LinkRow;
use super::tree::{Tree, is_interface_name};
use crate::model::link::InterfaceKind as Kind;

/// More interfaces than this are not listed: a bridge of a container host has hundreds of ports.
const MOST: usize = 32;

/// What is known of this host's interfaces while they are joined.
pub(super) struct Host<'a> {
    /// The files.
    pub tree: &'a Tree,
    /// The kernel's list; empty when it could not be had.
    pub rows: &'a [LinkRow],
    /// The ports of bridges behind which the next hop is, by index; empty where no bridge knows it, or where all ports are meant.
    pub leading: &'a [u32],
}

impl Host<'_> {
    /// The kernel's row of a name.
    pub(super) fn row(&self, name: &str) -> Option<&LinkRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    fn by_index(&self, index: u32) -> Option<&LinkRow> {
        self.rows.iter().find(|row| row.index == index)
    }

    /// The ports of the master `name` in the kernel's list.
    fn ports(&self, name: &str) -> Vec<String> {
        let Some(master) = self.row(name) else { return Vec::new() };
        self.rows.iter().filter(|row| row.master == Some(master.index)).map(|row| row.name.clone()).collect()
    }

    /// Of the ports of the bridge `name` the one that leads to the next hop, else all.
    fn bridged(&self, name: &str) -> Vec<String> {
        let all = self.ports(name);
        let leads = |port: &String| self.row(port).is_some_and(|row| self.leading.contains(&row.index));
        let leading: Vec<String> = all.iter().filter(|port| leads(port)).cloned().collect();
        if leading.is_empty() { all } else { leading }
    }

    /// The interfaces directly below `name`.
    fn below(&self, name: &str, kind: Kind) -> Vec<String> {
        let ports = match kind {
            Kind::Bond | Kind::Team => self.ports(name),
            Kind::Bridge => self.bridged(name),
            Kind::Vlan | Kind::Macvlan => self.lower(name),
            Kind::Physical if self.row(name).and_then(|row| row.kind.as_deref()) == Some("dsa") => self.lower(name),
            _ => return Vec::new(),
        };
        let known = |ports: Vec<String>| (!ports.is_empty()).then_some(ports);
        known(ports).or_else(|| known(self.open_vswitch(name, kind))).unwrap_or_else(|| self.below_in_files(name, kind))
    }

    fn lower(&self, name: &str) -> Vec<String> {
        let lower = self.row(name).and_then(|row| row.lower).and_then(|index| self.by_index(index));
        lower.map(|row| row.name.clone()).into_iter().collect()
    }

    /// The outer ports of an Open vSwitch bridge. All bridges of a host share one datapath, so the right ports
    /// are those that the name or the hardware address points to (the bridge takes its port's address).
    fn open_vswitch(&self, name: &str, kind: Kind) -> Vec<String> {
        let Some(own) = self.row(name).filter(|row| kind == Kind::Bridge && row.kind.as_deref() == Some("openvswitch")) else {
            return Vec::new();
        };
        let ports: Vec<&LinkRow> =
            self.rows.iter().filter(|row| row.port_kind.as_deref() == Some("openvswitch") && row.kind != own.kind).collect();
        let names = |rows: Vec<&LinkRow>| rows.into_iter().map(|row| row.name.clone()).collect();
        if let Some(port) = ports.iter().find(|row| Some(row.name.as_str()) == name.strip_prefix("ovs_")) {
            return vec![port.name.clone()];
        }
        let same: Vec<&LinkRow> = ports.iter().copied().filter(|row| row.mac == own.mac).collect();
        names(if same.is_empty() { ports } else { same })
    }

    /// The same from files, where there is no netlink.
    fn below_in_files(&self, name: &str, kind: Kind) -> Vec<String> {
        let tree = self.tree;
        let dir = format!("/sys/class/net/{name}");
        // Since 3.9 every upper interface has a link to each lower one.
        let lower: Vec<String> =
            tree.names(&dir).iter().filter_map(|file| file.strip_prefix("lower_")).map(str::to_owned).collect();
        if !lower.is_empty() {
            return lower;
        }
        match kind {
            Kind::Bridge => tree.names(&format!("{dir}/brif")),
            Kind::Bond => {
                let bond = super::bond::collect(tree, name, &[]).unwrap_or_default();
                bond.ports.into_iter().map(|port| port.name).collect()
            }
            Kind::Vlan => {
                // "eth0.5  VID: 5 …" and below it "Device: eth0".
                let text = tree.read(&format!("/proc/net/vlan/{name}")).unwrap_or_default();
                let device = text.lines().find_map(|line| line.trim().strip_prefix("Device:"));
                device.map(|device| device.trim().to_owned()).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The names from `top` down to the ports, each once, `top` first. `kind_of` tells the kind of a name.
    pub(super) fn names(&self, top: &str, kind_of: impl Fn(&str) -> Kind) -> Vec<(String, Kind)> {
        let mut stack: Vec<(String, Kind)> = Vec::new();
        let mut next = VecDeque::from([top.to_owned()]);
        while let Some(name) = next.pop_front() {
            if stack.len() == MOST {
                break;
            }
            if stack.iter().any(|(seen, _)| *seen == name) || !is_interface_name(&name) {
                continue;
            }
            let kind = kind_of(&name);
            let mut below: Vec<(String, Kind)> = self
                .below(&name, kind)
                .into_iter()
                .filter(|port| is_interface_name(port))
                .map(|port| (kind_of(&port), port))
                .map(|(kind, port)| (port, kind))
                .collect();
            // Of a bridge's ports the ones with a cable first: the rest may be cut off.
            below.sort_by_key(|(_, kind)| kind.speed_is_no_evidence());
            next.extend(below.into_iter().map(|(port, _)| port));
            stack.push((name, kind));
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(index: u32, name: &str, kind: &str, master: u32, lower: u32) -> LinkRow {
        let some = |n: u32| (n > 0).then_some(n);
        LinkRow {
            index,
            name: name.into(),
            kind: (!kind.is_empty()).then(|| kind.into()),
            master: some(master),
            lower: some(lower),
            mac: vec![index as u8],
            ..LinkRow::default()
        }
    }

    fn stack(rows: &[LinkRow], top: &str) -> Vec<String> {
        leading_stack(rows, top, &[])
    }

    fn leading_stack(rows: &[LinkRow], top: &str, leading: &[u32]) -> Vec<String> {
        let tree = Tree::new("/nonexistent");
        let host = Host { tree: &tree, rows, leading };
        let kind_of = |name: &str| match host.row(name).and_then(|row| row.kind.as_deref()) {
            None => Kind::Physical,
            Some(_) => super::super::kind::recognise(&tree, name, host.row(name), None),
        };
        host.names(top, kind_of).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_vlan_on_a_bond_leads_to_both_ports() {
        let rows = [
            row(1, "eth0", "", 3, 0),
            row(2, "eth1", "", 3, 0),
            row(3, "bond0", "bond", 0, 0),
            row(4, "bond0.7", "vlan", 0, 3),
            row(5, "eth2", "", 0, 0),
        ];
        assert_eq!(stack(&rows, "bond0.7"), ["bond0.7", "bond0", "eth0", "eth1"]);
        assert_eq!(stack(&rows, "eth2"), ["eth2"]);
    }

    #[test]
    fn a_bridge_lists_ports_with_a_cable_before_those_of_containers() {
        let mut rows = vec![row(1, "br0", "bridge", 0, 0)];
        rows.extend((2..200).map(|n| row(n, &format!("veth{n}"), "veth", 1, 0)));
        rows.push(row(200, "eth0", "", 1, 0));
        let names = stack(&rows, "br0");
        assert_eq!(names[..2], ["br0", "eth0"]);
        assert_eq!(names.len(), MOST);
    }

    #[test]
    fn of_a_bridge_the_port_behind_which_the_next_hop_is_stands_for_all() {
        let rows = [
            row(1, "br0", "bridge", 0, 0),
            row(2, "eth0", "", 1, 0),
            row(3, "eth1", "", 1, 0),
            row(4, "bond0", "bond", 1, 0),
            row(5, "eth2", "", 4, 0),
            row(6, "tap0", "tun", 1, 0),
            row(7, "br0.5", "vlan", 0, 1),
        ];
        assert_eq!(leading_stack(&rows, "br0", &[3]), ["br0", "eth1"]);
        assert_eq!(leading_stack(&rows, "br0.5", &[4]), ["br0.5", "br0", "bond0", "eth2"]);
        // What is behind no port of this bridge says nothing of it.
        assert_eq!(leading_stack(&rows, "br0", &[99, 5]).len(), 6);
    }

    #[test]
    fn a_circle_of_interfaces_ends() {
        let rows = [row(1, "a", "vlan", 0, 2), row(2, "b", "vlan", 0, 1)];
        assert_eq!(stack(&rows, "a"), ["a", "b"]);
    }

    #[test]
    fn an_open_vswitch_bridge_leads_to_the_port_that_it_is_named_after_or_shares_its_address_with() {
        let mut rows = [
            row(1, "ovs-system", "openvswitch", 0, 0),
            row(2, "eth0", "", 1, 0),
            row(3, "eth1", "", 1, 0),
            row(4, "ovs_eth0", "openvswitch", 0, 0),
            row(5, "br9", "openvswitch", 0, 0),
        ];
        for at in [1, 2] {
            rows[at].port_kind = Some("openvswitch".into());
        }
        assert_eq!(stack(&rows, "ovs_eth0"), ["ovs_eth0", "eth0"]);
        assert_eq!(stack(&rows, "br9"), ["br9", "eth0", "eth1"]);
        rows[4].mac = rows[2].mac.clone();
        assert_eq!(stack(&rows, "br9"), ["br9", "eth1"]);
    }
}
