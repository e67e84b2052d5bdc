//! What TCP makes of the path: a stream with segments as large as the interfaces allow beside one whose segments fit, and what
//! large packets gain where they pass.

use std::time::Duration;

use crate::model::cpu::CpuWindow;
use crate::model::host::{Direction, Role};
use crate::model::mtu::needless::NO_CONTRAST;
use crate::model::mtu::{JumboGain, MtuSection, PathMtu, SegmentCost, SegmentStream, tcp_headers};
use crate::model::outcome::Outcome;
use crate::model::plan::Depth;
use crate::model::throughput::{Pass, ThroughputSection};
use crate::session::client::ClientSession;
use crate::session::error::SessionError;
use crate::session::steps::throughput::{GRACE, PassPlan, pass, pass_over};
use crate::units::{BitRate, Elapsed, Mtu};

/// The contrast needs no more: a stream that moves at all has moved megabytes by then.
const CONTRAST: Duration = Duration::from_millis(500);

/// A black hole shows in this time: a stream that gets through has moved megabytes, and one that is saved by the kernel's MTU probing
/// (which begins after some retransmissions of 0.2 s and more) has not.
const HOLE: Duration = Duration::from_millis(1200);

/// Nothing is on its way behind a black hole, so nobody waits for the rest.
const STUCK: Duration = Duration::from_millis(100);

/// One of the streams that are compared; long enough for slow start to be a small part of it.
const GAIN: Duration = Duration::from_millis(800);

/// The longest that the streams take where nothing but the path MTU is measured.
pub fn longest(gain: bool) -> Duration {
    HOLE + CONTRAST + if gain { GAIN * 4 } else { Duration::ZERO }
}

/// After the passes of a whole run, which are the contrast themselves.
pub async fn after_passes(
    session: &mut ClientSession,
    mtu: &mut MtuSection,
    throughput: &ThroughputSection,
) -> Result<(), SessionError> {
    mtu.unclamped = unclamped(session, mtu, session.times.unclamped).await?;
    session.untouched.clear();
    let v6 = session.peer.is_ipv6();
    mtu.clamped = match &mtu.unclamped {
        Outcome::Measured(stream) => throughput.of(stream.direction).single.clone().map(|pass| SegmentStream {
            direction: stream.direction,
            bytes: pass.bytes,
            elapsed_us: pass.elapsed_us,
            goodput_bps: pass.goodput_bps,
            packet: pass.method.mss_clamp_bytes.map(|mss| packet(mss, v6)),
        }),
        Outcome::Skipped(why) | Outcome::Failed(why) => Outcome::Skipped(why.clone()),
    };
    mtu.gain = if session.settings.depth == Depth::Thorough {
        gain(session, mtu).await?
    } else {
        Outcome::skipped(
            "`weaklink run` leaves this to `weaklink mtu` unless --thorough is asked for: --gain compares large packets with common ones",
        )
    };
    Ok(())
}

/// Where nothing but the path MTU is measured.
pub async fn alone(session: &mut ClientSession, mtu: &mut MtuSection) -> Result<(), SessionError> {
    mtu.unclamped = unclamped(session, mtu, HOLE).await?;
    session.untouched.clear();
    mtu.clamped = match mtu.unclamped.measured().map(|stream| stream.direction) {
        Some(direction) => {
            stream(session, mtu, direction, Wish { clamp: session.mss_clamp, time: CONTRAST, grace: GRACE }).await?
        }
        None => Outcome::skipped(NO_CONTRAST),
    };
    mtu.gain = if session.settings.gain {
        gain(session, mtu).await?
    } else {
        Outcome::skipped("--gain compares large packets with common ones")
    };
    Ok(())
}

/// The proof of a black hole: one stream with segments as large as the interfaces allow.
async fn unclamped(
    session: &mut ClientSession,
    mtu: &MtuSection,
    time: Duration,
) -> Result<Outcome<SegmentStream>, SessionError> {
    if session.mss_clamp.is_none() {
        return Ok(mtu.unclamped.clone());
    }
    // The direction whose path carries least, among those where no sender learns of it.
    let silent = |direction: &Direction| {
        let found = mtu.of(*direction).measured()?;
        (!found.is_told()).then_some(found.mtu)
    };
    // Echo alone does not tell the directions apart: then the upload is tried.
    let by_echo = || mtu.echo.measured().filter(|echo| !echo.path.is_told()).map(|_| Direction::Upload);
    let told = Direction::BOTH.into_iter().filter(|d| silent(d).is_some()).min_by_key(silent);
    let Some(direction) = told.or_else(by_echo) else {
        return Ok(Outcome::skipped("somebody says which packets are too large, so streams adapt"));
    };
    stream(session, mtu, direction, Wish { clamp: None, time, grace: STUCK }).await
}

/// A stream as it is wanted.
#[derive(Clone, Copy, Debug)]
struct Wish {
    clamp: Option<u32>,
    time: Duration,
    grace: Duration,
}

async fn stream(
    session: &mut ClientSession,
    mtu: &MtuSection,
    direction: Direction,
    wish: Wish,
) -> Result<Outcome<SegmentStream>, SessionError> {
    let packet = full_packet(session, mtu, direction, wish.clamp);
    let plan = PassPlan { clamp: wish.clamp, grace: wish.grace, ..PassPlan::one(session, direction, wish.time) };
    // What was learnt of the path since then must not mend what is to be shown.
    let untouched = if wish.clamp.is_none() { session.untouched.pop() } else { None };
    let done = match untouched {
        Some((token, connection)) => pass_over(session, plan, vec![token], vec![connection]).await?,
        None => pass(session, plan).await?,
    };
    Ok(done.map(|pass| {
        // A stall is a result: what counts is what arrived in the whole time.
        let elapsed = wish.time.max(pass.elapsed_us.into());
        SegmentStream {
            direction,
            bytes: pass.bytes,
            elapsed_us: Elapsed::from(elapsed),
            goodput_bps: BitRate::of(pass.bytes, elapsed),
            packet,
        }
    }))
}

/// The IP packet of a full segment: what the clamp says, else what the handshake granted to the sender.
fn full_packet(session: &ClientSession, mtu: &MtuSection, direction: Direction, clamp: Option<u32>) -> Option<Mtu> {
    let granted = || Some(mtu.handshake.measured()?.of(direction.sender()).measured()?.granted_mss_bytes());
    clamp.or_else(granted).map(|mss| packet(mss, session.peer.is_ipv6()))
}

fn packet(mss: u32, v6: bool) -> Mtu {
    Mtu(mss.saturating_add(tcp_headers(v6)))
}

/// The same stream with large and with common segments, where the path carries large ones.
async fn gain(session: &mut ClientSession, mtu: &MtuSection) -> Result<Outcome<Vec<JumboGain>>, SessionError> {
    let v6 = session.peer.is_ipv6();
    let common = Mtu::ETHERNET.0 - tcp_headers(v6);
    let mut gains = Vec::new();
    for direction in Direction::BOTH {
        let carried = mtu.of(direction).measured().is_some_and(|path: &PathMtu| path.mtu > Mtu::ETHERNET);
        let large = full_packet(session, mtu, direction, session.mss_clamp).filter(|large| carried && *large > Mtu::ETHERNET);
        let Some(large) = large else { continue };
        let clamp = session.mss_clamp;
        let mut cost = async |clamp, packet| -> Result<Outcome<SegmentCost>, SessionError> {
            let plan = PassPlan { clamp, ..PassPlan::one(session, direction, GAIN) };
            Ok(pass(session, plan).await?.map(|pass| cost_of(&pass, direction, packet)))
        };
        match (cost(clamp, large).await?, cost(Some(common), Mtu::ETHERNET).await?) {
            (Outcome::Measured(large), Outcome::Measured(common)) => gains.push(JumboGain { direction, large, common }),
            (Outcome::Skipped(why) | Outcome::Failed(why), _) | (_, Outcome::Skipped(why) | Outcome::Failed(why)) => {
                return Ok(Outcome::Failed(why));
            }
        }
    }
    if gains.is_empty() {
        return Ok(Outcome::skipped("no segments larger than those of common packets pass here, so there is nothing to compare"));
    }
    Ok(Outcome::Measured(gains))
}

fn cost_of(pass: &Pass, direction: Direction, packet: Mtu) -> SegmentCost {
    let at = |role| {
        let window = match role {
            Role::Pc => &pass.cpu_pc,
            Role::Nas => &pass.cpu_nas,
        };
        window.measured().and_then(|window| seconds_per_gigabyte(window, pass.bytes.0))
    };
    SegmentCost {
        packet,
        goodput_bps: pass.goodput_bps,
        sender_cpu_s_per_gb: at(direction.sender()),
        receiver_cpu_s_per_gb: at(direction.receiver()),
    }
}

/// All cores' busy time over the bytes that moved in the window.
fn seconds_per_gigabyte(window: &CpuWindow, bytes: u64) -> Option<f64> {
    let busy: f64 = window.cores.iter().map(crate::model::cpu::CoreShare::busy).sum();
    let gigabytes = bytes as f64 / 1e9;
    (gigabytes > 0.0 && !window.cores.is_empty()).then(|| busy * window.elapsed_us.seconds() / gigabytes)
}
