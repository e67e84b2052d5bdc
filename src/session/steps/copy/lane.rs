//! A lane that the user named: one end drives it alone, as any program would.

use std::time::{Duration, Instant};

use super::watch;
use crate::copy::{LaneDriver, Progress, RungPlan, SERVER_ADDRESS};
use crate::model::copy::{Copied, FileSet, Lane, LaneFact, Rung};
use crate::model::outcome::{Outcome, Source as Said};
use crate::session::around::{Bracket, counted, tree};
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Event, Step};
use crate::session::served::blocking;
use crate::sys::Stop;
use crate::wire::{Reply, Request};

/// A lane that one end drives alone, while both watch their processors.
pub(super) async fn lane(session: &mut ClientSession, driver: Box<dyn LaneDriver>) -> Result<Lane, SessionError> {
    let kind = driver.kind();
    session.events.part(Step::Copy, format!("{}: connecting", kind.word()), Duration::from_secs(1), None);
    let stop = session.stop.clone();
    let (mut driver, opened) = blocking(move || {
        let mut driver = driver;
        let opened = driver.open(&stop);
        (driver, opened)
    })
    .await;
    let mut lane =
        Lane { kind, protocol: Outcome::skipped("the lane could not be opened"), facts: Vec::new(), rungs: Vec::new() };
    let plans = driver.rungs();
    match opened {
        Ok(opened) => lane.protocol = opened.protocol,
        Err(reason) => {
            session.events.tell(Event::Note(format!("{}: this way of copying cannot be measured: {reason}", kind.word())));
            lane.protocol = Outcome::failed(reason.clone());
            lane.rungs = plans.iter().map(|plan| rung(*plan, Outcome::failed(reason.clone()))).collect();
            blocking(move || drop(driver)).await;
            return Ok(lane);
        }
    }
    for plan in plans {
        let (rung, back) = lane_rung(session, driver, plan).await?;
        driver = back;
        lane.rungs.push(rung);
    }
    lane.facts = driver.facts();
    let server = lane.fact(SERVER_ADDRESS).and_then(crate::link::Peer::parse);
    if let Some(server) = server {
        lane.facts.extend(blocking(move || way_to(server)).await);
    }
    blocking(move || {
        driver.close();
        drop(driver);
    })
    .await;
    Ok(lane)
}

/// By which interface a lane's own connection goes: it may be another than that of the rest of the run.
fn way_to(server: crate::link::Peer) -> Vec<LaneFact> {
    let Ok(local) = crate::link::local_addr_towards(server) else { return Vec::new() };
    let Some((interface, kind)) = crate::link::leaves_by(local, server, &tree()) else { return Vec::new() };
    let fact = |name: &str, value: String| LaneFact { name: name.to_owned(), value, source: Said::Rtnetlink };
    let kind = serde_json::to_value(kind).ok().and_then(|kind| Some(kind.as_str()?.to_owned()));
    let mut facts = vec![fact("interface", interface), fact("own_address", local.to_string())];
    facts.extend(kind.map(|kind| fact("interface_kind", kind)));
    facts
}

/// The rung of a copy that nobody counted anything of.
const fn rung(plan: RungPlan, result: Outcome<Copied>) -> Rung {
    Rung { direction: plan.direction, from: plan.from, to: plan.to, files: plan.files, result, counters: None }
}

async fn lane_rung(
    session: &mut ClientSession,
    driver: Box<dyn LaneDriver>,
    plan: RungPlan,
) -> Result<(Rung, Box<dyn LaneDriver>), SessionError> {
    let (budget, files) = match plan.files {
        FileSet::Large => (session.times.large, "large file"),
        FileSet::Small => (session.times.small, "small files"),
    };
    let progress = Progress::new();
    let what = format!("{}, {files}, {}", driver.kind().word(), plan.direction.arrow());
    session.events.part(Step::Copy, what, budget, Some(watch(&progress)));
    let began = Instant::now();
    match session.ask(Request::StartSampling).await? {
        Reply::Sampling => {}
        other => return Err(unexpected(&other)),
    }
    let (stop, interfaces): (Stop, Vec<String>) = (session.stop.clone(), session.interfaces.clone());
    let (driver, mut result, around) = blocking(move || {
        let mut driver = driver;
        let bracket = Bracket::start(&interfaces);
        let result = driver.run(&plan, budget, &stop, &progress);
        (driver, result, bracket.finish())
    })
    .await;
    let nas = match session.ask(Request::StopSampling).await? {
        Reply::Sampled(nas) => nas,
        other => return Err(unexpected(&other)),
    };
    let counters = Some(Box::new(counted(began, &around, &nas)));
    if let Some(copied) = result.measured_mut() {
        copied.cpu_pc = around.cpu;
        copied.cpu_nas = nas.cpu;
    }
    Ok((Rung { counters, ..rung(plan, result) }, driver))
}
