//! The rules about packet sizes: each fires on its facts and stays silent without them.

use std::collections::BTreeMap;

use super::super::scenario::*;
use super::super::{Judgement, judge};
use crate::model::finding::{Confidence, Finding, Severity, Status, Where};
use crate::model::host::TcpSettings;
use crate::model::link::{Counters, InterfaceKind, Neighbour};
use crate::model::mtu::{
    Hop, JumboGain, Limiter, Location, MtuChange, MtuSection, PathMtu, Probe, ProbeFate, RouterWord, SegmentCost, SegmentStream,
    TcpEnd, TcpHandshake,
};
use crate::model::outcome::Outcome;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteSize, Elapsed, Mtu};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

mod answers;
mod holes;
mod sizes;

fn section(doc: &mut Document) -> &mut MtuSection {
    doc.measurements.mtu.measured_mut().unwrap()
}

fn up(doc: &mut Document) -> &mut PathMtu {
    section(doc).upload.measured_mut().unwrap()
}

/// Both ends 9000, and packets above `mtu` vanish from the PC to the NAS only.
fn hole_up(mtu: u32) -> Document {
    let mut doc = mtu_only(2_500, 9000);
    section(&mut doc).upload = Outcome::Measured(short_path(mtu, 9000, Limiter::Silent));
    doc
}

fn hole_both(mtu: u32) -> Document {
    let mut doc = hole_up(mtu);
    section(&mut doc).download = Outcome::Measured(short_path(mtu, 9000, Limiter::Silent));
    doc
}

fn router(mtu: u32) -> Limiter {
    Limiter::Router { address: [10, 0, 1, 1].into(), next_hop_mtu: Mtu(mtu) }
}

fn find<'a>(judged: &'a Judgement, code: &str) -> Option<&'a Finding> {
    judged.findings.iter().find(|finding| finding.code.to_string() == code)
}

#[track_caller]
fn is(doc: &Document, code: &str) -> Judgement {
    let judged = judge(doc);
    assert_eq!(judged.verdict.code.to_string(), code, "{}", judged.verdict.sentence);
    judged
}

#[track_caller]
fn says(judged: &Judgement, words: &[&str]) {
    let first = &judged.findings[0];
    let all = format!("{}\n{}\n{}", judged.verdict.sentence, first.evidence.join("\n"), first.advice.join("\n"));
    for word in words {
        assert!(all.contains(word), "{word:?} in\n{all}");
    }
}

fn stream(direction: Direction, packet: u32, mb: u64) -> Outcome<SegmentStream> {
    Outcome::Measured(SegmentStream {
        direction,
        bytes: ByteSize(mb * 2_000_000),
        elapsed_us: Elapsed(2_000_000),
        goodput_bps: BitRate(mb * 8_000_000),
        packet: Some(Mtu(packet)),
    })
}

fn located(reached: u8, missing: Option<u8>, peer_at: u8) -> Location {
    let hop = |ttl| Hop { ttl, address: Some([10, 0, ttl, 1].into()), rtt_us: Some(Elapsed(300)), large_arrived: ttl <= reached };
    Location { size: Mtu(9000), hops: (1..peer_at).map(hop).collect(), peer_at: Some(peer_at), reached, missing }
}

fn tcp(doc: &mut Document, role: Role) -> &mut TcpSettings {
    let host = if role == Pc { &mut doc.hosts.pc } else { &mut doc.hosts.nas };
    host.measured_mut().unwrap().tcp.measured_mut().unwrap()
}

fn counted(name: &str, count: u64) -> Outcome<BTreeMap<String, Counters>> {
    grown(name, count)
}
