//! The hash's port among the usable ones.

use super::frame::{self, ByteOrder, Frame};
use super::policy::Policy;
use super::release;
use crate::model::outcome::Outcome;

/// The port by which the bonding driver of a kernel sends a frame: `hash % number of ports`.
///
/// Stable for callers outside, such as a test on real kernels:
/// `weaklink::link::predicted_port(policy: &str, frame: &Frame, release: &str, ports: &[String]) -> Outcome<String>`.
///
/// `policy` is the kernel's word (`layer2`, `layer2+3`, `layer3+4`, `encap2+3`, `encap3+4`, `vlan+srcmac`), `release` the text of
/// `/proc/sys/kernel/osrelease`, and `ports` are the **usable** ports in the kernel's own order, that of `/proc/net/bonding`
/// and of sysfs `bonding/slaves`: with 802.3ad those of the active aggregator that are up, with balance-xor (and balance-tlb
/// without `tlb_dynamic_lb`) those that are up. It answers for this host's byte order.
///
/// Skipped with the reason where the port cannot be known: an unknown policy or release, no port, a policy that takes a random
/// number of the connection (`encap3+4`), or a kernel that may follow rules which give different ports.
pub fn predicted_port(policy: &str, frame: &Frame, release: &str, ports: &[String]) -> Outcome<String> {
    let Some(policy) = Policy::of(policy) else {
        return Outcome::skipped(format!("the transmit policy {policy} is none that weaklink knows"));
    };
    if ports.is_empty() {
        return Outcome::skipped("no port of the aggregation is usable");
    }
    if policy == Policy::Encap34 {
        return Outcome::skipped(
            "encap3+4 takes a random number that the kernel draws for each connection, so the port can only be measured",
        );
    }
    let candidates = release::rules(release);
    if candidates.is_empty() {
        return Outcome::skipped(format!("the kernel's release {release:?} does not tell which hash it computes"));
    }
    let hashes: Option<Vec<u32>> = candidates.iter().map(|rules| frame::hash(policy, frame, *rules, ByteOrder::HOST)).collect();
    let Some(hashes) = hashes else {
        return Outcome::skipped(format!(
            "the bonding driver of kernel {release} reads the ports from a wrong place (mended in 5.15.17, 5.16.3 and 5.17), so the port can only be measured"
        ));
    };
    let mut found: Vec<&String> = hashes.iter().filter_map(|hash| ports.get(*hash as usize % ports.len())).collect();
    found.dedup();
    match found[..] {
        [port] => Outcome::Measured(port.clone()),
        _ => Outcome::skipped(format!(
            "kernel {release} carries its distribution's changes, and the hash of {} differs between those that it may have; the port can only be measured",
            policy.word()
        )),
    }
}
