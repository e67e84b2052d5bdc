//! Several clients that measure together: who has come, and where they wait for each other.
//!
//! Pure: it is told what happened and when (as the time since any one beginning), and says who waits for what.
//! A group is *open* until as many have come as were named, then *complete*, and *broken* as soon as one cannot
//! go on: then nobody waits for it any more.

use std::net::IpAddr;
use std::time::Duration;

use crate::units::{BitRate, Elapsed};
use crate::wire::message::{GatherRequest, Gathered, Gathering, Met};

/// A client's session at the agent.
pub type Id = u64;

/// The fewest and the most members. Sixteen PCs with all their streams are about what the file limits and the threads of a small
/// NAS bear.
pub const MEMBERS: std::ops::RangeInclusive<u32> = 2..=16;

/// The time from one PC's coming to the next one's: a person walks over and types the command.
pub const WALK: Duration = Duration::from_secs(120);

/// The longest that a group stays open, so that a session's time is left for measuring.
pub const LONGEST_OPEN: Duration = Duration::from_secs(600);

/// The longest that one meeting waits: the longest pass of somebody else, and room.
pub const LONGEST_MEETING: Duration = Duration::from_secs(180);

/// The longest name of a group, in characters.
const LONGEST_NAME: usize = 64;

/// What coming to a group gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coming {
    /// Others are missing; so many are there.
    Waiting(u32),
    /// All are there.
    Complete(Gathered),
}

/// What looking for the others gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Somebody is missing.
    Waiting,
    /// All were there.
    Met(Met),
    /// It will not come about: one sentence.
    Broken(String),
}

/// One member's place, in the order of coming.
#[derive(Clone, Debug)]
struct Seat {
    id: Id,
    address: IpAddr,
    gone: bool,
    arrived: Option<Arrival>,
    began: Option<Duration>,
}

/// A member that waits at the meeting point.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    told: Option<BitRate>,
    since: Duration,
    wait: Duration,
}

/// Clients that measure together.
#[derive(Clone, Debug)]
pub struct Group {
    asked: GatherRequest,
    opened: Duration,
    last_came: Duration,
    seats: Vec<Seat>,
    complete: bool,
    broken: Option<String>,
    round: u64,
    met: Met,
}

/// Whether a group may be called this: what is printed at the agent must not play tricks on a terminal.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    (1..=LONGEST_NAME).contains(&name.chars().count()) && name.trim() == name && name.chars().all(fits)
}

impl Group {
    /// A group with nobody in it.
    ///
    /// # Errors
    /// A name or a number that cannot be: one sentence.
    pub fn open(asked: GatherRequest, now: Duration) -> Result<Self, String> {
        if !is_name(&asked.name) {
            return Err(format!("a group's name has 1 to {LONGEST_NAME} letters, digits, spaces and -_."));
        }
        if !MEMBERS.contains(&asked.members) {
            let (least, most) = (MEMBERS.start(), MEMBERS.end());
            return Err(format!("{least} to {most} PCs can measure together, not {}", asked.members));
        }
        let met = Met { told: Vec::new(), began_us: Vec::new() };
        Ok(Self { asked, opened: now, last_came: now, seats: Vec::new(), complete: false, broken: None, round: 0, met })
    }

    /// Whether others may still come.
    pub fn is_open(&mut self, now: Duration) -> bool {
        self.expire(now);
        !self.complete && self.broken.is_none()
    }

    /// Until when others may come if nobody new does.
    fn until(&self) -> Duration {
        (self.last_came + WALK).min(self.opened + LONGEST_OPEN)
    }

    /// What an open group waits for, and how much longer.
    pub fn gathering(&mut self, now: Duration) -> Option<Gathering> {
        self.is_open(now).then(|| Gathering {
            name: self.asked.name.clone(),
            missing: self.asked.members.saturating_sub(count(self.seats.len())),
            left_us: self.until().saturating_sub(now).into(),
        })
    }

    /// Whether all have come; it stays so when some are gone again.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether nobody is left.
    pub fn is_empty(&self) -> bool {
        self.seats.iter().all(|seat| seat.gone)
    }

    /// Whether this session belongs to it.
    pub fn has(&self, id: Id) -> bool {
        self.seats.iter().any(|seat| seat.id == id && !seat.gone)
    }

    /// A client comes, or asks again whether all are there.
    ///
    /// # Errors
    /// It does not belong to this group, or the group will not be complete: one sentence.
    pub fn come(&mut self, id: Id, address: IpAddr, asked: &GatherRequest, now: Duration) -> Result<Coming, String> {
        self.expire(now);
        self.fits(asked)?;
        if let Some(reason) = &self.broken {
            return Err(reason.clone());
        }
        if !self.has(id) {
            if self.complete {
                let GatherRequest { name, members, .. } = &self.asked;
                return Err(format!("the {members} PCs of the group {name} are complete already"));
            }
            self.seats.push(Seat { id, address, gone: false, arrived: None, began: None });
            self.last_came = now;
            self.complete = self.seats.len() >= self.asked.members as usize;
        }
        Ok(match self.place_of(id).filter(|_| self.complete) {
            Some(index) => Coming::Complete(Gathered {
                index: count(index),
                addresses: self.seats.iter().map(|seat| seat.address).collect(),
                time_us: self.asked.time_us,
            }),
            None => Coming::Waiting(count(self.seats.len())),
        })
    }

    /// Only who asks for the same can take part: the schedules of all must be one.
    fn fits(&self, asked: &GatherRequest) -> Result<(), String> {
        let ours = &self.asked;
        if asked.name != ours.name {
            let GatherRequest { name, members, .. } = ours;
            return Err(format!("{members} PCs are measuring here together under another name, {name}"));
        }
        if asked.members != ours.members {
            let (ours, theirs) = (ours.members, asked.members);
            return Err(format!("the group {} is for {ours} PCs, not for {theirs}: give the same number on all", asked.name));
        }
        if asked.ways != ours.ways {
            return Err(format!("the group {} measures other directions: give the same options on all PCs", asked.name));
        }
        Ok(())
    }

    /// A member waits for all others from now on, for at most `wait`; gives the number of the round to look for.
    ///
    /// # Errors
    /// The group is not complete, or broken: one sentence.
    pub fn meet(&mut self, id: Id, told: Option<BitRate>, wait: Duration, now: Duration) -> Result<u64, String> {
        self.expire(now);
        if let Some(reason) = &self.broken {
            return Err(reason.clone());
        }
        let complete = self.complete;
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.id == id && !seat.gone).filter(|_| complete) else {
            return Err("only the members of a complete group can meet".to_owned());
        };
        seat.arrived = Some(Arrival { told, since: now, wait: wait.min(LONGEST_MEETING) });
        let round = self.round;
        if self.seats.iter().all(|seat| seat.arrived.is_some()) {
            self.conclude();
        }
        Ok(round)
    }

    /// All are there: what each told, and when each began since the last meeting.
    fn conclude(&mut self) {
        let earliest = self.seats.iter().filter_map(|seat| seat.began).min().unwrap_or_default();
        let after = |began: Duration| Elapsed::from(began.saturating_sub(earliest));
        self.met = Met {
            told: self.seats.iter().map(|seat| seat.arrived.and_then(|arrival| arrival.told)).collect(),
            began_us: self.seats.iter().map(|seat| seat.began.map(after)).collect(),
        };
        self.round += 1;
        for seat in &mut self.seats {
            (seat.arrived, seat.began) = (None, None);
        }
    }

    /// Whether the round came about. Each round stays known until the next one, which cannot come about before all
    /// have seen this one.
    pub fn look(&mut self, round: u64, now: Duration) -> Meeting {
        self.expire(now);
        if round < self.round {
            return Meeting::Met(self.met.clone());
        }
        self.broken.clone().map_or(Meeting::Waiting, Meeting::Broken)
    }

    /// A member begins a pass.
    pub fn begin(&mut self, id: Id, now: Duration) {
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.id == id) {
            seat.began.get_or_insert(now);
        }
    }

    /// A member is gone, and why. From an open group it is just missing; a complete one breaks.
    pub fn leave(&mut self, id: Id, why: &str) {
        if !self.complete {
            self.seats.retain(|seat| seat.id != id);
            return;
        }
        let Some(index) = self.place_of(id) else { return };
        let who = self.title(index);
        self.broken.get_or_insert_with(|| format!("{who} left the group: {why}"));
        if let Some(seat) = self.seats.get_mut(index) {
            seat.gone = true;
        }
    }

    /// Nobody waits for ever.
    fn expire(&mut self, now: Duration) {
        if self.broken.is_some() {
            return;
        }
        if !self.complete {
            let until = self.until();
            if now > until {
                let (here, all, name) = (self.seats.len(), self.asked.members, &self.asked.name);
                let seconds = until.saturating_sub(self.last_came).as_secs();
                let text = format!("only {here} of {all} PCs came to the group {name}, and nobody new for {seconds} s");
                self.broken = Some(format!("{text}; start the same command on all PCs, one right after the other"));
            }
            return;
        }
        let late = |arrival: &Arrival| now > arrival.since + arrival.wait;
        let Some(wait) = self.seats.iter().filter_map(|seat| seat.arrived).find(late).map(|arrival| arrival.wait) else { return };
        let missing = (0..self.seats.len()).filter(|at| self.seats.get(*at).is_some_and(|seat| seat.arrived.is_none()));
        let missing: Vec<String> = missing.map(|at| self.title(at)).collect();
        self.broken = Some(format!("{} kept the others waiting for more than {} s", missing.join(" and "), wait.as_secs()));
    }

    fn place_of(&self, id: Id) -> Option<usize> {
        self.seats.iter().position(|seat| seat.id == id && !seat.gone)
    }

    fn title(&self, index: usize) -> String {
        let address = self.seats.get(index).map(|seat| seat.address.to_string()).unwrap_or_default();
        format!("PC {} of {} ({address})", index + 1, self.seats.len())
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
