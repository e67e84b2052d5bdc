//! What a real client asks for, and what it says of it.

use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use weaklink::iperf3::{Iperf3Event, MOST_TESTS};

use super::{LONG, Serving, has_iperf3, iperf3};

/// What must be true of a report.
type Check = fn(&Value);

/// The options of the table that are run side by side at most.
const TOGETHER: usize = 6;

fn run(address: SocketAddr, args: &str) -> Output {
    iperf3(address, args).output().unwrap()
}

/// The report of a client that was run with `-J`; it must be whole and without an error.
fn report(address: SocketAddr, args: &str) -> Value {
    let output = run(address, &format!("{args} -J"));
    let text = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("iperf3 {args}: {error}: {text}"));
    assert!(report.get("error").is_none(), "iperf3 {args}: {}", report["error"]);
    assert!(output.status.success(), "iperf3 {args}: {}", output.status);
    report
}

fn bytes(report: &Value, key: &str) -> u64 {
    report["end"][key]["bytes"].as_u64().unwrap_or_else(|| panic!("no {key}: {}", report["end"]))
}

/// What arrived, in bits a second.
fn rate(report: &Value) -> f64 {
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
}

fn streams(report: &Value) -> usize {
    report["end"]["streams"].as_array().unwrap().len()
}

/// One way over TCP: both ends agree on something that moved, and what arrived was sent.
fn one_way(report: &Value) {
    let (sent, received) = (bytes(report, "sum_sent"), bytes(report, "sum_received"));
    assert!(received > 0 && sent >= received, "{sent} sent, {received} received");
    let seconds = report["end"]["sum_received"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 10.0, "{seconds}");
}

/// Both ways: the same for each.
fn both_ways(report: &Value) {
    one_way(report);
    let (sent, received) = (bytes(report, "sum_sent_bidir_reverse"), bytes(report, "sum_received_bidir_reverse"));
    assert!(received > 0 && sent >= received, "{sent} sent, {received} received, reverse");
}

/// Datagrams: the report has the fields, and they fit together.
fn datagrams(report: &Value) {
    let sum = &report["end"]["sum"];
    let number = |key: &str| sum[key].as_f64().unwrap_or_else(|| panic!("no {key}: {sum}"));
    assert!(number("packets") > 0.0 && number("bytes") > 0.0, "{sum}");
    assert!(number("lost_packets") >= 0.0 && number("lost_packets") < number("packets"), "{sum}");
    assert!(number("jitter_ms") >= 0.0 && number("lost_percent") <= 100.0, "{sum}");
}

const TABLE: &[(&str, usize, Check)] = &[
    ("-t 1", 1, one_way),
    ("-t 1 -R", 1, one_way),
    ("-t 1 -P 4", 4, one_way),
    ("-t 1 -P 4 -R", 4, one_way),
    ("-t 1 --bidir", 2, both_ways),
    ("-t 1 --bidir -P 2", 4, both_ways),
    ("-n 5M", 1, |report| {
        one_way(report);
        assert_eq!(bytes(report, "sum_sent"), bytes(report, "sum_received"), "nothing is lost");
        assert!(bytes(report, "sum_received") >= 5 << 20);
    }),
    ("-n 5M -R", 1, one_way),
    ("-n 5M -R -P 3", 3, one_way),
    ("-k 20", 1, |report| {
        one_way(report);
        assert_eq!(bytes(report, "sum_sent"), bytes(report, "sum_received"));
    }),
    ("-k 20 -R", 1, one_way),
    ("-k 20 -R -P 2", 2, one_way),
    // The two ends leave out their own first seconds each: what was on its way then counts at one of them only.
    ("-t 1 -O 2", 1, |report| {
        assert!(bytes(report, "sum_received") > 0);
        let seconds = report["end"]["sum_received"]["seconds"].as_f64().unwrap();
        assert!(seconds < 2.9, "the first two seconds do not count: {seconds}");
    }),
    ("-t 1 -O 2 -R", 1, |report| {
        assert!(bytes(report, "sum_received") > 0);
        let seconds = report["end"]["sum_sent"]["seconds"].as_f64().unwrap();
        assert!(seconds < 2.9, "the first two seconds do not count: {seconds}");
    }),
    ("-t 1 -M 1000", 1, |report| {
        one_way(report);
        let mss = report["start"]["tcp_mss"].as_u64().or_else(|| report["start"]["tcp_mss_default"].as_u64()).unwrap();
        assert!(mss <= 1000, "{mss}");
    }),
    ("-t 1 -M 1000 -R", 1, one_way),
    ("-t 1 -l 1000", 1, one_way),
    ("-t 1 -l 1000 -R", 1, one_way),
    ("-t 1 -l 1M", 1, one_way),
    ("-t 1 -l 1M -R", 1, one_way),
    ("-t 1 -w 128K", 1, one_way),
    ("-t 1 -w 128K -R", 1, one_way),
    ("-t 1 -b 8M -l 10000", 1, |report| {
        one_way(report);
        assert!(rate(report) < 16e6, "{}", rate(report));
    }),
    ("-t 1 -b 8M -R", 1, |report| {
        one_way(report);
        assert!(rate(report) < 16e6, "the server keeps the rate: {}", rate(report));
    }),
    ("-t 1 -b 8M/5 -R", 1, one_way),
    ("-t 1 -C cubic", 1, one_way),
    ("-t 1 -C cubic -R", 1, |report| {
        one_way(report);
        assert_eq!(report["end"]["sender_tcp_congestion"], "cubic");
    }),
    ("-t 1 -S 0x10", 1, one_way),
    ("-t 1 --dscp ef -R", 1, one_way),
    ("-t 1 -Z", 1, one_way),
    ("-t 1 -N", 1, one_way),
    ("-t 1 -N -R", 1, one_way),
    ("-t 1 --fq-rate 80M -R", 1, one_way),
    ("-t 1 -T title --extra-data more", 1, one_way),
    ("-t 1 --get-server-output", 1, |report| {
        one_way(report);
        let text = report["server_output_text"].as_str().unwrap();
        assert!(text.starts_with("weaklink ") && text.contains("1 TCP stream from the client for 1 s"), "{text}");
    }),
    ("-u -t 1 -b 2M", 1, |report| {
        datagrams(report);
        let bits = report["end"]["sum"]["bits_per_second"].as_f64().unwrap();
        assert!(bits < 4e6, "{bits}");
    }),
    ("-u -t 1 -b 2M -R", 1, datagrams),
    ("-u -t 1 -b 1M -P 3", 3, datagrams),
    ("-u -t 1 -b 1M -P 3 -R", 3, datagrams),
    ("-u -t 1 -b 1M -l 100", 1, datagrams),
    ("-u -t 1 -b 1M -l 100 -R", 1, datagrams),
    ("-u -t 1 -b 1M --udp-counters-64bit", 1, datagrams),
    ("-u -t 1 -b 1M --udp-counters-64bit -R", 1, datagrams),
    ("-u -t 1 -b 1M --bidir", 2, datagrams),
    ("-u -t 1 -b 1M -O 1", 1, datagrams),
    ("-u -n 100K -b 5M", 1, datagrams),
    ("-u -n 100K -b 5M -R", 1, datagrams),
    ("-u -k 20 -b 5M", 1, datagrams),
    ("-u -t 1 -b 1M --dont-fragment", 1, datagrams),
    ("-u -t 1 -b 1M --repeating-payload", 1, datagrams),
];

#[test]
fn every_option_of_a_real_client_works() {
    if !has_iperf3() {
        return;
    }
    let serving = Serving::start();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                while let Some((args, count, check)) = TABLE.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let done = std::panic::catch_unwind(|| {
                        let report = report(serving.address, args);
                        assert_eq!(streams(&report), *count);
                        check(&report);
                    });
                    if done.is_err() {
                        failures.lock().unwrap().push(*args);
                    }
                }
            });
        }
    });
    let events = serving.events();
    let failures = failures.into_inner().unwrap();
    let told: Vec<String> = events.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:#?}\n{told:#?}");
    let done = events.iter().filter(|event| matches!(event, Iperf3Event::Done { .. })).count();
    assert_eq!(done, TABLE.len(), "{told:#?}");
}

#[test]
fn several_clients_are_served_at_once_and_one_too_many_is_told_so() {
    if !has_iperf3() {
        return;
    }
    let serving = Serving::start();
    let args = |at| if at % 2 == 0 { "-t 3 -b 5M" } else { "-u -t 3 -b 1M -P 2" };
    let children: Vec<_> =
        (0..MOST_TESTS).map(|at| iperf3(serving.address, &format!("{} -J", args(at))).spawn().unwrap()).collect();
    let tests_begun = || serving.events().iter().filter(|event| matches!(event, Iperf3Event::Begin { .. })).count();
    let begin = std::time::Instant::now();
    while tests_begun() < MOST_TESTS {
        assert!(begin.elapsed() < LONG, "{:?}", serving.events());
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = run(serving.address, "-t 1 -J");
    let report: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert!(report["error"].as_str().unwrap().contains("busy"), "{report}");
    for child in children {
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report.get("error").is_none(), "{}", report["error"]);
    }
    serving.wait("the one too many", |event| matches!(event, Iperf3Event::Rejected { .. }));
    assert!(run(serving.address, "-n 1M").status.success(), "afterwards there is room again");
}

#[test]
fn what_cannot_be_done_is_said_in_iperf3s_words() {
    if !has_iperf3() {
        return;
    }
    let serving = Serving::start();
    let output = run(serving.address, "-t 1 -R -C nosuchcontrol -J");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The client's own kernel may refuse before the server does.
    assert!(report["error"].as_str().unwrap().contains("TCP_CONGESTION"), "{report}");
    assert!(run(serving.address, "-n 1M").status.success());
}

#[test]
fn an_interrupted_client_and_one_that_vanishes_leave_room() {
    if !has_iperf3() {
        return;
    }
    for (signal, reason) in [("-INT", "its user interrupted it"), ("-KILL", "it closed the connection")] {
        let serving = Serving::start();
        let mut child = iperf3(serving.address, "-t 30 --bidir").spawn().unwrap();
        serving.wait("the test", |event| matches!(event, Iperf3Event::Begin { .. }));
        std::thread::sleep(Duration::from_millis(300));
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(serving.broken(), reason);
        let _ = child.wait();
        assert!(run(serving.address, "-n 1M").status.success(), "after {signal}");
    }
}

#[test]
fn a_server_that_ends_says_so_and_ends_soon() {
    if !has_iperf3() {
        return;
    }
    let mut serving = Serving::start();
    let child = iperf3(serving.address, "-t 30 -J").spawn().unwrap();
    serving.wait("the test", |event| matches!(event, Iperf3Event::Begin { .. }));
    std::thread::sleep(Duration::from_millis(300));
    serving.end();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["error"].as_str().unwrap().contains("the server has terminated"), "{}", report["error"]);
    assert_eq!(serving.broken(), "this server was ended");
}

#[test]
fn one_port_serves_both_families() {
    if !has_iperf3() {
        return;
    }
    let serving = Serving::on("[::]:0");
    if serving.address.is_ipv4() {
        return; // A system without IPv6.
    }
    for host in ["127.0.0.1", "::1"] {
        let address = SocketAddr::new(host.parse().unwrap(), serving.address.port());
        one_way(&report(address, "-t 1"));
        one_way(&report(address, "-t 1 -R -S 0x20"));
        datagrams(&report(address, "-u -t 1 -b 1M -P 2"));
        datagrams(&report(address, "-u -t 1 -b 1M -R"));
    }
}
