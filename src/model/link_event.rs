//! What the kernel's log told of a host's ports: links that came and went, speeds that fell back, buses in trouble.

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Elapsed};

/// One line of the kernel's log that is about an interface of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEvent {
    /// When it was written, since the kernel started; none where the log has no times.
    pub at_us: Option<Elapsed>,
    /// How long before the log was read; none for what was written later.
    pub before_us: Option<Elapsed>,
    /// For what was written during the run: how long after the log was read first. By the log's own clock, which may stray from the
    /// system's by some seconds, but never beyond the run.
    #[serde(default)]
    pub into_run_us: Option<Elapsed>,
    /// The interface.
    pub interface: String,
    /// What happened.
    pub kind: EventKind,
    /// The line itself: printable ASCII only, of bounded length.
    pub text: String,
}

/// What happened to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The link came up, at this speed where the line says so.
    Up(Option<BitRate>),
    /// The link went down: a cable, the partner, or someone who restarted the port.
    Down,
    /// The link came up slower than was negotiated, because the fast way did not work; from and to, where the line says so.
    Downshift([Option<BitRate>; 2]),
    /// The transmitter stood still for seconds.
    TxTimeout,
    /// The driver started the port anew.
    Reset,
    /// The port vanished from its bus.
    Gone,
    /// The bus mended an error by itself: a few are normal.
    BusErrorCorrected,
    /// The bus had an error that it could not mend.
    BusError,
    /// The bus gives the port less than the port could use: this rate, before the bus's own overhead.
    BusLimited(Option<BitRate>),
    /// A USB device came up at this speed.
    UsbAttached(Option<BitRate>),
    /// A USB device was reset, at this speed.
    UsbReset(Option<BitRate>),
    /// A USB device runs slower than it could.
    UsbSlow,
    /// A bond took a port out of use, since its link was down.
    BondPortDown,
    /// A bond took a port into use.
    BondPortUp,
    /// A bond heard no LACP from its partner.
    NoLacpPartner,
    /// A port did not fit into the bond's aggregation: another partner or another key.
    LacpMismatch,
    /// The partner did not negotiate, so half duplex was assumed.
    HalfDuplexAssumed,
    /// The port was slowed down or stopped since it was too hot.
    Overheated,
}

/// What the kernel's log told while a run went on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRest {
    /// The lines about interfaces of the link, oldest first.
    pub events: Vec<LinkEvent>,
    /// How long the log was followed.
    pub followed_us: Elapsed,
}

impl LogRest {
    /// Its newest lines, as many and as long as an honest end tells, and none from later than the run.
    pub fn bounded(self) -> impl Iterator<Item = LinkEvent> {
        let (older, followed) = (self.events.len().saturating_sub(MOST_EVENTS), self.followed_us);
        self.events.into_iter().skip(older).filter(|event| event.interface.len() <= LONGEST_NAME).map(move |mut event| {
            event.into_run_us = Some(event.into_run_us.map_or(followed, |into| into.min(followed)));
            event.text = event.text.chars().take(LONGEST_TEXT).collect();
            LinkEvent { before_us: None, ..event }
        })
    }
}

/// The last events of a log are kept; a port that breaks every second fills this in four minutes.
pub const MOST_EVENTS: usize = 256;
/// No line of a log is told with more characters than these.
const LONGEST_TEXT: usize = 240;
/// A name of more bytes is none of an interface (15).
const LONGEST_NAME: usize = 64;

impl LinkEvent {
    /// The links that went down in a list of events of one interface, with the time of each before the log was read.
    ///
    /// Several lines about one and the same break count once.
    pub fn breaks<'a>(events: impl IntoIterator<Item = &'a Self>, interface: &str) -> impl Iterator<Item = &'a Self> {
        let mut down = false;
        events.into_iter().filter(move |event| event.interface == interface).filter(move |event| {
            let was = down;
            match event.kind {
                EventKind::Down | EventKind::Gone => down = true,
                EventKind::Up(_) | EventKind::Downshift(_) => down = false,
                _ => return false,
            }
            down && !was
        })
    }

    /// The fall back of an interface's present link: that of the last time it came up.
    pub fn downshift<'a>(events: &'a [Self], interface: &str) -> Option<&'a Self> {
        use EventKind::{Down, Downshift, Gone, Up};
        let own = |event: &&Self| event.interface == interface && matches!(event.kind, Up(_) | Down | Gone | Downshift(_));
        let mut own = events.iter().rev().filter(own);
        let last = own.next()?;
        // The lines of the PHY, the driver and the kernel about one and the same link stand side by side, in any order.
        let near = |event: &&Self| match (last.at_us, event.at_us) {
            (Some(a), Some(b)) => a.0.abs_diff(b.0) <= TOGETHER.0,
            _ => true,
        };
        let up = |event: &&Self| matches!(event.kind, Up(_) | Downshift(_));
        let fell = |event: &&Self| matches!(event.kind, Downshift(_));
        let link = std::iter::once(last).chain(own).take_while(|event| up(event) && near(event));
        link.filter(fell).max_by_key(|event| matches!(event.kind, Downshift([Some(_), _])))
    }
}

/// A driver and its PHY write about one link within this time of each other: the PHY is asked every second where it has no interrupt.
const TOGETHER: Elapsed = Elapsed(3_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, interface: &str, kind: EventKind) -> LinkEvent {
        let at_us = Some(Elapsed(at * 1_000_000));
        LinkEvent { at_us, before_us: None, into_run_us: None, interface: interface.into(), kind, text: String::new() }
    }

    #[test]
    fn one_break_that_several_lines_tell_counts_once() {
        let events = [
            event(1, "eth0", EventKind::Up(None)),
            event(5, "eth0", EventKind::Down),
            event(5, "eth0", EventKind::Down),
            event(6, "eth1", EventKind::Down),
            event(8, "eth0", EventKind::Up(None)),
            event(9, "eth0", EventKind::TxTimeout),
            event(9, "eth0", EventKind::Gone),
        ];
        let breaks = |name| LinkEvent::breaks(&events, name).count();
        assert_eq!((breaks("eth0"), breaks("eth1"), breaks("eth2")), (2, 1, 0));
    }

    #[test]
    fn a_log_without_bound_is_cut_short_and_nothing_is_of_later_than_the_run() {
        let told = |at, into: Option<u64>| LinkEvent { into_run_us: into.map(Elapsed), ..event(at, "eth0", EventKind::Down) };
        let mut events: Vec<LinkEvent> = (0..10_000).map(|at| told(at, Some(at))).collect();
        events.push(LinkEvent { text: "\u{1b}[2J".repeat(9_000), ..told(1, Some(u64::MAX)) });
        events.push(LinkEvent { before_us: Some(Elapsed(1)), ..told(2, None) });
        events.push(LinkEvent { interface: "x".repeat(1 << 20), ..told(3, Some(1)) });
        let kept: Vec<LinkEvent> = LogRest { events, followed_us: Elapsed(9_990) }.bounded().collect();
        assert_eq!(kept.len(), MOST_EVENTS - 1);
        assert!(kept.iter().all(|event| event.into_run_us.is_some_and(|into| into <= Elapsed(9_990))));
        assert!(kept.iter().all(|event| event.before_us.is_none() && event.text.chars().count() <= LONGEST_TEXT));
    }

    #[test]
    fn a_fall_back_counts_for_the_present_link_only() {
        let fell = EventKind::Downshift([Some(BitRate::from_mbit(1000)), Some(BitRate::from_mbit(100))]);
        let short = EventKind::Downshift([None, Some(BitRate::from_mbit(100))]);
        for (sentence, events, expected) in [
            ("the PHY's line, then the driver's", vec![event(5, "eth0", fell), event(5, "eth0", short)], Some(fell)),
            ("the driver's plain line after it", vec![event(5, "eth0", fell), event(6, "eth0", EventKind::Up(None))], Some(fell)),
            ("only the driver's", vec![event(5, "eth0", short)], Some(short)),
            ("a later link at full speed", vec![event(5, "eth0", fell), event(60, "eth0", EventKind::Up(None))], None),
            ("no link now", vec![event(5, "eth0", fell), event(60, "eth0", EventKind::Down)], None),
            ("another port's", vec![event(5, "eth1", fell)], None),
            ("none", vec![], None),
        ] {
            assert_eq!(LinkEvent::downshift(&events, "eth0").map(|event| event.kind), expected, "{sentence}");
        }
    }
}
