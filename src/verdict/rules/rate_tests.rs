//! Documents about raw rates: what is the verdict, what is a finding, and where each rule stays silent.

use super::super::judge;
use super::super::scenario::*;
use crate::model::cpu::{CardInterrupts, CoreCount, CpuWindow, NetworkInterrupts};
use crate::model::finding::{Confidence, Severity, Status};
use crate::model::kernel::{Dips, LimitShares, ThreadCost};
use crate::model::link::Duplex;
use crate::model::outcome::Outcome;
use crate::model::plan::{Scope, Ways};
use crate::model::throughput::{BothWays, CongestionTrial, DirectionThroughput, Method, Pass, SocketFacts};
use crate::model::{Direction, Document, Role};
use crate::units::{BitRate, ByteSize, Elapsed};

use Direction::{Download, Upload};
use Role::{Nas, Pc};

mod answers;
mod beside;
mod verdicts;

type Case = (&'static str, fn() -> Document, fn(&mut Document), &'static str);

fn one_gbit() -> Document {
    rates_only(1_000)
}

fn ten_gbit() -> Document {
    rates_only(10_000)
}

fn iperf3() -> Document {
    iperf3_only(1_000)
}

fn cpu(pass: &mut Pass, role: Role, change: impl Fn(&mut CpuWindow)) {
    let window = if role == Pc { &mut pass.cpu_pc } else { &mut pass.cpu_nas };
    window.measured_mut().into_iter().for_each(change);
}

/// Only one stream was asked for, at this rate.
fn only_one(doc: &mut Document, rate: u64) {
    doc.plan.throughput.as_mut().unwrap().streams = Some(1);
    doc.both(|pass| pass.goodput_bps = mbit(rate));
    doc.tcp().upload.multi = Outcome::skipped("--streams 1 was asked for");
    doc.tcp().download.multi = Outcome::skipped("--streams 1 was asked for");
}

fn at_once(doc: &mut Document, rate: u64) {
    let pass = || Outcome::Measured(pass(4, rate));
    doc.tcp().both = Outcome::Measured(BothWays { upload: pass(), download: pass() });
}

fn trial(direction: Direction, name: &str, rate: u64, lost: u64) -> CongestionTrial {
    let mut pass = pass(1, rate);
    pass.method = Method { congestion: Some(name.into()), ..Method::default() };
    pass.sender.measured_mut().unwrap()[0].retransmits = Some(lost);
    CongestionTrial { direction, congestion: name.into(), pass: Outcome::Measured(pass) }
}

/// The group measured and nothing else.
fn only_together(doc: &mut Document, rates: &[(u64, u64)]) {
    doc.tcp().together = group(rates);
    doc.tcp().upload = DirectionThroughput::skipped("together");
    doc.tcp().download = DirectionThroughput::skipped("together");
}

/// Controls that were asked for, and what each gave PC → NAS; the first one's pass is the direction's own.
fn compare(doc: &mut Document, rates: &[(&str, u64)]) {
    let plan = doc.plan.throughput.as_mut().unwrap();
    plan.ways = Ways::Upload;
    plan.congestion = rates.iter().map(|(name, _)| (*name).to_owned()).collect();
    let trials: Vec<CongestionTrial> = rates.iter().map(|(name, rate)| trial(Upload, name, *rate, 20)).collect();
    let multi = Outcome::skipped("compared with 1 stream");
    doc.tcp().upload = DirectionThroughput { single: trials[0].pass.clone(), multi, sweep: vec![] };
    doc.tcp().download = DirectionThroughput::skipped("this direction by itself was not asked for");
    doc.tcp().congestion = Outcome::Measured(trials);
}

/// What the PC's kernel does not have never ran.
fn lacks(doc: &mut Document, name: &str) {
    let trials = doc.tcp().congestion.measured_mut().unwrap();
    for trial in trials.iter_mut().filter(|trial| trial.congestion == name) {
        trial.pass = Outcome::skipped("cubic ran instead");
    }
    let host = doc.hosts.pc.measured_mut().unwrap();
    host.tcp.measured_mut().unwrap().congestion_available = vec!["reno".into(), "cubic".into()];
}
