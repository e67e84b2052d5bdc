//! Disks without a network: the NAS's directory, then the PC's.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::outcome::Outcome;
use crate::model::storage::{DiskResult, StorageSection};
use crate::session::around::{Bracket, counted};
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Step, Watch};
use crate::session::served::{AgentSession, blocking, no_dir};
use crate::storage::{CpuWatch, Progress, RunSpec};
use crate::sys::Stop;
use crate::units::ByteSize;
use crate::wire::{Reply, Request};

/// The longest write or read that an agent agrees to.
const LONGEST: Duration = Duration::from_secs(120);

fn measure(dir: &Path, each: Duration, max_bytes: ByteSize, stop: &Stop, progress: &Progress) -> DiskResult {
    let watch = || -> CpuWatch {
        let bracket = Bracket::start(&[]);
        Box::new(move || bracket.finish().cpu)
    };
    crate::storage::run(dir, &RunSpec { max_bytes, budget_each: each, watch: &watch }, stop, progress)
}

/// The agent's side.
pub async fn agent(session: &mut AgentSession, each: Duration, max_bytes: ByteSize) -> Reply {
    let Some(dir) = session.dir().cloned() else {
        return Reply::Disk(Box::new(Outcome::skipped(no_dir())));
    };
    let stop = session.stop.clone();
    let result = blocking(move || measure(&dir, each.min(LONGEST), max_bytes, &stop, &Progress::default())).await;
    Reply::Disk(Box::new(Outcome::Measured(result)))
}

/// The client's side. Both ends watch their interfaces over all of it: what is counted then is of other traffic, or of the cable itself.
pub async fn client(session: &mut ClientSession) -> Result<StorageSection, SessionError> {
    if !session.has_dir && session.settings.pc_dir.is_none() {
        return disks(session).await;
    }
    let began = Instant::now();
    let reply = session.ask(Request::StartSampling).await?;
    let Reply::Sampling = reply else { return Err(unexpected(&reply)) };
    let interfaces = session.interfaces.clone();
    let bracket = blocking(move || Bracket::start(&interfaces)).await;
    let section = disks(session).await?;
    let pc = blocking(move || bracket.finish()).await;
    let reply = session.ask(Request::StopSampling).await?;
    let Reply::Sampled(nas) = reply else { return Err(unexpected(&reply)) };
    Ok(StorageSection { counters: Some(Box::new(counted(began, &pc, &nas))), ..section })
}

async fn disks(session: &mut ClientSession) -> Result<StorageSection, SessionError> {
    let (each, max_bytes) = (session.times.disk, session.settings.max_data);
    let nas = if session.has_dir {
        session.events.part(Step::Storage, "the NAS's directory", each * 2, None);
        let reply = session.ask(Request::Disk { each_us: each.into(), max_bytes }).await?;
        let Reply::Disk(nas) = reply else { return Err(unexpected(&reply)) };
        *nas
    } else {
        Outcome::skipped(no_dir())
    };
    let pc = match session.settings.pc_dir.clone() {
        Some(dir) => {
            let progress = Progress::default();
            let watch: Watch = {
                let progress = progress.clone();
                Arc::new(move || progress.bytes())
            };
            session.events.part(Step::Storage, "the PC's directory", each * 2, Some(watch));
            let stop = session.stop.clone();
            Outcome::Measured(blocking(move || measure(&dir, each, max_bytes, &stop, &progress)).await)
        }
        None => Outcome::skipped("no directory of the PC was named (--pc-dir DIR), so its disk was not tested"),
    };
    Ok(StorageSection { pc, nas, counters: None })
}
