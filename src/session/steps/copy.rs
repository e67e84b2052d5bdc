//! Copies: the raw lane between both ends, then each lane that the user named.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::copy::{CopySpec, Mounted, Progress, RawEnd, RawSpec, Sink, Source, receive, send};
use crate::model::copy::{Copied, CopySection, FileSet, Lane, LaneKind, Place, Rung};
use crate::model::host::Direction;
use crate::model::outcome::Outcome;
use crate::session::around::{Bracket, counted};
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::{Step, Watch};
use crate::session::served::{AgentSession, blocking, no_dir};
use crate::session::steps::throughput::open;
use crate::sys::Scratch;
use crate::units::ByteSize;
use crate::wire::message::{Around, CopiedEnd, CopyRequest};
use crate::wire::{Reply, Request};

use self::lane::lane;

mod lane;

/// The longest copy that an agent agrees to.
const LONGEST: Duration = Duration::from_secs(120);

/// A file that an earlier copy left for the next one to read.
#[derive(Clone, Debug)]
pub struct Stored {
    path: PathBuf,
    bytes: ByteSize,
}

/// The agent's side of one raw copy.
pub async fn agent(session: &mut AgentSession, request: CopyRequest) -> Reply {
    let refused = |reason: String| Reply::Copied(Outcome::failed(reason.clone()), Box::new(Around::none(&reason)));
    let ready = match prepare(session, &request).await {
        Ok(ready) => ready,
        Err(reason) => return refused(reason),
    };
    let connection = match session.connections(&[request.token]).await.map(|mut c| c.pop()) {
        Ok(Some(connection)) => connection,
        Ok(None) => return refused("the data connection did not arrive".to_owned()),
        Err(reason) => return refused(reason),
    };
    let stop = session.stop.clone();
    let interfaces = session.interfaces.clone();
    let direction = request.direction;
    let (path, spec, scratch) = (ready.path.clone(), ready.spec, ready.scratch);
    let (end, around) = blocking(move || {
        let bracket = Bracket::start(&interfaces);
        let end = match (direction, path) {
            (Direction::Upload, Some(path)) => receive(connection, &Sink::File { path }, &spec, &stop, &Progress::new()),
            (Direction::Upload, None) => receive(connection, &Sink::Memory, &spec, &stop, &Progress::new()),
            (Direction::Download, Some(path)) => send(connection, &Source::File { path }, &spec, &stop, &Progress::new()),
            (Direction::Download, None) => send(connection, &Source::Memory, &spec, &stop, &Progress::new()),
        };
        drop(scratch);
        (end, bracket.finish())
    })
    .await;
    if let (Direction::Upload, Some(path), Some(end)) = (direction, ready.path, end.measured()) {
        session.stored = Some(Stored { path, bytes: end.bytes });
    }
    Reply::Copied(end.map(on_the_wire), Box::new(around))
}

/// What the agent's end of a copy works with.
struct Ready {
    path: Option<PathBuf>,
    spec: RawSpec,
    scratch: Option<Arc<Scratch>>,
}

async fn prepare(session: &mut AgentSession, request: &CopyRequest) -> Result<Ready, String> {
    let budget = Duration::from(request.budget_us).min(LONGEST);
    let spec = |max_bytes| RawSpec { seed: request.seed, budget, max_bytes };
    if request.place == Place::Memory {
        return Ok(Ready { path: None, spec: spec(request.max_bytes), scratch: None });
    }
    let scratch = session.scratch()?;
    if request.direction == Direction::Download {
        let stored = session.stored.clone().ok_or("there is no file to send: the upload before this failed")?;
        let spec = spec(ByteSize(stored.bytes.0.min(request.max_bytes.0)));
        return Ok(Ready { path: Some(stored.path), spec, scratch: Some(scratch) });
    }
    let old = session.stored.take();
    let place = Arc::clone(&scratch);
    session.copies += 1;
    let name = format!("copy-{}", session.copies);
    let most = request.max_bytes;
    let (path, allowed) = blocking(move || {
        if let Some(old) = old {
            let _ = std::fs::remove_file(old.path);
        }
        room_for(place.path(), most).map(|allowed| (place.file(&name), allowed))
    })
    .await?;
    if allowed < most {
        return Err(format!("the NAS's directory has room for {allowed} only, {most} were to be copied"));
    }
    Ok(Ready { path: Some(path), spec: spec(most), scratch: Some(scratch) })
}

/// How much of `most` may be written below `path`. Allowances come in whole mebibytes; one more makes room for a last part.
fn room_for(path: &std::path::Path, most: ByteSize) -> Result<ByteSize, String> {
    let asked = most.0.saturating_add(ByteSize::mib(1).0);
    let allowed = crate::storage::allowance(crate::sys::file::room(path).ok(), asked)?;
    Ok(ByteSize(allowed.min(most.0)))
}

/// The agent's side of the question for room.
pub async fn room(session: &mut AgentSession, most: ByteSize) -> Reply {
    let scratch = match session.scratch() {
        Ok(scratch) => scratch,
        Err(reason) => return Reply::Room(Outcome::failed(reason)),
    };
    let old = session.stored.take();
    let allowed = blocking(move || {
        if let Some(old) = old {
            let _ = std::fs::remove_file(old.path);
        }
        room_for(scratch.path(), most)
    });
    Reply::Room(allowed.await.map_or_else(Outcome::skipped, Outcome::Measured))
}

fn on_the_wire(end: RawEnd) -> CopiedEnd {
    CopiedEnd { bytes: end.bytes, elapsed_us: end.elapsed_us, bins: end.bins, verified_bytes: end.verified_bytes }
}

fn off_the_wire(end: CopiedEnd) -> RawEnd {
    RawEnd { bytes: end.bytes, elapsed_us: end.elapsed_us, bins: end.bins, verified_bytes: end.verified_bytes }
}

/// The client's side of all lanes.
pub async fn client(session: &mut ClientSession) -> Result<CopySection, SessionError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| SessionError::Random(error.to_string()))?;
    let seed = u64::from_le_bytes(bytes);
    let mut lanes = vec![raw(session, seed).await?];
    let spec = CopySpec::new(seed, session.settings.max_data);
    if let Some(path) = session.settings.path.clone() {
        lanes.push(lane(session, Box::new(Mounted::new(&path, spec))).await?);
    }
    if let Some(ssh) = session.settings.ssh.clone() {
        lanes.push(lane(session, Box::new(crate::copy::Ssh::new(ssh.target, ssh.options, spec))).await?);
    }
    Ok(CopySection { lanes })
}

/// One copy of the raw lane.
#[derive(Clone, Copy, Debug)]
struct RawPlan {
    direction: Direction,
    pc: Place,
    nas: Place,
    max_bytes: ByteSize,
}

impl RawPlan {
    /// Its rung, where the copy did not begin or broke off before anything was counted.
    const fn rung(self, result: Outcome<Copied>) -> Rung {
        let (from, to) = match self.direction {
            Direction::Upload => (self.pc, self.nas),
            Direction::Download => (self.nas, self.pc),
        };
        Rung { direction: self.direction, from, to, files: FileSet::Large, result, counters: None }
    }
}

async fn raw(session: &mut ClientSession, seed: u64) -> Result<Lane, SessionError> {
    let mut lane =
        Lane { kind: LaneKind::Raw, protocol: Outcome::Measured("raw tcp".to_owned()), facts: Vec::new(), rungs: Vec::new() };
    let most = session.settings.max_data;
    let plan = |direction, pc, max_bytes| RawPlan { direction, pc, nas: Place::Disk, max_bytes };
    if !session.has_dir {
        for direction in Direction::BOTH {
            lane.rungs.push(plan(direction, Place::Memory, most).rung(Outcome::skipped(no_dir())));
        }
        return Ok(lane);
    }
    let room = match session.ask(Request::Room { max_bytes: most }).await? {
        Reply::Room(room) => room,
        other => return Err(unexpected(&other)),
    };
    let Outcome::Measured(most) = room else {
        for direction in Direction::BOTH {
            let reason = room.why().unwrap_or_default().to_owned();
            lane.rungs.push(plan(direction, Place::Memory, most).rung(Outcome::skipped(reason)));
        }
        return Ok(lane);
    };
    let upload = plan(Direction::Upload, Place::Memory, most);
    let rung = raw_rung(session, upload, seed, None).await?;
    let stored = rung.result.measured().map(|copied| copied.bytes);
    lane.rungs.push(rung);
    let download = plan(Direction::Download, Place::Memory, stored.unwrap_or(most));
    let Some(stored) = stored else {
        lane.rungs.push(download.rung(Outcome::skipped("the upload before this failed, so there is no file to read")));
        return Ok(lane);
    };
    lane.rungs.push(raw_rung(session, download, seed, None).await?);
    let Some(dir) = session.settings.pc_dir.clone() else { return Ok(lane) };
    let room = {
        let dir = dir.clone();
        blocking(move || {
            let scratch = ClientSession::scratch(&dir)?;
            let allowed = room_for(scratch.path(), stored)?;
            Ok::<_, String>((Arc::new(scratch), allowed))
        })
        .await
    };
    let down = plan(Direction::Download, Place::Disk, stored);
    let up = plan(Direction::Upload, Place::Disk, stored);
    let scratch = match room {
        Ok((scratch, allowed)) if allowed >= stored => scratch,
        Ok((_, allowed)) => {
            let reason = format!("the PC's directory has room for {allowed} only, the file is {stored}");
            lane.rungs.extend([down.rung(Outcome::skipped(reason.clone())), up.rung(Outcome::skipped(reason))]);
            return Ok(lane);
        }
        Err(reason) => {
            lane.rungs.extend([down.rung(Outcome::failed(reason.clone())), up.rung(Outcome::failed(reason))]);
            return Ok(lane);
        }
    };
    let file = scratch.file("copy");
    let rung = raw_rung(session, down, seed, Some(file.clone())).await?;
    let got = rung.result.measured().map(|copied| copied.bytes);
    lane.rungs.push(rung);
    lane.rungs.push(match got {
        Some(got) => raw_rung(session, RawPlan { max_bytes: got, ..up }, seed, Some(file)).await?,
        None => up.rung(Outcome::skipped("the download before this failed, so there is no file to send")),
    });
    blocking(move || drop(scratch)).await;
    Ok(lane)
}

async fn raw_rung(session: &mut ClientSession, plan: RawPlan, seed: u64, file: Option<PathBuf>) -> Result<Rung, SessionError> {
    let progress = Progress::new();
    let end = if file.is_some() { "disk" } else { "memory" };
    let what = match plan.direction {
        Direction::Upload => format!("raw TCP, PC {end} → NAS disk"),
        Direction::Download => format!("raw TCP, NAS disk → PC {end}"),
    };
    session.events.part(Step::Copy, what, session.times.large, Some(watch(&progress)));
    let tokens = session.tokens(1).await?;
    let connection = match open(session, &tokens, session.mss_clamp, &session.options).await.map(|mut c| c.pop()) {
        Ok(Some(connection)) => connection,
        Ok(None) => return Ok(plan.rung(Outcome::failed("no data connection"))),
        Err(reason) => return Ok(plan.rung(Outcome::failed(reason))),
    };
    let (began, budget) = (Instant::now(), session.times.large);
    let request = Request::Copy(CopyRequest {
        direction: plan.direction,
        token: tokens[0],
        place: plan.nas,
        seed,
        budget_us: budget.into(),
        max_bytes: plan.max_bytes,
    });
    let (stop, interfaces) = (session.stop.clone(), session.interfaces.clone());
    let spec = RawSpec { seed, budget, max_bytes: plan.max_bytes };
    let work = tokio::spawn(blocking(move || {
        let bracket = Bracket::start(&interfaces);
        let end = match (plan.direction, file) {
            (Direction::Upload, Some(path)) => send(connection, &Source::File { path }, &spec, &stop, &progress),
            (Direction::Upload, None) => send(connection, &Source::Memory, &spec, &stop, &progress),
            (Direction::Download, Some(path)) => receive(connection, &Sink::File { path }, &spec, &stop, &progress),
            (Direction::Download, None) => receive(connection, &Sink::Memory, &spec, &stop, &progress),
        };
        (end, bracket.finish())
    }));
    let reply = session.ask(request).await;
    let (ours, around) = work.await.unwrap_or_else(|_| (Outcome::failed("our end broke off"), Around::none("it broke off")));
    let (theirs, nas) = match reply? {
        Reply::Copied(theirs, nas) => (theirs.map(off_the_wire), nas),
        other => return Err(unexpected(&other)),
    };
    // The receiver's numbers count; the sender's reason explains when there are none.
    let (receiver, sender, place) = match plan.direction {
        Direction::Upload => (theirs, ours, plan.nas),
        Direction::Download => (ours, theirs, plan.pc),
    };
    let counters = Some(Box::new(counted(began, &around, &nas)));
    let result = match (sender.why(), receiver.measured()) {
        (Some(why), Some(_)) => Outcome::failed(why),
        _ => receiver.map(|end| Copied { cpu_pc: around.cpu, cpu_nas: nas.cpu, ..end.copied(place) }),
    };
    Ok(Rung { counters, ..plan.rung(result) })
}

fn watch(progress: &Progress) -> Watch {
    let progress = progress.clone();
    Arc::new(move || progress.bytes())
}
