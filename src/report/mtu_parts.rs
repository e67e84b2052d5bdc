//! What else is known around the largest packet: TCP's view, streams, gain, echo, services, and every probe.

use super::machines::{ENDS, cell};
use super::view::{Table, View, or_unknown};
use crate::model::mtu::{
    EchoMethod, EchoPath, MtuSection, PathMtu, Probe, ProbeFate, SegmentCost, ServicePath, ServiceProbe, TcpEnd, tcp_headers,
};
use crate::model::{Document, Outcome};

/// What the two kernels believe.
pub(super) fn tcp(document: &Document, section: &MtuSection, view: &mut View) {
    let Some(handshake) = section.handshake.measured() else { return };
    let mut table = Table::new(&["TCP", "PC", "NAS"]);
    let mut row = |name: &str, show: &dyn Fn(&TcpEnd) -> String| {
        let cells = ENDS.iter().map(|role| cell(handshake.of(*role), show));
        table.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    row("asks for segments of", &|end| end.advertised_mss_bytes.to_string());
    row("may send segments of", &|end| end.granted_mss_bytes().to_string());
    row("believes in a path MTU of", &|end| or_unknown(end.pmtu));
    row("options in each segment", &|end| format!("{} bytes", end.option_bytes));
    let probing = |role| {
        let setting = document.hosts.of(role).measured()?.tcp.measured()?.mtu_probing?;
        Some(match setting {
            0 => "no (0)".to_owned(),
            1 => "after timeouts (1)".to_owned(),
            other => format!("always ({other})"),
        })
    };
    let cells = ENDS.iter().map(|role| or_unknown(probing(*role)));
    table.rows.push(std::iter::once("searches smaller sizes".to_owned()).chain(cells).collect());
    view.table(table);
}

/// A stream of large segments beside one of segments that fit.
pub(super) fn streams(section: &MtuSection, view: &mut View) {
    let mut table = Table::new(&["stream", "packets", "moved", "rate"]);
    for (name, stream) in [("as the hosts send", &section.unclamped), ("that fits the path", &section.clamped)] {
        table.rows.extend(stream.measured().map(|stream| {
            vec![
                format!("{} {name}", stream.direction.arrow()),
                stream.packet.map(|packet| format!("{packet} bytes")).unwrap_or_default(),
                format!("{} in {}", stream.bytes, stream.elapsed_us),
                format!("{} = {}", stream.goodput_bps, stream.goodput_bps.bytes()),
            ]
        }));
    }
    view.table(table);
}

/// What large packets gain.
pub(super) fn gain(section: &MtuSection, view: &mut View) {
    let mut table = Table::new(&["direction", "packets", "rate", "sender's core s/GB", "receiver's core s/GB"]);
    for gain in section.gain.measured().into_iter().flatten() {
        let row = |cost: &SegmentCost| {
            let cpu = |seconds: Option<f64>| seconds.filter(|s| s.is_finite()).map(|s| format!("{s:.2}")).unwrap_or_default();
            vec![
                gain.direction.arrow().to_owned(),
                format!("{} bytes", cost.packet),
                format!("{} = {}", cost.goodput_bps, cost.goodput_bps.bytes()),
                cpu(cost.sender_cpu_s_per_gb),
                cpu(cost.receiver_cpu_s_per_gb),
            ]
        };
        table.rows.extend([row(&gain.large), row(&gain.common)]);
    }
    view.table(table);
}

/// How echo was sent, and how it came back.
pub(super) fn echo(echo: &EchoPath) -> Vec<(String, String)> {
    let method = match echo.method {
        EchoMethod::PingSocket => "a ping socket, which needs no privilege",
        EchoMethod::RawSocket => "a raw socket (CAP_NET_RAW)",
    };
    let pieces = echo.reply_fragment.filter(|piece| *piece < echo.path.mtu);
    let pieces = pieces
        .map(|piece| format!("in fragments of {piece} bytes, the MTU of the NAS's interface or of a router next to it"))
        .unwrap_or_default();
    vec![("echo sent by".to_owned(), method.to_owned()), ("answers come back".to_owned(), pieces)]
}

/// Whether a reason says that a port is closed.
fn closed(why: &str) -> bool {
    ["nobody listens", "refuse"].iter().any(|word| why.contains(word))
}

/// What TCP services of the NAS say.
pub(super) fn services(document: &Document, section: &MtuSection, view: &mut View) {
    let mut table =
        Table::new(&["service", "packets agreed on", "largest tried", "acknowledged", "resent", "PC's path MTU", "time"]);
    let name = |probe: &ServiceProbe| match &probe.service {
        Some(service) => format!("{service} (port {})", probe.port),
        None => format!("port {}", probe.port),
    };
    let link = document.measurements.link.measured().and_then(|links| links.pc.measured());
    let headers = tcp_headers(link.is_some_and(|link| link.local.is_ipv6()));
    for probe in section.services.measured().into_iter().flatten() {
        let show = |f: &dyn Fn(&ServicePath) -> String| probe.result.measured().map(f).unwrap_or_default();
        table.rows.push(vec![
            name(probe),
            match &probe.result {
                Outcome::Measured(path) => path.end.granted_mss_bytes().saturating_add(headers).to_string(),
                silent if silent.why().is_some_and(closed) => "nobody listens".to_owned(),
                Outcome::Failed(_) => "no answer".to_owned(),
                Outcome::Skipped(_) => "not asked".to_owned(),
            },
            show(&|path| path.packet.map_or_else(|| "none".to_owned(), |packet| packet.to_string())),
            show(&|path| match (path.packet, path.acknowledged) {
                (None, _) => String::new(),
                (_, true) => "yes".to_owned(),
                (_, false) => "no".to_owned(),
            }),
            show(&|path| path.retransmits.to_string()),
            show(&|path| match (path.end.pmtu, path.pmtu_after) {
                (Some(before), Some(after)) if before != after => format!("{before}, then {after}"),
                (before, after) => or_unknown(after.or(before)),
            }),
            show(&|path| path.elapsed_us.to_string()),
        ]);
    }
    view.table(table);
}

/// Every probe of one path in the order of sending.
pub(super) fn trace(name: &str, path: &PathMtu, view: &mut View) {
    let mut table = Table::new(&[&format!("{name}, probe"), "at", "size", "outcome", "RTT"]);
    table.rows.extend(path.trace.iter().enumerate().map(|(at, probe)| probe_row(at, probe)));
    view.whole_table(table);
}

fn probe_row(at: usize, probe: &Probe) -> Vec<String> {
    let fate = match probe.fate {
        ProbeFate::Acknowledged => "arrived",
        ProbeFate::Lost => "lost",
        ProbeFate::RefusedLocally => "refused by our own system",
        ProbeFate::RefusedByRouter => "refused by a router",
    };
    vec![
        (at + 1).to_string(),
        probe.at_us.to_string(),
        probe.size.to_string(),
        fate.to_owned(),
        probe.rtt_us.map(|rtt| rtt.to_string()).unwrap_or_default(),
    ]
}
