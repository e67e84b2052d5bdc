//! A window that is too small for the path.

use super::super::limits;
use super::super::seen::{Load, Seen, Sums, Way};
use super::super::words::percent;
use super::list::{Hit, Rule, RuleDoc};
use super::mtu_advice;
use crate::model::finding::Where;
use crate::model::throughput::Pass;
use crate::units::{ByteSize, Elapsed};

const CODE: &str = "network.tcp-window";

pub(super) const RULES: &[Rule] = &[Rule {
    doc: RuleDoc {
        code: CODE,
        title: "The TCP window limits the rate",
        meaning: "A stream can have only one window of data on its way per round trip. With a small window or a long path the rate is window divided by round-trip time, flat and without loss, and looks like a slow cable.",
        detected: "The sender's kernel was stopped by the receiver's window (or its own send buffer) for 15 % of the busy time and more, or the rate equals window over idle round-trip time. A receiver without processor time closes its window too: that is then the cause.",
        fix: "Raise the largest buffers (tcp_rmem, rmem_max at the receiver, tcp_wmem at the sender), leave window scaling on, or use several streams.",
    },
    check,
}];

fn check(seen: &Seen<'_>) -> Vec<Hit> {
    if seen.local() {
        return Vec::new();
    }
    seen.ways.iter().filter_map(|way| windowed(seen, way)).collect()
}

fn windowed(seen: &Seen<'_>, way: &Way<'_>) -> Option<Hit> {
    let best = way.best?;
    let reference = way.wire.map_or(best.goodput_bps, |wire| wire.scale(limits::AT_LINE_RATE)).as_f64();
    // One stream is what a copy has: its window counts even where several streams make up for it.
    let single = way.single.filter(|pass| pass.goodput_bps.as_f64() < reference * limits::LOSS_COSTS);
    let candidates = [Some(best).filter(|_| way.gap()), single];
    let (pass, hit) = candidates.into_iter().flatten().find_map(|pass| Some((pass, evidence(seen, way, pass)?)))?;
    let (receiver, sender) = (way.direction.receiver(), way.direction.sender());
    let mut hit = hit.advise(buffers(mtu_advice::os(seen, receiver), mtu_advice::os(seen, sender)));
    hit.one_flow = !std::ptr::eq(pass, best);
    Some(hit)
}

/// Where both ends let their TCP buffers grow, by the names of their systems' own settings: `net.inet.tcp.autorcvbufmax` of macOS,
/// `net.inet.tcp.recvbuf_max` of FreeBSD; Windows sizes what it sends by itself.
fn buffers(receiver: &str, sender: &str) -> String {
    let first = match receiver {
        "linux" => "Raise the largest TCP buffers at the receiver (net.ipv4.tcp_rmem, net.core.rmem_max)",
        "windows" => {
            "Let the receiver's window grow (Windows: `netsh interface tcp show global` tells the auto-tuning level, which belongs at normal)"
        }
        "macos" => "Raise the largest TCP buffers at the receiver (net.inet.tcp.autorcvbufmax)",
        "freebsd" => "Raise the largest TCP buffers at the receiver (net.inet.tcp.recvbuf_max)",
        _ => "Raise the largest TCP buffers at the receiver",
    };
    let setting = match sender {
        "linux" => "tcp_wmem",
        "macos" => "net.inet.tcp.autosndbufmax",
        "freebsd" => "net.inet.tcp.sendbuf_max",
        "windows" => return format!("{first}."),
        _ => "",
    };
    match (receiver, setting) {
        ("windows", "") => format!("{first}, and raise the sender's largest buffer."),
        ("windows", setting) => format!("{first}, and raise the sender's largest buffer ({setting})."),
        (_, "") => format!("{first} and the sender."),
        (_, setting) => format!("{first} and the sender ({setting})."),
    }
}

fn evidence(seen: &Seen<'_>, way: &Way<'_>, pass: &Pass) -> Option<Hit> {
    let sums = Sums::of(pass);
    // A window that closes because its reader starves, or because packets are lost, is a symptom.
    let receiver = way.direction.receiver();
    let starved = Load::during(pass, receiver).is_some_and(Load::full);
    let lossy = sums.retransmits.is_some_and(|share| share >= limits::LOSS_SHARE);
    // Buffers that were asked for and are larger than the path needs are no small window.
    if starved || lossy || seen.window_to_spare(pass) {
        return None;
    }
    let limited = sums.rwnd.filter(|share| *share >= limits::RWND_LIMITED);
    let matched = sums.window_sets(pass.goodput_bps);
    let buffered = sums.sndbuf.filter(|share| *share >= limits::RWND_LIMITED);
    if limited.is_none() && !matched && buffered.is_none() {
        return None;
    }
    let place = if limited.is_some() || matched { receiver } else { way.direction.sender() };
    let weight = match (limited.is_some(), matched) {
        (true, true) => 0.95,
        (true, false) => 0.85,
        (false, true) => 0.8,
        (false, false) => 0.55,
    };
    let arithmetic = matched.then(|| {
        let bytes = ByteSize(sums.window.unwrap_or(0.0) as u64);
        let rtt = Elapsed((sums.min_rtt.unwrap_or(0.0) * 1e6) as u64);
        format!(
            "A window of {bytes} and a round trip of {rtt} allow {}.",
            crate::units::BitRate(sums.window_rate().unwrap_or(0.0) as u64)
        )
    });
    let settings = seen.doc.hosts.of(place).measured().and_then(|host| host.tcp.measured());
    let scaling = settings.and_then(|tcp| tcp.window_scaling).filter(|on| !on).map(|_| "Window scaling is off there.".to_owned());
    let mut hit = Hit::tcp(CODE, Where::from(place), way.direction).weight(weight, 0);
    hit = hit.also(limited.map(|share| {
        format!("{}: the receiver's window stopped the sender for {} of the time.", way.direction.arrow(), percent(share))
    }));
    hit = hit.also(buffered.map(|share| format!("The sender's own buffer stopped it for {} of the time.", percent(share))));
    Some(hit.also(arithmetic).also(scaling))
}

#[cfg(test)]
mod tests {
    use super::buffers;

    #[test]
    fn each_system_is_told_its_own_settings() {
        for (receiver, sender, words) in [
            ("linux", "linux", &["net.ipv4.tcp_rmem", "tcp_wmem"][..]),
            ("windows", "linux", &["netsh interface tcp", "tcp_wmem"]),
            ("linux", "windows", &["net.ipv4.tcp_rmem"]),
            ("macos", "linux", &["autorcvbufmax", "tcp_wmem"]),
            ("windows", "freebsd", &["netsh", "sendbuf_max"]),
            ("", "", &["the receiver and the sender"]),
        ] {
            let told = buffers(receiver, sender);
            assert!(words.iter().all(|word| told.contains(word)) && told.ends_with('.'), "{told}");
            assert_eq!(told.contains("tcp_rmem"), receiver == "linux", "{told}");
            assert_eq!(told.contains("tcp_wmem"), sender == "linux", "{told}");
        }
    }
}
