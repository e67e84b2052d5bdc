//! Who may be served at the same time: one client, or the members of one group.
//!
//! [`Floor`] is pure: it is told who comes, asks and goes, and says who is turned away. [`Hall`] is the same with a
//! clock and a lock, and [`Place`] one client's stay in it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::session::agent::lock;
use crate::session::group::{Coming, Group, Id, MEMBERS, Meeting};
use crate::units::{BitRate, Elapsed};
use crate::wire::Reply;
use crate::wire::message::{GatherRequest, Gathering};

/// How long a newcomer waits for the one before it to say whether it opens a group: it says so after 2 s without an answer on UDP,
/// and the newcomer's own patience for our first word is 8 s.
const UNDECIDED: Duration = Duration::from_secs(4);

/// How long a client that was let in to join a group may take to do so; the same 2 s, and a slow host.
const JOIN: Duration = Duration::from_secs(6);

/// How long the answer to `Gather` waits for a change: the client shows signs of waiting, and sees soon that all are there.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How often somebody who waits looks by itself, for what no event tells: time that is over.
const LOOK: Duration = Duration::from_millis(200);

/// What a client is here for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has not said so yet.
    Fresh,
    /// A diagnosis of its own.
    Alone,
    /// To measure with others.
    Member,
}

#[derive(Clone, Copy, Debug)]
struct Guest {
    address: SocketAddr,
    since: Duration,
    standing: Standing,
}

/// May a newcomer come in?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, under this number.
    Enter(Id),
    /// Not decided yet: ask again soon.
    Undecided,
    /// No.
    Busy(Busy),
}

/// Somebody else is being served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Who.
    pub peer: SocketAddr,
    /// For how long already.
    pub served: Duration,
    /// Nothing runs yet: a group waits for its PCs.
    pub gathering: Option<Gathering>,
}

impl Busy {
    /// The answer to a client.
    pub fn reply(&self) -> Reply {
        let gathering = self.gathering.clone();
        Reply::Busy { peer: self.peer.ip().to_string(), since_us: self.served.into(), gathering }
    }

    /// The same for the agent's owner.
    pub fn words(&self) -> String {
        match &self.gathering {
            Some(Gathering { name, missing, .. }) => format!("the group {name} waits for {missing} more"),
            None => format!("{} is being served", self.peer.ip()),
        }
    }
}

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turned {
    /// Somebody else is being served.
    Busy(Busy),
    /// One sentence.
    Refused(String),
}

impl Turned {
    /// The answer to a client.
    pub fn reply(self) -> Reply {
        match self {
            Self::Busy(busy) => busy.reply(),
            Self::Refused(why) => Reply::Refused(why),
        }
    }
}

/// Everybody who is being served.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    guests: BTreeMap<Id, Guest>,
    group: Option<Group>,
    next: Id,
}

impl Floor {
    /// A client with the right code has come, `waited` ago.
    pub fn arrive(&mut self, address: SocketAddr, waited: Duration, now: Duration) -> Admission {
        if let Some(busy) = self.first_but(None, now) {
            let open = self.group.as_mut().is_some_and(|group| group.is_open(now));
            // More than a group can have would only wait.
            let room = self.guests.len() < *MEMBERS.end() as usize;
            let decided = self.guests.values().any(|guest| guest.standing != Standing::Fresh);
            if !open && !decided && waited < UNDECIDED {
                return Admission::Undecided;
            }
            if !(open && room) {
                return Admission::Busy(busy);
            }
        }
        let id = self.next;
        self.next += 1;
        self.guests.insert(id, Guest { address, since: now, standing: Standing::Fresh });
        Admission::Enter(id)
    }

    /// A client asks for something of an ordinary diagnosis.
    ///
    /// # Errors
    /// Somebody else is being served, or its group is not complete yet.
    pub fn work(&mut self, id: Id, now: Duration) -> Result<(), Turned> {
        let busy = self.first_but(Some(id), now).filter(|_| {
            let others = self.guests.iter().filter(|(other, _)| **other != id);
            others.into_iter().any(|(_, guest)| guest.standing != Standing::Fresh)
        });
        let open = self.group.as_mut().is_some_and(|group| group.is_open(now));
        let Some(guest) = self.guests.get_mut(&id) else { return Err(gone()) };
        match (guest.standing, busy) {
            (Standing::Fresh, Some(busy)) => return Err(Turned::Busy(busy)),
            (Standing::Fresh, None) => guest.standing = Standing::Alone,
            (Standing::Member, _) if open => return Err(Turned::Refused("the group is not complete yet".to_owned())),
            (Standing::Alone | Standing::Member, _) => {}
        }
        Ok(())
    }

    /// A client asks whether all of its group are there; the first one opens it.
    ///
    /// # Errors
    /// It cannot take part: its wish does not fit, or the group will not be complete.
    pub fn gather(&mut self, id: Id, asked: &GatherRequest, now: Duration) -> Result<Coming, Turned> {
        let Some(address) = self.guests.get(&id).map(|guest| guest.address.ip()) else { return Err(gone()) };
        if let Some(busy) = self.first_but(Some(id), now).filter(|_| self.group.is_none() && self.works(id)) {
            return Err(Turned::Busy(busy));
        }
        let mut group = match self.group.take() {
            Some(group) => group,
            None => Group::open(asked.clone(), now).map_err(Turned::Refused)?,
        };
        let coming = group.come(id, address, asked, now);
        if coming.is_err() && !group.is_complete() {
            group.leave(id, "");
        }
        let member = group.has(id);
        self.group = (!group.is_empty()).then_some(group);
        if let Some(guest) = self.guests.get_mut(&id) {
            // Whoever did not come in has to decide anew what it is here for.
            guest.standing = if member { Standing::Member } else { Standing::Fresh };
        }
        coming.map_err(Turned::Refused)
    }

    /// Whether somebody else runs a diagnosis of its own.
    fn works(&self, but: Id) -> bool {
        self.guests.iter().any(|(id, guest)| *id != but && guest.standing == Standing::Alone)
    }

    /// The group, for meetings.
    pub const fn group(&mut self) -> Option<&mut Group> {
        self.group.as_mut()
    }

    /// Whether this client was let in beside others to join a group, and has not done so in time.
    pub fn overdue(&mut self, id: Id, now: Duration) -> Option<Busy> {
        let guest = self.guests.get(&id)?;
        let late = guest.standing == Standing::Fresh && now.saturating_sub(guest.since) > JOIN;
        let decided = self.guests.values().any(|other| other.standing != Standing::Fresh);
        self.first_but(Some(id), now).filter(|_| late && decided)
    }

    /// A client is gone, and why; its files may still be there.
    pub fn gone(&mut self, id: Id, why: &str) {
        let Some(group) = &mut self.group else { return };
        group.leave(id, why);
        if group.is_empty() {
            self.group = None;
        }
    }

    /// Nothing is left of a client.
    pub fn leave(&mut self, id: Id) {
        self.gone(id, "its session ended");
        self.guests.remove(&id);
    }

    /// Whether somebody at this address is being served.
    pub fn serves(&self, address: IpAddr) -> bool {
        self.guests.values().any(|guest| guest.address.ip() == address)
    }

    /// Whether nobody is being served.
    pub fn is_empty(&self) -> bool {
        self.guests.is_empty()
    }

    /// The one that was here first beside `but`.
    fn first_but(&mut self, but: Option<Id>, now: Duration) -> Option<Busy> {
        let gathering = self.group.as_mut().and_then(|group| group.gathering(now));
        let (_, guest) = self.guests.iter().find(|(id, _)| Some(**id) != but)?;
        Some(Busy { peer: guest.address, served: now.saturating_sub(guest.since), gathering })
    }

    /// The group that waits for its PCs, if there is one.
    pub fn gathering(&mut self, now: Duration) -> Option<Gathering> {
        self.group.as_mut()?.gathering(now)
    }
}

fn gone() -> Turned {
    Turned::Refused("this session is over".to_owned())
}

/// The floor with a clock, and a bell for those who wait.
#[derive(Debug)]
pub struct Hall {
    floor: Mutex<Floor>,
    changed: watch::Sender<()>,
    begun: Instant,
}

impl Hall {
    /// Nobody is here yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { floor: Mutex::default(), changed: watch::Sender::new(()), begun: Instant::now() })
    }

    /// Tells the floor something, and those who wait that it was told.
    fn tell<T>(&self, what: impl FnOnce(&mut Floor, Duration) -> T) -> T {
        let result = what(&mut lock(&self.floor), self.begun.elapsed());
        self.changed.send_replace(());
        result
    }

    /// Asks until there is an answer.
    async fn wait<T>(&self, mut what: impl FnMut(&mut Floor, Duration) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        loop {
            if let Some(answer) = what(&mut lock(&self.floor), self.begun.elapsed()) {
                return answer;
            }
            // The sender lives as long as we do.
            let _ = tokio::time::timeout(LOOK, changes.changed()).await;
        }
    }

    /// Lets a client in that knows the code, or says who is being served. It may take some seconds.
    ///
    /// # Errors
    /// Somebody else is being served.
    pub async fn enter(self: &Arc<Self>, peer: SocketAddr) -> Result<Place, Busy> {
        let came = self.begun.elapsed();
        let admission = self.wait(|floor, now| match floor.arrive(peer, now.saturating_sub(came), now) {
            Admission::Enter(id) => Some(Ok(id)),
            Admission::Undecided => None,
            Admission::Busy(busy) => Some(Err(busy)),
        });
        let id = admission.await?;
        let beside = lock(&self.floor).guests.len() > 1;
        Ok(Place { hall: Arc::clone(self), id, beside })
    }

    /// Whether somebody at this address is being served.
    pub fn serves(&self, address: IpAddr) -> bool {
        lock(&self.floor).serves(address)
    }

    /// Whether nobody is being served.
    pub fn is_empty(&self) -> bool {
        lock(&self.floor).is_empty()
    }
}

/// One client's stay; dropping it, by whatever way, lets the next client in.
#[derive(Debug)]
pub struct Place {
    hall: Arc<Hall>,
    id: Id,
    beside: bool,
}

impl Place {
    /// Whether others were here already when it came.
    pub const fn is_beside(&self) -> bool {
        self.beside
    }

    /// The client asks for something of an ordinary diagnosis.
    ///
    /// # Errors
    /// Somebody else is being served, or its group is not complete yet.
    pub fn work(&self) -> Result<(), Turned> {
        self.hall.tell(|floor, now| floor.work(self.id, now))
    }

    /// Joins the group, or opens it. Answers as soon as something changes, at the latest after a second.
    ///
    /// # Errors
    /// It cannot take part.
    pub async fn gather(&self, asked: &GatherRequest) -> Result<Coming, Turned> {
        let first = self.hall.tell(|floor, now| floor.gather(self.id, asked, now))?;
        let until = self.hall.begun.elapsed() + ASK_AGAIN;
        let news = |floor: &mut Floor, now| match floor.gather(self.id, asked, now) {
            Ok(coming) if coming == first && matches!(coming, Coming::Waiting(_)) && now < until => None,
            result => Some(result),
        };
        self.hall.wait(news).await
    }

    /// The group that waits for its PCs, if there is one.
    pub fn gathering(&self) -> Option<Gathering> {
        lock(&self.hall.floor).gathering(self.hall.begun.elapsed())
    }

    /// Waits for all members of the group.
    pub async fn meet(&self, told: Option<BitRate>, wait: Elapsed) -> Meeting {
        let round = self.hall.tell(|floor, now| match floor.group() {
            Some(group) => group.meet(self.id, told, wait.into(), now),
            None => Err("only the members of a complete group can meet".to_owned()),
        });
        let round = match round {
            Ok(round) => round,
            Err(reason) => return Meeting::Broken(reason),
        };
        let outcome = |floor: &mut Floor, now| match floor.group().map(|group| group.look(round, now)) {
            Some(Meeting::Waiting) => None,
            Some(meeting) => Some(meeting),
            None => Some(Meeting::Broken("the group is over".to_owned())),
        };
        self.hall.wait(outcome).await
    }

    /// The client's pass begins now.
    pub fn begin(&self) {
        let mut floor = lock(&self.hall.floor);
        if let Some(group) = floor.group() {
            group.begin(self.id, self.hall.begun.elapsed());
        }
    }

    /// Completes when the client was let in to join a group and has not done so in time.
    pub async fn overdue(&self) -> Busy {
        self.hall.wait(|floor, now| floor.overdue(self.id, now)).await
    }

    /// The client is gone, and why: those who wait for it learn so, before its files are removed.
    pub fn gone(&self, why: &str) {
        self.hall.tell(|floor, _| floor.gone(self.id, why));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hall.tell(|floor, _| floor.leave(self.id));
    }
}

#[cfg(test)]
mod tests;
