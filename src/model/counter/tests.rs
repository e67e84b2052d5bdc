//! Names as drivers print them, and what they mean there.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A driver, a name as `ethtool -S` prints it, and its meaning; none: not known.
type Known = (Option<&'static str>, &'static str, Option<(Tells, Side)>);

const NAMES: &[Known] = &[
    (None, "rx_crc_errors", Some((Tells::Cable, Side::Rx))),
    (None, "rx_dropped", Some((Tells::Sum, Side::Rx))),
    (None, "rx_missed_errors", Some((Tells::Fifo, Side::Rx))),
    (None, "rx_over_errors", Some((Tells::TooLong, Side::Rx))),
    (None, "rx_nohandler", Some((Tells::Filtered, Side::Rx))),
    (None, "carrier_changes", Some((Tells::LinkChange, Side::Both))),
    (Some("r8169"), "rx_missed", Some((Tells::Fifo, Side::Rx))),
    (Some("r8152"), "align_errors", Some((Tells::Cable, Side::Rx))),
    (Some("r8169"), "tx_aborted", Some((Tells::Collision, Side::Tx))),
    (Some("r8125"), "tx_aborted32", Some((Tells::Collision, Side::Tx))),
    (Some("r8125"), "rx_mac_missed", Some((Tells::Fifo, Side::Rx))),
    (Some("r8125"), "rx_tcam_dropped", Some((Tells::Filtered, Side::Rx))),
    (Some("r8125"), "rdu", Some((Tells::HostTooSlow, Side::Rx))),
    (Some("r8125"), "rx_pause_on", Some((Tells::PauseReceived, Side::Rx))),
    (Some("igb"), "rx_no_buffer_count", Some((Tells::HostTooSlow, Side::Rx))),
    (Some("igb"), "rx_queue_3_drops", Some((Tells::Ring, Side::Rx))),
    (Some("igb"), "rx_fifo_errors", Some((Tells::Ring, Side::Rx))),
    (Some("igc"), "rx_missed_errors", Some((Tells::Fifo, Side::Rx))),
    (Some("igc"), "tx_lpi_counter", Some((Tells::Harmless, Side::Tx))),
    (Some("ixgbe"), "rx_no_dma_resources", Some((Tells::Ring, Side::Rx))),
    (Some("ixgbe"), "fdir_miss", Some((Tells::Harmless, Side::Rx))),
    (Some("ixgbe"), "fdir_overflow", Some((Tells::Harmless, Side::Rx))),
    (Some("e1000e"), "alloc_rx_buff_failed", Some((Tells::NoMemory, Side::Rx))),
    (Some("e1000e"), "rx_csum_offload_errors", Some((Tells::CheckSum, Side::Rx))),
    (Some("e1000e"), "rx_flow_control_xoff", Some((Tells::PauseReceived, Side::Rx))),
    (Some("e1000e"), "tx_flow_control_xon", Some((Tells::Harmless, Side::Tx))),
    (Some("i40e"), "port.rx_dropped", Some((Tells::Fifo, Side::Rx))),
    (Some("i40e"), "port.rx_discards", Some((Tells::Fifo, Side::Rx))),
    (Some("i40e"), "rx_dropped", Some((Tells::Sum, Side::Rx))),
    (Some("i40e"), "port.tx_priority_7_xoff", Some((Tells::PauseSent, Side::Tx))),
    (Some("ice"), "rx_crc_errors.nic", Some((Tells::Cable, Side::Rx))),
    (Some("ice"), "rx_oversize.nic", Some((Tells::TooLong, Side::Rx))),
    (Some("ice"), "mac_remote_faults.nic", Some((Tells::Cable, Side::Tx))),
    (Some("atlantic"), "InDroppedDma", Some((Tells::Ring, Side::Rx))),
    (Some("atlantic"), "Queue[11] InErrors", Some((Tells::Sum, Side::Rx))),
    (Some("atlantic"), "Queue[2] AllocFails", Some((Tells::NoMemory, Side::Rx))),
    (Some("mlx5_core"), "rx_out_of_buffer", Some((Tells::Ring, Side::Rx))),
    (Some("mlx5_core"), "rx_discards_phy", Some((Tells::Fifo, Side::Rx))),
    (Some("mlx5_core"), "rx_prio3_discards", Some((Tells::Fifo, Side::Rx))),
    (Some("mlx5_core"), "outbound_pci_stalled_wr", Some((Tells::Harmless, Side::Rx))),
    (Some("mlx5_core"), "outbound_pci_stalled_wr_events", Some((Tells::BusStalledSeconds, Side::Rx))),
    (Some("mlx5_core"), "outbound_pci_buffer_overflow", Some((Tells::BusDropped, Side::Rx))),
    (Some("mlx5_core"), "rx_err_lane_0_phy", Some((Tells::Corrected, Side::Rx))),
    (Some("mlx5_core"), "tx_global_pause_duration", Some((Tells::PauseTime, Side::Tx))),
    (Some("mlx5_core"), "rx_steer_missed_packets", Some((Tells::Filtered, Side::Rx))),
    (Some("mlx4_en"), "rx_pause_duration", Some((Tells::PauseTime, Side::Rx))),
    (Some("mlx4_en"), "rx_pause", Some((Tells::PauseReceived, Side::Rx))),
    (Some("bnxt_en"), "rx_fcs_err_frames", Some((Tells::Cable, Side::Rx))),
    (Some("bnxt_en"), "[2]: rx_discards", Some((Tells::Ring, Side::Rx))),
    (Some("bnxt_en"), "rx_total_discard_pkts", Some((Tells::Ring, Side::Rx))),
    (Some("bnxt_en"), "rx_total_l4_csum_errors", Some((Tells::CheckSum, Side::Rx))),
    (Some("bnx2x"), "rx_brb_discard", Some((Tells::Fifo, Side::Rx))),
    (Some("bnx2x"), "rx_filtered_packets", Some((Tells::Filtered, Side::Rx))),
    (Some("bnx2"), "rx_xoff_frames", Some((Tells::PauseReceived, Side::Rx))),
    (Some("tg3"), "rx_fcs_errors", Some((Tells::Cable, Side::Rx))),
    (Some("tg3"), "rx_threshold_hit", Some((Tells::Harmless, Side::Rx))),
    (Some("tg3"), "mbuf_lwm_thresh_hit", Some((Tells::HostTooSlow, Side::Rx))),
    (Some("tg3"), "dma_readq_full", Some((Tells::BusSign, Side::Tx))),
    (Some("tg3"), "rx_discards", Some((Tells::Fifo, Side::Rx))),
    (Some("tg3"), "tx_collide_15times", Some((Tells::Collision, Side::Tx))),
    (Some("virtio_net"), "rx_queue_0_drops", Some((Tells::DriverDropped, Side::Rx))),
    (Some("virtio_net"), "tx_queue_1_tx_timeouts", Some((Tells::TxTimeout, Side::Tx))),
    (Some("vmxnet3"), "pkts rx OOB", Some((Tells::Ring, Side::Rx))),
    (Some("vmxnet3"), "drv dropped rx total", Some((Tells::DriverDropped, Side::Rx))),
    (Some("vmxnet3"), "   fcs", Some((Tells::Cable, Side::Rx))),
    (Some("cdc_ncm"), "tx_reason_timeout", Some((Tells::Harmless, Side::Tx))),
    (Some("rk_gmac-dwmac"), "mmc_rx_fifo_overflow", Some((Tells::Fifo, Side::Rx))),
    (Some("st_gmac"), "mmc_rx_crc_error", Some((Tells::Cable, Side::Rx))),
    (Some("mvneta"), "rx_overrun", Some((Tells::Fifo, Side::Rx))),
    (Some("mvneta"), "fc_sent", Some((Tells::PauseSent, Side::Tx))),
    (Some("mt7530-mdio"), "RxCrcErr", Some((Tells::Cable, Side::Rx))),
    (Some("mtk_soc_eth"), "p06_RxDrop", Some((Tells::Fifo, Side::Rx))),
    (Some("mv88e6085"), "in_fcs_error", Some((Tells::Cable, Side::Rx))),
    (Some("a_new_driver"), "rx_phy_crc_bad", Some((Tells::Cable, Side::Rx))),
    (Some("a_new_driver"), "mac_rx_xoff_frames", Some((Tells::PauseReceived, Side::Rx))),
    (Some("a_new_driver"), "rx_pause_usec", None),
    (Some("a_new_driver"), "pause", None),
    (Some("a_new_driver"), "rx_drop_reason_7", None),
    (Some("a_new_driver"), "rx_csum_align", None),
    (None, "fdir_miss", None),
    (None, "", None),
];

#[test]
fn names_of_real_drivers_have_their_meaning_and_unknown_ones_none() {
    for (driver, name, expected) in NAMES {
        let found = meaning(*driver, name).map(|meaning| (meaning.tells, meaning.side));
        assert_eq!(found, *expected, "{driver:?} {name}");
    }
}

#[test]
fn the_same_name_means_another_thing_at_another_driver() {
    let tells = |driver, name| meaning(Some(driver), name).map(|meaning| meaning.tells);
    assert_eq!(tells("bnx2x", "rx_discards"), Some(Tells::Ring));
    assert_eq!(tells("tg3", "rx_discards"), Some(Tells::Fifo));
    assert_eq!(tells("igb", "rx_queue_0_drops"), Some(Tells::Ring));
    assert_eq!(tells("virtio_net", "rx_queue_0_drops"), Some(Tells::DriverDropped));
    assert_eq!(tells("r8169", "rx_missed_errors"), Some(Tells::Fifo));
    assert_eq!(tells("mlx5_core", "rx_missed_errors"), Some(Tells::Ring));
}

#[test]
fn how_a_meaning_is_known_is_said() {
    let basis = |driver, name| meaning(driver, name).map(|meaning| meaning.basis);
    assert_eq!(basis(Some("r8169"), "rx_missed"), Some(Basis::Driver));
    assert_eq!(basis(Some("r8169"), "rx_crc_errors"), Some(Basis::Common));
    assert_eq!(basis(Some("r8169"), "rx_bad_fcs"), Some(Basis::Word));
}

#[test]
fn copies_for_each_queue_are_added_up_and_others_are_not() {
    let grown = [
        ("rx_queue_0_drops", 5),
        ("rx_queue_1_drops", 7),
        ("rx_queue_10_drops", 1),
        ("rx_queue_0_packets", 900),
        ("rx_missed_errors", 3),
        ("rx_quiet", 0),
    ];
    let grown = Counters(grown.into_iter().map(|(name, count)| (name.to_owned(), count)).collect::<BTreeMap<_, _>>());
    let found = explain(Some("igb"), &grown);
    let brief: Vec<_> =
        found.iter().map(|one| (one.name.as_str(), one.grown, one.meaning.map(|meaning| meaning.tells))).collect();
    assert_eq!(
        brief,
        [
            ("rx_missed_errors", 3, Some(Tells::Fifo)),
            ("rx_queue_#_drops", 13, Some(Tells::Ring)),
            ("rx_queue_#_packets", 900, None),
        ]
    );
    assert_eq!(explain(None, &Counters::default()), []);
}

#[test]
fn tables_hold_each_name_once_and_in_its_folded_form() {
    let drivers = [
        "r8169",
        "igb",
        "i40e",
        "atlantic",
        "cdc_ncm",
        "virtio_net",
        "mvneta",
        "mlx5_core",
        "mlx4_en",
        "bnxt_en",
        "bnx2x",
        "tg3",
    ];
    let own = drivers.iter().map(|driver| of_driver(driver).concat());
    let common = [common::KERNEL, common::COMMON].concat();
    for table in own.chain([common]) {
        let mut names = BTreeSet::new();
        for (name, _, _) in &table {
            assert_eq!(*name, fold(name), "not folded");
            assert!(names.insert(*name), "{name} stands twice");
        }
        assert!(!names.is_empty());
    }
}

proptest! {
    #[test]
    fn any_name_is_survived(name in ".{0,60}", driver in "(r8169|igb|bnxt_en|mlx5_core|.{0,8})") {
        let folded = fold(&name);
        prop_assert!(folded.len() <= name.len());
        prop_assert_eq!(fold(&folded), folded.clone());
        // A name and its folded form are one counter.
        prop_assert_eq!(meaning(Some(&driver), &name), meaning(Some(&driver), &folded));
    }

    #[test]
    fn what_grew_is_neither_lost_nor_doubled(counts in proptest::collection::btree_map("(rx|tx)_queue_[0-9]{1,2}_drops", 1u64..1000, 0..20)) {
        let sum: u64 = counts.values().sum();
        let found = explain(Some("igb"), &Counters(counts));
        prop_assert_eq!(found.iter().map(|one| one.grown).sum::<u64>(), sum);
    }
}
