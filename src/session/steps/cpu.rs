//! Cipher ceilings: both ends at once, in process.

use std::time::Duration;

use crate::model::cpu::{CpuSection, CpuWindow, HostCpu};
use crate::model::outcome::Outcome;
use crate::session::client::{ClientSession, unexpected};
use crate::session::error::SessionError;
use crate::session::event::Step;
use crate::session::served::{AgentSession, blocking};
use crate::session::steps::link::Idle;
use crate::sys::Stop;
use crate::wire::{Reply, Request};

/// The longest that an agent spends on one cipher.
const LONGEST: Duration = Duration::from_secs(2);

fn measure(each: Duration, stop: &Stop) -> HostCpu {
    HostCpu {
        aes_instructions: crate::cpu::aes_instructions(),
        ciphers: crate::cpu::ciphers(each, stop),
        idle: Outcome::skipped("not attached yet"),
    }
}

/// The agent's side.
pub async fn agent(session: &mut AgentSession, each: Duration) -> Reply {
    let stop = session.stop.clone();
    Reply::Ciphers(Outcome::Measured(blocking(move || measure(each.min(LONGEST), &stop)).await))
}

/// The client's side. One end after the other when both are this machine, or they would share its cores.
pub async fn client(session: &mut ClientSession, idle: Idle) -> Result<CpuSection, SessionError> {
    let each = session.times.cipher;
    session.events.part(Step::Cpu, "what a core encrypts", each * 5, None);
    let stop = session.stop.clone();
    let ours = tokio::spawn(blocking(move || measure(each, &stop)));
    let (ours, reply) = if session.settings.local {
        let ours = ours.await;
        (ours, session.ask(Request::Ciphers { each_us: each.into() }).await?)
    } else {
        let reply = session.ask(Request::Ciphers { each_us: each.into() }).await?;
        (ours.await, reply)
    };
    let Reply::Ciphers(mut nas) = reply else { return Err(unexpected(&reply)) };
    let mut pc = match ours {
        Ok(cpu) => Outcome::Measured(cpu),
        Err(_) => Outcome::failed("the cipher test broke off"),
    };
    attach(&mut pc, idle.pc);
    attach(&mut nas, idle.nas);
    Ok(CpuSection { pc, nas })
}

fn attach(cpu: &mut Outcome<HostCpu>, idle: Outcome<CpuWindow>) {
    if let Some(cpu) = cpu.measured_mut() {
        cpu.idle = idle;
    }
}
