//! Several clients against one agent at the same moment, over loopback and in one process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use weaklink::model::Direction;
use weaklink::model::outcome::Outcome;
use weaklink::model::plan::{Depth, Scope, ThroughputPlan, TogetherPlan, Ways};
use weaklink::model::together::{BothRates, Together};
use weaklink::session::client::ClientSession;
use weaklink::session::dial::Target;
use weaklink::session::steps::together::{self, Gathered};
use weaklink::session::{Agent, AgentEvent, AgentSettings, Event, Events, RunSettings, SessionError};
use weaklink::sys::Stop;
use weaklink::wire::{PairingCode, Reply, Request};

/// The shortest pass that there is.
const PASS: Duration = Duration::from_secs(1);

/// People should know within this time that another PC is gone.
const SOON: Duration = Duration::from_secs(10);

struct Server {
    address: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
    stop: Stop,
    serving: JoinHandle<()>,
}

impl Server {
    fn start() -> Self {
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let tell = move |event: AgentEvent| {
            lines.lock().unwrap().push(match event {
                AgentEvent::Listening(_) => "listening".to_owned(),
                AgentEvent::Begin(peer) => format!("begin {}", peer.ip()),
                AgentEvent::End(peer, how) => format!("end {} {how:?}", peer.ip()),
                AgentEvent::Rejected(peer, why) => format!("rejected {}: {why}", peer.ip()),
                AgentEvent::Note(text) => text,
            });
        };
        let settings = AgentSettings { bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), port: 0, dir: None, code: code() };
        let agent = Agent::bind(settings, tell).unwrap();
        let (address, stop) = (agent.address(), Stop::new());
        let serving = tokio::spawn(agent.serve(stop.clone()));
        Self { address, said, stop, serving }
    }

    async fn client(&self) -> Result<Client, SessionError> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&told);
        let sink = move |event| {
            if let Event::Part { what, .. } = event {
                lines.lock().unwrap().push(what);
            }
        };
        let session = ClientSession::open(settings(self.address), Events::new(sink, Stop::new())).await?;
        Ok(Client { session, told })
    }

    /// The client, as soon as those before it have gone.
    async fn client_soon(&self) -> Client {
        let until = Instant::now() + SOON;
        loop {
            match self.client().await {
                Err(SessionError::Busy { .. }) if Instant::now() < until => tokio::task::yield_now().await,
                result => return result.unwrap(),
            }
        }
    }

    /// Ends it; gives what it told its owner.
    async fn end(self) -> Vec<String> {
        self.stop.set();
        self.serving.await.unwrap();
        Arc::into_inner(self.said).map(|said| said.into_inner().unwrap()).unwrap_or_default()
    }
}

struct Client {
    session: ClientSession,
    told: Arc<Mutex<Vec<String>>>,
}

impl Client {
    async fn gather(&mut self, name: &str, members: u32) -> Result<Gathered, SessionError> {
        let plan = TogetherPlan { name: name.to_owned(), members };
        together::gather(&mut self.session, &plan, Ways::All, PASS).await
    }

    /// The whole, as a task of its own.
    fn measure(mut self, members: u32) -> JoinHandle<(Outcome<Together>, Vec<String>)> {
        tokio::spawn(async move {
            let group = self.gather("lab", members).await.unwrap();
            let result = together::measure(&mut self.session, &group).await.unwrap();
            let told = self.told.lock().unwrap().clone();
            (result, told)
        })
    }

    /// Asks as an ordinary diagnosis does.
    async fn ordinary(&mut self) -> Result<Reply, SessionError> {
        self.session.ask(Request::Tokens { count: 1 }).await
    }
}

fn code() -> PairingCode {
    PairingCode::from_random([7; 16])
}

fn settings(agent: SocketAddr) -> RunSettings {
    let target = Target { host: agent.ip().to_string(), port: agent.port() };
    RunSettings {
        depth: Depth::Quick,
        throughput: ThroughputPlan { streams: Some(2), ..ThroughputPlan::default() },
        ..RunSettings::new(Scope::Throughput, target, code())
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn is_busy<T>(result: &Result<T, SessionError>) -> bool {
    matches!(result, Err(SessionError::Busy { .. }))
}

#[test]
fn three_pcs_get_one_table_and_nobody_else_gets_in() {
    runtime().block_on(async {
        let server = Arc::new(Server::start());
        // All at the same moment: whoever comes first opens the group, and the others wait for what it wants.
        let tasks = [(); 3].map(|()| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.client().await.unwrap().measure(3).await.unwrap() })
        });
        let until = Instant::now() + SOON;
        while !is_busy(&server.client().await.map(|_| ())) {
            assert!(Instant::now() < until, "somebody gets in beside a complete group");
        }
        let mut tables = Vec::new();
        for task in tasks {
            let (result, told) = task.await.unwrap();
            for words in ["PC 1 of 3 alone", "all 3 PCs at once: "] {
                assert!(told.iter().any(|what| what.contains(words)), "{words}: {told:?}");
            }
            tables.push(result.measured().cloned().unwrap());
        }
        check(&tables);
        assert!(
            matches!(server.client_soon().await.ordinary().await, Ok(Reply::Tokens(_))),
            "afterwards everything is as before"
        );
        let said = Arc::into_inner(server).unwrap().end().await;
        for index in 1..=3 {
            let words = format!("127.0.0.1: PC {index} of 3 in the group lab");
            assert!(said.contains(&words), "{words}: {said:?}");
        }
        assert!(said.iter().any(|line| line.starts_with("rejected 127.0.0.1: 127.0.0.1 is being served")), "{said:?}");
    });
}

/// Three tables of the same measurement.
fn check(tables: &[Together]) {
    let mut owns: Vec<u32> = tables.iter().map(|table| table.own).collect();
    owns.sort_unstable();
    assert_eq!(owns, [0, 1, 2]);
    for table in tables {
        assert_eq!((table.name.as_str(), &table.ended, table.members.len()), ("lab", &None, 3));
        assert_eq!(table.members, tables[0].members, "all have the same figures in the same order");
        for direction in [Direction::Upload, Direction::Download] {
            let rates: Option<Vec<u64>> =
                table.members.iter().map(|member| member.together.of(direction).map(|rate| rate.0)).collect();
            // A machine that is busy enough lets one begin so late that no common time is left.
            let Some(rates) = rates else {
                continue;
            };
            assert_eq!(table.sum(direction).unwrap().0, rates.iter().sum::<u64>());
            assert!(table.fairness(direction).is_none_or(|index| (0.0..=1.0 + 1e-9).contains(&index)));
            assert!(table.best_alone(direction).is_some());
        }
    }
}

fn wish(members: u32) -> Request {
    Request::Gather(weaklink::wire::message::GatherRequest {
        name: "lab".to_owned(),
        members,
        ways: Ways::All,
        time_us: PASS.into(),
    })
}

#[test]
fn whoever_comes_for_something_else_is_refused_and_disturbs_nobody() {
    runtime().block_on(async {
        let server = Server::start();
        let mut first = server.client().await.unwrap();
        assert!(matches!(first.session.ask(wish(2)).await, Ok(Reply::Waiting { present: 1, .. })));
        let mut stranger = server.client().await.unwrap();
        assert!(is_busy(&stranger.ordinary().await), "a diagnosis beside a group");
        for (name, members, word) in [("other", 2, "another name, lab"), ("lab", 3, "for 2 PCs, not for 3")] {
            let refused = server.client().await.unwrap().gather(name, members).await;
            assert!(matches!(&refused, Err(SessionError::Group(why)) if why.contains(word)), "{refused:?}");
        }
        let mut second = server.client().await.unwrap();
        let (ours, theirs) = tokio::join!(first.gather("lab", 2), second.gather("lab", 2));
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!((ours.own, theirs.own), (0, 1));
        assert_eq!((ours.addresses.len(), &ours.addresses), (2, &theirs.addresses));
        drop((first, second));
        let said = server.end().await;
        assert!(said.iter().any(|line| line.contains("rejected") && line.contains("another name")), "{said:?}");
    });
}

#[test]
fn one_that_is_gone_in_the_middle_is_named_and_holds_up_nobody() {
    runtime().block_on(async {
        let server = Server::start();
        let mut first = server.client().await.unwrap();
        assert!(matches!(first.session.ask(wish(3)).await, Ok(Reply::Waiting { present: 1, .. })));
        let (second, mut third) = (server.client().await.unwrap(), server.client().await.unwrap());
        let tasks = [first.measure(3), second.measure(3)];
        let group = third.gather("lab", 3).await.unwrap();
        // It takes part in the first meeting and no more.
        let met = third.session.ask(Request::Meet { told: None, wait_us: SOON.into() }).await;
        assert!(matches!(met, Ok(Reply::Met(_))), "{met:?}");
        drop(third);
        let begun = Instant::now();
        for task in tasks {
            let (result, _) = task.await.unwrap();
            let why = result.why().unwrap_or_default();
            assert!(why.contains(&format!("PC {} of 3 (127.0.0.1) left the group", group.own + 1)), "{why}");
        }
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert!(matches!(server.client_soon().await.ordinary().await, Ok(Reply::Tokens(_))));
        server.end().await;
    });
}

#[test]
fn both_at_once_is_no_direction() {
    runtime().block_on(async {
        let server = Server::start();
        let mut client = server.client().await.unwrap();
        let group = Gathered { name: "lab".to_owned(), own: 0, addresses: Vec::new(), ways: Ways::Both, time: PASS };
        let result = together::measure(&mut client.session, &group).await.unwrap();
        assert!(result.why().is_some_and(|why| why.contains("one direction after the other")));
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_pc_that_failed_leaves_the_sum_open() {
    let rates =
        |mbit: Option<u64>| BothRates { upload_bps: mbit.map(|m| weaklink::units::BitRate(m * 1_000_000)), download_bps: None };
    let member =
        |mbit| weaklink::model::together::Member { address: "192.0.2.1".to_owned(), alone: rates(mbit), together: rates(mbit) };
    let table = |list: &[Option<u64>]| Together {
        name: "lab".to_owned(),
        own: 0,
        members: list.iter().map(|mbit| member(*mbit)).collect(),
        ended: None,
    };
    assert_eq!(table(&[Some(100), None]).sum(Direction::Upload), None);
    assert_eq!(table(&[Some(100), Some(300)]).fairness(Direction::Upload), None, "each has what it has alone");
}
