//! The passes against an iperf3 server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::iperf3::client::{ClientError, Test, TestResult, UdpTest, Ways, datagrams, passes, run};
use crate::model::flows::FORETOLD_WITH_AGENT;
use crate::model::host::Direction;
use crate::model::outcome::Outcome;
use crate::model::plan::{ThroughputPlan, UdpPlan};
use crate::model::throughput::{BothWays, DirectionThroughput, FarEnd, PACED, Pass, ThroughputSection};
use crate::model::udp::{UdpDirection, UdpPass, UdpSection};
use crate::session::around::Bracket;
use crate::session::error::SessionError;
use crate::session::event::{Event, Events, Step, Watch};
use crate::session::foreign::Iperf3Settings;
use crate::session::served::blocking;
use crate::session::steps::sweep::{NUMBERS, Numbers, PASS, Sweep, asked_time};
use crate::session::steps::throughput::streams_in_words;
use crate::sys::Progress;
use crate::throughput::udp::LOSS_COUNTS;
use crate::wire::message::Around;

/// What a test costs beside its time: connections, results, and the moment that a server needs until it takes the next.
const BESIDE: Duration = Duration::from_millis(300);

/// The payload of a datagram where none was asked for: it fits 1500 bytes with IPv6's headers and some options, as iperf3's own does.
const DATAGRAM: u32 = 1448;

/// Why an idle round-trip time is missing.
const NO_ECHO: &str = "an iperf3 server answers no echoes; `weaklink serve` on the NAS would";

/// How long all tests take at most, as far as it is known before.
pub fn expected(plan: &ThroughputPlan) -> Duration {
    let ways = Direction::BOTH.into_iter().filter(|way| plan.ways.has(*way)).count() as u32;
    let sweeps = plan.udp.is_none() && Numbers::asked(plan, true) == Numbers::WhileItGrows;
    let each = if sweeps { 1 + NUMBERS.len() as u32 } else { 1 };
    (longest(plan).min(Duration::from_secs(10)) + BESIDE) * (ways * each + u32::from(plan.ways.has_both() && plan.udp.is_none()))
}

fn longest(plan: &ThroughputPlan) -> Duration {
    asked_time(plan).unwrap_or(PASS)
}

/// The whole step. The first test that fails for a reason of the server's ends it; later ones are told as failed.
pub async fn measure(
    settings: &Iperf3Settings,
    events: &Events,
    peer: SocketAddr,
    interfaces: &[String],
) -> Result<ThroughputSection, SessionError> {
    let mut tester = Tester { settings, events, peer, interfaces, met: false };
    if let Some(udp) = settings.throughput.udp {
        return tester.udp(udp).await;
    }
    let ways = settings.throughput.ways;
    let mut section = ThroughputSection::new(
        DirectionThroughput::skipped("this direction by itself was not asked for"),
        DirectionThroughput::skipped("this direction by itself was not asked for"),
        Outcome::skipped(NO_ECHO),
    );
    section.far_end = FarEnd::Iperf3Server;
    for direction in Direction::BOTH.into_iter().filter(|direction| ways.has(*direction)) {
        let done = tester.direction(direction).await?;
        match direction {
            Direction::Upload => section.upload = done,
            Direction::Download => section.download = done,
        }
    }
    section.both = if ways.has_both() {
        let best = |direction| section.of(direction).best().map_or(1, |pass| pass.streams);
        let streams = settings.throughput.streams.unwrap_or_else(|| best(Direction::Upload).max(best(Direction::Download)));
        tester.both(streams).await?
    } else {
        Outcome::skipped("both directions at once were not asked for")
    };
    Ok(section)
}

/// One server, test after test.
struct Tester<'a> {
    settings: &'a Iperf3Settings,
    events: &'a Events,
    peer: SocketAddr,
    interfaces: &'a [String],
    /// Whether a test was done: the server is there and is one.
    met: bool,
}

impl Tester<'_> {
    fn test(&self, ways: Ways, streams: u32) -> Test {
        let asked = &self.settings.throughput;
        let mut options = asked.options.clone();
        options.congestion = asked.congestion.first().cloned();
        Test {
            ways,
            streams,
            time: longest(asked),
            options,
            mss_bytes: asked.mss_bytes,
            bind: self.settings.bind,
            patience: Duration::from_secs(3),
            ..Test::default()
        }
    }

    /// Runs one test beside processors and counters.
    async fn run(&mut self, test: Test, what: String) -> Result<Outcome<(TestResult, Around)>, SessionError> {
        let progress = Progress::default();
        let watch: Watch = {
            let progress = progress.clone();
            Arc::new(move || progress.bytes())
        };
        self.events.part(Step::Throughput, what, test.time, Some(watch));
        let (peer, stop, interfaces) = (self.peer, self.events.interrupt.clone(), self.interfaces.to_vec());
        let (result, around) = blocking(move || {
            let bracket = Bracket::start(&interfaces);
            let result = run(peer, &test, &stop, &progress);
            (result, bracket.finish())
        })
        .await;
        if self.events.interrupt.is_set() {
            return Err(SessionError::Interrupted);
        }
        match result {
            Ok(result) => {
                self.met = true;
                Ok(Outcome::Measured((result, around)))
            }
            Err(ClientError::Interrupted) => Err(SessionError::Interrupted),
            Err(error) if !self.met => Err(SessionError::Iperf3(error.to_string())),
            Err(error) => Ok(Outcome::failed(error.to_string())),
        }
    }

    async fn pass(&mut self, direction: Direction, streams: u32) -> Result<Outcome<Pass>, SessionError> {
        let ways = match direction {
            Direction::Upload => Ways::Upload,
            Direction::Download => Ways::Download,
        };
        let words = format!("{}, {}", direction.arrow(), streams_in_words(streams));
        let done = self.run(self.test(ways, streams), words).await?;
        Ok(done.and_then(|(result, around)| {
            let found = passes(&result).into_iter().find(|(way, _)| *way == direction);
            let pass = found.map_or_else(|| Outcome::failed("the test has no pass of this direction"), |(_, pass)| pass);
            for text in pass.measured().into_iter().flat_map(|pass| &pass.doubts) {
                self.events.tell(Event::Note(format!("{}: {text}.", direction.arrow())));
            }
            attach(pass, &around)
        }))
    }

    async fn direction(&mut self, direction: Direction) -> Result<DirectionThroughput, SessionError> {
        let asked = Numbers::asked(&self.settings.throughput, true);
        let single = match asked {
            Numbers::Only(streams) => Outcome::skipped(format!("--streams {streams} was asked for")),
            _ => self.pass(direction, 1).await?,
        };
        let mut sweep = Sweep::new(single);
        let numbers = match &asked {
            Numbers::One => &[],
            Numbers::OneAtAPace => {
                sweep.0.multi = Outcome::skipped(PACED);
                &[]
            }
            Numbers::Only(streams) | Numbers::OneAnd(streams) => std::slice::from_ref(streams),
            Numbers::WhileItGrows => &NUMBERS[..],
        };
        for streams in numbers {
            if !sweep.take(self.pass(direction, *streams).await?) {
                break;
            }
        }
        Ok(sweep.0)
    }

    async fn both(&mut self, streams: u32) -> Result<Outcome<BothWays>, SessionError> {
        let words = format!("both ways at once, {} each", streams_in_words(streams));
        let done = self.run(self.test(Ways::Both, streams), words).await?;
        Ok(done.map(|(result, around)| {
            let missing = || Outcome::failed("the test has no pass of this direction");
            let mut both = BothWays { upload: missing(), download: missing() };
            for (direction, pass) in passes(&result) {
                let pass = attach(pass, &around);
                match direction {
                    Direction::Upload => both.upload = pass,
                    Direction::Download => both.download = pass,
                }
            }
            both
        }))
    }

    async fn udp(&mut self, plan: UdpPlan) -> Result<ThroughputSection, SessionError> {
        let none = || DirectionThroughput::skipped("--udp was asked for: datagrams in place of TCP");
        let skipped = || Outcome::skipped("this direction was not asked for");
        let mut udp = UdpSection { upload: skipped(), download: skipped() };
        let len = plan.datagram_bytes.unwrap_or(DATAGRAM);
        let rate = plan.rate_bps.unwrap_or_default();
        for direction in Direction::BOTH.into_iter().filter(|way| self.settings.throughput.ways.has(*way)) {
            let ways = if direction == Direction::Upload { Ways::Upload } else { Ways::Download };
            let test = Test { udp: Some(UdpTest { rate, len }), ..self.test(ways, 1) };
            let done = self.run(test, format!("{}, datagrams at {rate}", direction.arrow())).await?;
            let found = done.and_then(|(result, around)| {
                let found = datagrams(&result).into_iter().find(|(way, _)| *way == direction);
                found.map_or_else(
                    || Outcome::failed("the test has no pass of this direction"),
                    |(_, datagrams)| {
                        datagrams.map(|datagrams| {
                            for text in &datagrams.notes {
                                self.events.tell(Event::Note(format!("{}: {text}.", direction.arrow())));
                            }
                            UdpPass { cpu_pc: around.cpu, counters_pc: around.counters, ..datagrams.pass }
                        })
                    },
                )
            });
            let found = found.map(|pass| one_rate(pass, len));
            match direction {
                Direction::Upload => udp.upload = found,
                Direction::Download => udp.download = found,
            }
        }
        let section = ThroughputSection::new(none(), none(), Outcome::skipped(NO_ECHO));
        Ok(ThroughputSection { far_end: FarEnd::Iperf3Server, udp: Outcome::Measured(udp), ..section })
    }
}

/// A direction in which one rate was tried. An iperf3 server does not tell who lost what is missing: it stands as the network's.
fn one_rate(pass: UdpPass, len: u32) -> UdpDirection {
    let clean = pass.received > 0 && pass.network_loss() < LOSS_COUNTS;
    let rate = Some(pass.sent_bps);
    UdpDirection {
        datagram_bytes: len,
        send: "send".to_owned(),
        receive: "recv".to_owned(),
        clean_bps: rate.filter(|_| clean),
        loss_from_bps: rate.filter(|_| !clean),
        ended_because: "one rate was asked for".to_owned(),
        passes: vec![pass],
    }
}

/// Puts in what this end saw beside the streams.
fn attach(pass: Outcome<Pass>, around: &Around) -> Outcome<Pass> {
    pass.map(|pass| Pass {
        cpu_pc: around.cpu.clone(),
        counters_pc: around.counters.clone(),
        loaded_rtt: Outcome::skipped(NO_ECHO),
        flows: Outcome::skipped(FORETOLD_WITH_AGENT),
        ..pass
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cpu::CpuWindow;
    use crate::model::plan::Ways as Asked;
    use crate::model::throughput::PassOptions;
    use crate::units::{BitRate, Elapsed};

    #[test]
    fn the_time_is_that_of_all_tests_and_a_pace_or_a_number_needs_one_for_each_direction() {
        let seconds = |plan: &ThroughputPlan, tests: u32| (Duration::from(plan.time_us.unwrap()) + BESIDE) * tests;
        let plan = || ThroughputPlan { time_us: Some(Elapsed(2_000_000)), ..ThroughputPlan::default() };
        let paced = PassOptions { pacing_bps: Some(BitRate::from_mbit(100)), ..PassOptions::default() };
        for (case, plan, tests) in [
            ("one, four, eight, sixteen streams each way, and both", plan(), 2 * 4 + 1),
            ("one number", ThroughputPlan { streams: Some(4), ..plan() }, 2 + 1),
            ("a pace", ThroughputPlan { options: paced.clone(), ..plan() }, 2 + 1),
            ("a pace one way", ThroughputPlan { options: paced, ways: Asked::Upload, ..plan() }, 1),
            ("datagrams", ThroughputPlan { udp: Some(UdpPlan::default()), ..plan() }, 2),
        ] {
            assert_eq!(expected(&plan), seconds(&plan, tests), "{case}");
        }
    }

    fn datagrams_of(sent: u64, received: u64) -> UdpPass {
        UdpPass {
            asked_bps: BitRate::from_mbit(100),
            sent_bps: BitRate::from_mbit(99),
            received_bps: BitRate::from_mbit(98),
            sent,
            refused: 0,
            received,
            lost: sent.saturating_sub(received),
            dropped_by_receiver: Outcome::skipped("an iperf3 server does not tell"),
            duplicates: 0,
            reordered: 0,
            longest_loss: 0,
            jitter_us: Elapsed(0),
            queue_median_us: Elapsed(0),
            queue_p99_us: Elapsed(0),
            elapsed_us: Elapsed(1_000_000),
            bins: crate::model::throughput::Bins::default(),
            cpu_pc: Outcome::skipped("not told"),
            cpu_nas: Outcome::skipped("not told"),
            counters_pc: Outcome::skipped("not told"),
            counters_nas: Outcome::skipped("not told"),
        }
    }

    #[test]
    fn one_rate_is_clean_or_not_and_nothing_that_arrived_is_not_clean() {
        for (case, sent, received, clean) in [
            ("all arrived", 10_000, 10_000, true),
            ("the tenth part is missing", 10_000, 9_000, false),
            ("nothing was sent, so nothing is shown", 0, 0, false),
            ("all was lost", 10_000, 0, false),
        ] {
            let found = one_rate(datagrams_of(sent, received), 1448);
            // What the sender reached, not what was asked of it.
            let rate = Some(BitRate::from_mbit(99));
            let expected = if clean { (rate, None) } else { (None, rate) };
            assert_eq!((found.clean_bps, found.loss_from_bps), expected, "{case}");
            assert_eq!((found.passes.len(), found.ended_because.as_str()), (1, "one rate was asked for"), "{case}");
        }
    }

    #[test]
    fn what_this_end_saw_stands_with_a_pass_and_echoes_are_told_as_missing() {
        let window: Outcome<CpuWindow> = Outcome::failed("no /proc");
        let around = Around {
            cpu: window,
            counters: Outcome::Measured(std::collections::BTreeMap::new()),
            spread: Outcome::skipped("nothing is aggregated"),
            flows: Outcome::skipped("nothing is aggregated"),
        };
        let pass = attach(Outcome::Measured(Pass::blank(4)), &around);
        let pass = pass.measured().unwrap();
        assert_eq!(pass.flows, Outcome::skipped(FORETOLD_WITH_AGENT));
        assert_eq!((pass.cpu_pc.why(), pass.loaded_rtt.why()), (Some("no /proc"), Some(NO_ECHO)));
        assert!(pass.counters_pc.measured().is_some() && pass.cpu_nas.measured().is_none());
        assert_eq!(attach(Outcome::failed("it left"), &around).why(), Some("it left"));
    }
}
