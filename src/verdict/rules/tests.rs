//! Every rule: a scenario where it is the verdict or a finding, and one where it stays silent.

use super::super::scenario::*;
use super::super::{judge, rules};
use crate::model::copy::{FileSet, LaneKind, Place};
use crate::model::finding::{Component, Confidence, Status, Where};
use crate::model::link::InterfaceKind;
use crate::model::mtu::{Limiter, SegmentStream};
use crate::model::outcome::Outcome;
use crate::model::plan::Workload;
use crate::model::storage::{Burst, Raid};
use crate::model::throughput::Pass;
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteRate, ByteSize, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

mod answers;
mod hosts;
mod network;

type Change = fn(&mut Document);

/// A line of the table: a sentence, the healthy line, how it is bent, and the verdict's code.
type Case = (&'static str, u64, Change, &'static str);

fn run(cases: &[Case]) {
    for (sentence, line, change, expected) in cases {
        let mut doc = healthy(*line);
        change(&mut doc);
        let verdict = judge(&doc).verdict;
        assert_eq!(verdict.code.to_string(), *expected, "{sentence}: {}", verdict.sentence);
    }
}

fn lossy(doc: &mut Document, way: Direction, rate: u64) {
    doc.rate(way, rate);
    doc.stats(way, |stats| stats.retransmits = Some(15_000));
}

fn cpu(pass: &mut Pass, role: Role, change: impl Fn(&mut crate::model::cpu::CpuWindow)) {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().into_iter().for_each(change);
}

fn lane(doc: &mut Document, kind: LaneKind, protocol: &str, facts: &[(&str, &str)], rungs: Vec<crate::model::copy::Rung>) {
    doc.lane(LaneKind::Raw, "raw tcp", &[]).rungs = vec![plain(Upload, 290.0), plain(Download, 290.0)];
    doc.lane(kind, protocol, facts).rungs = rungs;
}
fn jumbo_hole(doc: &mut Document) {
    for role in [Pc, Nas] {
        doc.mtu(role, 9000);
    }
    let mtu = doc.measurements.mtu.measured_mut().unwrap();
    mtu.upload = Outcome::Measured(path(1500, Limiter::Silent));
    mtu.download = Outcome::Measured(path(1500, Limiter::Silent));
}
