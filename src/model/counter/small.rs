//! Drivers of the cards that PCs and small servers have, and of virtual machines.

use super::Row;
use super::Side::{Rx, Tx};
use super::Tells::{
    Cable, Collision, DriverDropped, Fifo, Filtered, Harmless, HostTooSlow, NoMemory, NotSent, PauseReceived, PauseSent, Ring,
    Sum, TooLong, TooShort, TxTimeout,
};

/// Realtek: the tally counters of the chips (r8169, r8125 and its like; r8152 over USB, where the host must fetch).
///
/// `rx_missed` is the chip's FIFO that ran over; `rdu` and `tdu` say how often no receive or transmit descriptor was free (a `tdu` is normal:
/// there was nothing more to send).
pub(super) const REALTEK: &[Row] = &[
    ("rx_missed", Fifo, Rx),
    ("rx_mac_missed", Fifo, Rx),
    ("align_errors", Cable, Rx),
    ("align_errors#", Cable, Rx),
    ("rx_mac_error", Cable, Rx),
    ("rx_runt", TooShort, Rx),
    ("rx_frame_too_long", TooLong, Rx),
    ("rx_tcam_dropped", Filtered, Rx),
    ("rx_unknown_opcode", Filtered, Rx),
    ("rdu", HostTooSlow, Rx),
    ("tdu", Harmless, Tx),
    ("tx_single_collisions", Collision, Tx),
    ("tx_multi_collisions", Collision, Tx),
    ("tx_late_collision", Collision, Tx),
    ("tx_all_collision", Collision, Tx),
    ("tx_aborted", Collision, Tx),
    ("tx_aborted#", Collision, Tx),
    ("tx_underrun", NotSent, Tx),
    ("tx_underrun#", NotSent, Tx),
    ("tx_deferred", Harmless, Tx),
    ("tx_pause_on", PauseSent, Tx),
    ("tx_pause_off", Harmless, Tx),
    ("tx_pause_all", PauseSent, Tx),
    ("rx_pause_on", PauseReceived, Rx),
    ("rx_pause_off", Harmless, Rx),
    ("rx_pause_all", PauseReceived, Rx),
];

/// Aquantia and Marvell AQtion. `InDroppedDma` is what the receive DMA had no buffers for; the driver gives it to the kernel as
/// `rx_missed_errors`.
pub(super) const ATLANTIC: &[Row] = &[
    ("InDroppedDma", Ring, Rx),
    ("rx_missed_errors", Ring, Rx),
    ("InErrors", Sum, Rx),
    ("AllocFails", NoMemory, Rx),
    ("SkbAllocFails", NoMemory, Rx),
    ("Restarts", Harmless, Tx),
];

/// Adapters on USB without counters of their own chip: cdc_ncm tells how it packed frames, and its `timeout` is the time after which
/// a half full bundle is sent.
pub(super) const USB: &[Row] = &[
    ("tx_reason_ntb_full", Harmless, Tx),
    ("tx_reason_ndp_full", Harmless, Tx),
    ("tx_reason_timeout", Harmless, Tx),
    ("tx_reason_max_datagram", Harmless, Tx),
    ("tx_overhead", Harmless, Tx),
    ("rx_overhead", Harmless, Rx),
    ("tx_ntbs", Harmless, Tx),
    ("rx_ntbs", Harmless, Rx),
];

/// Ports of virtual machines. `rx_queue_#_drops` of virtio are frames that the guest's driver threw away; `pkts rx OOB` of vmxnet3 found no
/// buffer of the guest.
pub(super) const VIRTUAL: &[Row] = &[
    ("rx_queue_#_drops", DriverDropped, Rx),
    ("rx#_drops", DriverDropped, Rx),
    ("rx_drops", DriverDropped, Rx),
    ("rx_queue_#_xdp_drops", Filtered, Rx),
    ("tx_queue_#_xdp_tx_drops", NotSent, Tx),
    ("tx_queue_#_tx_timeouts", TxTimeout, Tx),
    ("rx_queue_#_kicks", Harmless, Rx),
    ("tx_queue_#_kicks", Harmless, Tx),
    ("pkts rx OOB", Ring, Rx),
    ("pkts rx out of buf", Ring, Rx),
    ("pkts rx err", Sum, Rx),
    ("drv dropped rx total", DriverDropped, Rx),
    ("fcs", Cable, Rx),
    ("err", Sum, Rx),
    ("rx buf alloc fail", NoMemory, Rx),
    ("pkts tx err", NotSent, Tx),
    ("pkts tx discard", NotSent, Tx),
    ("drv dropped tx total", NotSent, Tx),
    ("ring full", Harmless, Tx),
    ("tx timeout count", TxTimeout, Tx),
];

/// Marvell's controllers on NAS boards (mvneta, mvpp2).
pub(super) const MARVELL: &[Row] = &[
    ("bad_crc_event", Cable, Rx),
    ("mac_receive_error", Cable, Rx),
    ("fragments_received", Cable, Rx),
    ("fragments_err_received", Cable, Rx),
    ("jabber_received", Cable, Rx),
    ("bad_octets_received", Cable, Rx),
    ("oversize_received", TooLong, Rx),
    ("undersize_received", TooShort, Rx),
    ("rx_discard", Fifo, Rx),
    ("rx_overrun", Fifo, Rx),
    ("rx_ppv#_overrun", Fifo, Rx),
    ("rx_fifo_overrun", Fifo, Rx),
    ("rx_cls_drop", Filtered, Rx),
    ("rx_fullq_drop", Ring, Rx),
    ("rx_bm_drop", Ring, Rx),
    ("refill_errors", NoMemory, Rx),
    ("skb_alloc_errors", NoMemory, Rx),
    ("fc_sent", PauseSent, Tx),
    ("good_fc_received", PauseReceived, Rx),
    ("fc_received", PauseReceived, Rx),
    ("collision", Collision, Tx),
    ("late_collision", Collision, Tx),
    ("excessive_collision", Collision, Tx),
    ("mac_transmit_err", NotSent, Tx),
    ("eee_wakeup_errors", Harmless, Rx),
    ("unrec_mac_control_received", Filtered, Rx),
];
