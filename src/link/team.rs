//! The team driver: its ports are known, its hash is a program that teamd wrote.
//!
//! Of a team the kernel's list tells the ports (netlink, and `lower_*` of sysfs); runner and hash stand with teamd alone, which answers
//! `teamdctl NAME state dump` in JSON. teamd's runners (teamd.conf(5)): `broadcast`, `roundrobin`, `random`, `activebackup`,
//! `loadbalance` and `lacp`. The last two hash with a BPF program over the fields of `runner.tx_hash`: `eth` (MAC addresses), `vlan`,
//! `ipv4`, `ipv6`, `ip` and `l3` (addresses), `tcp`, `udp`, `sctp` and `l4` (ports). The program's arithmetic is the library's own and
//! teamd may move hashes between ports by load (`tx_balancer`), so a port cannot be told beforehand, only measured.

use serde_json::Value;

/// More ports than these are not listed.
const PORTS: usize = 64;

/// Why the port of a connection is not told.
pub(super) fn not_told(name: &str) -> String {
    format!(
        "{name} is a team: teamd's own program chooses the port (loadbalance and lacp hash by runner.tx_hash, roundrobin and random change it with \
         every packet), so it can only be measured"
    )
}

/// What teamd says of a team, as far as it matters for which port is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamState {
    /// The runner, such as `lacp`.
    pub runner: String,
    /// The ports with their links, and whether each is in the active aggregator (lacp) or is the active port (activebackup).
    pub ports: Vec<TeamPort>,
}

/// One port of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamPort {
    /// The interface.
    pub name: String,
    /// Whether its link is up.
    pub up: Option<bool>,
    /// Whether it carries traffic, where the runner chooses among the ports.
    pub selected: Option<bool>,
    /// The partner's system address under LACP; all zero where none answers.
    pub partner: Option<String>,
}

/// Reads what `teamdctl NAME state dump` prints; none when it is no such JSON.
///
/// Foreign words: bounded in number, and nothing of it is more than a claim.
pub fn from_teamdctl(text: &str) -> Option<TeamState> {
    let all: Value = serde_json::from_str(text).ok()?;
    let runner = all.pointer("/setup/runner_name")?.as_str()?.to_owned();
    let active = all.pointer("/runner/active_port").and_then(Value::as_str);
    let ports = all.get("ports").and_then(Value::as_object).into_iter().flatten().take(PORTS);
    let port = |(name, told): (&String, &Value)| TeamPort {
        name: name.clone(),
        up: told.pointer("/link/up").and_then(Value::as_bool),
        selected: match runner.as_str() {
            "lacp" => told.pointer("/runner/aggregator/selected").and_then(Value::as_bool),
            "activebackup" => active.map(|active| active == name),
            _ => None,
        },
        partner: told.pointer("/runner/partner_lacpdu_info/system").and_then(Value::as_str).map(str::to_owned),
    };
    let ports = ports.map(port).collect();
    Some(TeamState { runner, ports })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LACP: &str = r#"{"setup":{"runner_name":"lacp","kernel_team_mode_name":"loadbalance"},"runner":{"active":true},
        "ports":{"eth1":{"link":{"up":true,"speed":1000},"runner":{"aggregator":{"id":3,"selected":true},
        "partner_lacpdu_info":{"system":"02:00:00:00:09:01","key":17}}},
        "eth2":{"link":{"up":false},"runner":{"aggregator":{"id":0,"selected":false},"partner_lacpdu_info":{"system":"00:00:00:00:00:00"}}}}}"#;

    #[test]
    fn the_state_of_an_lacp_team_is_read() {
        let team = from_teamdctl(LACP).expect("a state");
        let port = |name: &str, up, partner: &str| TeamPort {
            name: name.to_owned(),
            up: Some(up),
            selected: Some(up),
            partner: Some(partner.to_owned()),
        };
        assert_eq!(team.runner, "lacp");
        assert_eq!(team.ports, [port("eth1", true, "02:00:00:00:09:01"), port("eth2", false, "00:00:00:00:00:00")]);
    }

    #[test]
    fn the_active_port_of_an_active_backup_team_is_told() {
        let text = r#"{"setup":{"runner_name":"activebackup"},"runner":{"active_port":"eth2"},"ports":{"eth1":{},"eth2":{}}}"#;
        let selected: Vec<_> = from_teamdctl(text).expect("a state").ports.iter().map(|port| port.selected).collect();
        assert_eq!(selected, [Some(false), Some(true)]);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in ".{0,200}") {
            let _ = from_teamdctl(&text);
        }
    }
}
