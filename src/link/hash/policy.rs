//! The transmit policies and what each of them looks at.

/// A transmit policy (`xmit_hash_policy`), as the kernel's bonding documentation names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Both MAC addresses, and since 3.17 the EtherType.
    Layer2,
    /// The same, with both IP addresses.
    Layer23,
    /// Both IP addresses and both ports.
    Layer34,
    /// As `Layer23`, of the innermost headers of a tunnel.
    Encap23,
    /// As `Layer34`, of the innermost headers of a tunnel; a socket's own random number goes before them.
    Encap34,
    /// The VLAN and the own MAC address (5.12).
    VlanSrcMac,
}

impl Policy {
    /// The policy of the kernel's word, such as `layer3+4`.
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "layer2" => Self::Layer2,
            "layer2+3" => Self::Layer23,
            "layer3+4" => Self::Layer34,
            "encap2+3" => Self::Encap23,
            "encap3+4" => Self::Encap34,
            "vlan+srcmac" => Self::VlanSrcMac,
            _ => return None,
        })
    }

    /// The kernel's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Layer2 => "layer2",
            Self::Layer23 => "layer2+3",
            Self::Layer34 => "layer3+4",
            Self::Encap23 => "encap2+3",
            Self::Encap34 => "encap3+4",
            Self::VlanSrcMac => "vlan+srcmac",
        }
    }

    /// Whether several connections between the same two addresses can take different ports.
    pub const fn tells_connections_apart(self) -> bool {
        matches!(self, Self::Layer34 | Self::Encap34)
    }

    /// Whether the IP addresses count.
    pub const fn tells_addresses_apart(self) -> bool {
        !matches!(self, Self::Layer2 | Self::VlanSrcMac)
    }

    /// What it looks at, for people: `the two MAC addresses`.
    pub const fn looks_at(self) -> &'static str {
        match self {
            Self::Layer2 => "the two MAC addresses",
            Self::Layer23 => "the two MAC and the two IP addresses",
            Self::Layer34 => "the two IP addresses and the two ports",
            Self::Encap23 => "the two MAC addresses and the innermost two IP addresses",
            Self::Encap34 => "a random number of each connection, or the innermost IP addresses and ports",
            Self::VlanSrcMac => "the VLAN and the own MAC address",
        }
    }
}
