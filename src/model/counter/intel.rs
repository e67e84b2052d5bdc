//! Intel's drivers and those that took their names.

use super::Row;
use super::Side::{Both, Rx, Tx};
use super::Tells::{
    Cable, CheckSum, Collision, Fifo, Filtered, Harmless, HostTooSlow, LinkChange, NoMemory, NotSent, PauseReceived, PauseSent,
    Ring, TooLong, TooShort, TxTimeout,
};

/// e1000, e1000e, igb, igc, ixgbe (and ngbe, txgbe).
///
/// `rx_missed_errors` is the register MPC: the port's own memory was full. `rx_no_buffer_count` (RNBC) counts frames that found no
/// descriptor and waited in that memory: a sign of a slow host, no loss. `rx_no_dma_resources` (QPRDC) and `rx_queue_#_drops` (RQDPC) are
/// frames dropped for want of a descriptor. The Flow Director's misses and overflows (`fdir_*`) are no frames at all.
pub(super) const CLASSIC: &[Row] = &[
    ("rx_missed_errors", Fifo, Rx),
    ("rx_fifo_errors", Ring, Rx),
    ("rx_no_buffer_count", HostTooSlow, Rx),
    ("rx_no_dma_resources", Ring, Rx),
    ("rx_queue_#_drops", Ring, Rx),
    ("rx_queue_#_csum_err", CheckSum, Rx),
    ("rx_queue_#_alloc_failed", NoMemory, Rx),
    ("rx_dma_failed", NoMemory, Rx),
    ("tx_dma_failed", NoMemory, Tx),
    ("rx_symbol_errors", Cable, Rx),
    ("rx_csum_offload_good", Harmless, Rx),
    ("tx_abort_late_coll", Collision, Tx),
    ("tx_single_coll_ok", Collision, Tx),
    ("tx_multi_coll_ok", Collision, Tx),
    // Waiting for the line to be free: at full duplex these are pauses, counted elsewhere.
    ("tx_deferred_ok", Harmless, Tx),
    ("tx_busy", Harmless, Tx),
    ("lsc_int", LinkChange, Both),
    ("fdir_match", Harmless, Rx),
    ("fdir_miss", Harmless, Rx),
    ("fdir_overflow", Harmless, Rx),
    ("non_eop_descs", Harmless, Rx),
    ("dropped_smbus", Harmless, Rx),
    ("rx_smbus", Harmless, Rx),
    ("tx_smbus", Harmless, Tx),
    ("rx_fcoe_dropped", Filtered, Rx),
    ("rx_hwtstamp_cleared", Harmless, Rx),
    ("tx_hwtstamp_timeouts", Harmless, Tx),
    ("tx_hwtstamp_skipped", Harmless, Tx),
    ("tx_dma_out_of_sync", NotSent, Tx),
    ("tx_tcp_seg_failed", NotSent, Tx),
    ("rx_lpi_counter", Harmless, Rx),
    ("tx_lpi_counter", Harmless, Tx),
    ("uncorr_ecc_errors", NotSent, Both),
    ("corr_ecc_errors", Harmless, Both),
];

/// i40e and ice. What older releases call `port.rx_dropped`, newer ones `port.rx_discards` and ice `rx_dropped.nic` is the register
/// RDPC: the port had no room. The kernel's `rx_dropped` beside it is another counter.
pub(super) const FORTY: &[Row] = &[
    ("port.rx_dropped", Fifo, Rx),
    ("port.rx_discards", Fifo, Rx),
    ("rx_dropped.nic", Fifo, Rx),
    ("port.rx_crc_errors", Cable, Rx),
    ("rx_crc_errors.nic", Cable, Rx),
    ("port.illegal_bytes", Cable, Rx),
    ("illegal_bytes.nic", Cable, Rx),
    ("port.mac_local_faults", Cable, Rx),
    ("mac_local_faults.nic", Cable, Rx),
    ("port.mac_remote_faults", Cable, Tx),
    ("mac_remote_faults.nic", Cable, Tx),
    ("port.rx_fragments", Cable, Rx),
    ("rx_fragments.nic", Cable, Rx),
    ("port.rx_jabber", Cable, Rx),
    ("rx_jabber.nic", Cable, Rx),
    ("port.rx_oversize", TooLong, Rx),
    ("rx_oversize.nic", TooLong, Rx),
    ("port.rx_undersize", TooShort, Rx),
    ("rx_undersize.nic", TooShort, Rx),
    ("port.rx_length_errors", TooLong, Rx),
    ("rx_length_errors.nic", TooLong, Rx),
    ("port.link_xoff_rx", PauseReceived, Rx),
    ("link_xoff_rx.nic", PauseReceived, Rx),
    ("port.rx_priority_#_xoff", PauseReceived, Rx),
    ("rx_priority_#_xoff.nic", PauseReceived, Rx),
    ("port.link_xoff_tx", PauseSent, Tx),
    ("link_xoff_tx.nic", PauseSent, Tx),
    ("port.tx_priority_#_xoff", PauseSent, Tx),
    ("tx_priority_#_xoff.nic", PauseSent, Tx),
    ("port.link_xon_rx", Harmless, Rx),
    ("link_xon_rx.nic", Harmless, Rx),
    ("port.link_xon_tx", Harmless, Tx),
    ("link_xon_tx.nic", Harmless, Tx),
    ("port.rx_csum_bad", CheckSum, Rx),
    ("rx_csum_bad.nic", CheckSum, Rx),
    ("port.tx_dropped_link_down", NotSent, Tx),
    ("tx_dropped_link_down.nic", NotSent, Tx),
    ("port.tx_timeout", TxTimeout, Tx),
    ("tx_timeout.nic", TxTimeout, Tx),
    ("rx_unknown_protocol", Filtered, Rx),
    ("rx_alloc_fail", NoMemory, Rx),
    ("rx_pg_alloc_fail", NoMemory, Rx),
    ("tx_linearize", Harmless, Tx),
    ("tx_busy", Harmless, Tx),
    ("port.fdir_sb_match", Harmless, Rx),
    ("port.fdir_flush_cnt", Harmless, Rx),
];
