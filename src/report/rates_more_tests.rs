//! What is said of datagrams where an iperf3 server does not tell all, and what was asked of a test.

use super::*;
use crate::model::plan::UdpPlan;
use crate::model::throughput::{Bins, DirectionThroughput, PassOptions};
use crate::model::udp::UdpSection;

fn one_pass(lost: u64, reordered: u64) -> UdpPass {
    let mbit = BitRate::from_mbit;
    UdpPass {
        asked_bps: mbit(100),
        sent_bps: mbit(100),
        received_bps: mbit(100),
        sent: 10_000,
        refused: 0,
        received: 10_000 - lost,
        lost,
        dropped_by_receiver: Outcome::skipped("an iperf3 server does not tell"),
        duplicates: 0,
        reordered,
        longest_loss: 0,
        jitter_us: Elapsed(18),
        queue_median_us: Elapsed(60),
        queue_p99_us: Elapsed(400),
        elapsed_us: Elapsed(1_000_000),
        bins: Bins::default(),
        cpu_pc: Outcome::skipped("not asked"),
        cpu_nas: Outcome::skipped("not asked"),
        counters_pc: Outcome::skipped("not asked"),
        counters_nas: Outcome::skipped("not asked"),
    }
}

fn one_direction(pass: UdpPass) -> UdpDirection {
    UdpDirection {
        datagram_bytes: 1448,
        send: "send".into(),
        receive: "recv".into(),
        clean_bps: Some(pass.sent_bps),
        loss_from_bps: None,
        ended_because: "one rate was asked for".into(),
        passes: vec![pass],
    }
}

#[test]
fn what_an_iperf3_server_does_not_tell_has_words_in_the_table_in_place_of_a_zero() {
    let row = |told: Outcome<u64>, totals_only| {
        let row = pass_row(&UdpPass { dropped_by_receiver: told, ..one_pass(0, 0) }, totals_only);
        [row[3].clone(), row[5].clone(), row[6].clone()]
    };
    let skipped = || Outcome::skipped("an iperf3 server does not tell");
    assert_eq!(row(skipped(), true), ["not told", "not told", "not told"]);
    assert_eq!(row(skipped(), false), ["not told", "60 µs", "400 µs"]);
    assert_eq!(row(Outcome::Measured(100), false), ["1 %", "60 µs", "400 µs"]);
}

#[test]
fn the_order_of_datagrams_is_told_only_where_the_receiver_counts_it() {
    for (reordered, unknown, told) in [
        (0, true, "order not told"),
        (0, false, "nothing out of order"),
        (1, false, "1 datagram out of order"),
        (7, true, "7 datagrams out of order"),
    ] {
        let said = loss_words(&one_direction(one_pass(0, reordered)), "one rate was asked for", unknown);
        assert!(said.ends_with(&format!("jitter 18 µs, {told}.")), "{said}");
    }
}

#[test]
fn only_of_an_iperf3_server_the_order_of_an_upload_is_not_known() {
    let none = || DirectionThroughput::skipped("--udp was asked for");
    let way = || Outcome::Measured(one_direction(one_pass(0, 0)));
    for (far_end, unknown) in [(FarEnd::Iperf3Server, 1), (FarEnd::Agent, 0)] {
        let mut section = ThroughputSection::new(none(), none(), Outcome::skipped("no echo"));
        section.far_end = far_end;
        section.udp = Outcome::Measured(UdpSection { upload: way(), download: way() });
        let mut view = View::default();
        udp_summary(&section, &|_| None, &mut view);
        let said = format!("{:?}", view.blocks);
        assert_eq!(said.matches("order not told").count(), unknown, "{said}");
        assert_eq!(said.matches("nothing out of order").count(), 2 - unknown, "{said}");
    }
}

#[test]
fn a_pace_and_a_rate_that_were_asked_for_are_told_in_words() {
    let mbit = BitRate::from_mbit;
    let paced = || PassOptions { pacing_bps: Some(mbit(100)), ..PassOptions::default() };
    for (plan, told) in [
        (ThroughputPlan::default(), ""),
        (ThroughputPlan { options: paced(), ..ThroughputPlan::default() }, "a pace of 100 Mbit/s for each stream"),
        (
            ThroughputPlan { options: paced(), streams: Some(4), ..ThroughputPlan::default() },
            "4 streams · a pace of 100 Mbit/s for each stream",
        ),
        (ThroughputPlan { udp: Some(UdpPlan::default()), ..ThroughputPlan::default() }, "UDP, the rate at which loss begins"),
        (
            ThroughputPlan {
                udp: Some(UdpPlan { rate_bps: Some(mbit(100)), datagram_bytes: Some(1400), ..UdpPlan::default() }),
                ..ThroughputPlan::default()
            },
            "UDP at 100 Mbit/s, datagrams of 1400 bytes",
        ),
    ] {
        assert_eq!(asked(&plan), told);
    }
}

#[test]
fn a_sender_that_could_send_no_more_is_not_blamed_where_the_line_is_full() {
    let mbit = BitRate::from_mbit;
    let none = || DirectionThroughput::skipped("--udp was asked for");
    let at = |rate: u64, refused: u64| UdpPass { received_bps: mbit(rate), refused, ..one_pass(0, 0) };
    for (line, refused, told) in [
        (Some(941), 0, "the line is full"),
        (Some(2_354), 0, "the PC could send no more than 950 Mbit/s"),
        (Some(2_354), 3, "the PC's own port took no more: its queue was full"),
        (None, 0, "the PC could send no more than 950 Mbit/s"),
    ] {
        let udp = UdpDirection {
            passes: vec![at(500, 0), at(950, refused)],
            ended_because: "the PC could send no more than 950 Mbit/s".into(),
            ..one_direction(at(950, 0))
        };
        let mut section = ThroughputSection::new(none(), none(), Outcome::skipped("no echo"));
        section.udp = Outcome::Measured(UdpSection { upload: Outcome::Measured(udp), download: Outcome::skipped("not asked") });
        let mut view = View::default();
        udp_summary(&section, &|_| line.map(mbit), &mut view);
        let said = format!("{:?}", view.blocks);
        assert!(said.contains(told), "{said}");
    }
}
