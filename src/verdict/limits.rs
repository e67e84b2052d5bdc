//! Every threshold of the verdict, each with its reason. All but the few marked so are ratios, so that the
//! same rules hold from 100 Mbit/s to 25 Gbit/s.

/// A rate of at least this share of the wire's ceiling is line rate. Measured on shaped and real links TCP
/// reaches 98–100 %; the rest is room for short runs, VLAN tags and slow start.
pub const AT_LINE_RATE: f64 = 0.93;

/// Below [`AT_LINE_RATE`] and above this, a gap that no evidence explains is not worth calling a fault: busy hosts
/// measure 10–15 % low. The answer is then healthy with low confidence, and says so.
pub const NEAR_LINE_RATE: f64 = 0.85;

/// A copy falls clearly below the rung before when it loses more than this: the 5 % of the method plus the
/// noise of short copies and the headers of any file protocol.
pub const LANE_TOLERANCE: f64 = 0.90;

/// On one machine a copy falls clearly below plain TCP only here: loopback has no line that would hold the plain
/// copy back, so a lane's ordinary cost shows in full.
pub const LOCAL_LANE_TOLERANCE: f64 = 0.70;

/// Two ceilings whose ratio is above this are a tie, and both are named.
pub const TIE: f64 = 0.90;

/// Two directions that reach rates this close suffer alike.
pub const ALIKE: f64 = 0.80;

/// A plateau this much below a known Ethernet class (at the path's MTU) still snaps to it.
pub const SNAP_BELOW: f64 = 0.97;

/// A plateau this much above still snaps: a policer or shaper that counts a frame without preamble, checksum and
/// gap lets 1.6 % more through at MTU 1500 (1448 of 1514 bytes instead of 1538), and its bucket a little on top; clocks differ by 100 ppm.
pub const SNAP_ABOVE: f64 = 1.022;

/// Only a rate this close below its class is level *at* it: what a processor allows lands there by chance only.
pub const LEVEL_BELOW: f64 = 0.985;

/// And only with no more deviation over mean than this: no rate that a busy host sets is as even.
pub const LEVEL_SPREAD: f64 = 0.02;

/// On a busy host a plateau measures up to this much below its class; such a rate is a hint only, and only where
/// both directions show it.
pub const LOOSE_BELOW: f64 = 0.94;

/// A series whose deviation over mean is above this is no plateau.
pub const FLAT_SPREAD: f64 = 0.06;

/// A series whose deviation over mean is at most this is as even as a shaped line: programs that wait for a processor are less even (seen
/// on hosts with a quota: 5 to 40 %).
pub const EVEN_SPREAD: f64 = 0.02;

/// A series above this is too noisy for a sure verdict.
pub const NOISY_SPREAD: f64 = 0.15;

/// A core at this busy share is full (the sampling loses a tick or two).
pub const CORE_FULL: f64 = 0.95;

/// One thread at this share of a core cannot go faster.
pub const THREAD_FULL: f64 = 0.90;

/// A cipher process at this share of a core is the limit: it waits a little for its pipe on every block.
pub const CIPHER_FULL: f64 = 0.85;

/// Kept from running by the quota of its control group for this share of the time, a process is starved.
pub const THROTTLED: f64 = 0.20;

/// Waiting this share of the time for a core, a thread that moves data is starved.
pub const RUN_DELAY: f64 = 0.25;

/// Waiting less than this share of the time for a core is the scheduler's ordinary work.
pub const SOME_DELAY: f64 = 0.10;

/// Threads that neither ran nor waited for a core for half of the time had nothing to do: what limits them is elsewhere.
pub const THREADS_SLEEP: f64 = 0.50;

/// A core whose interrupts take less than this share does them at once: even beside three programs that compete for it, the kernel's own
/// thread gets a quarter.
pub const INTERRUPTS_IDLE: f64 = 0.25;

/// Cores of which less than this share is taken have time for everybody.
pub const MOSTLY_FREE: f64 = 0.25;

/// From this share of the cores' time on that the hypervisor gives to others, rates of a host are not its own.
pub const STOLEN: f64 = 0.10;

/// A host this busy before the test began has no figures of its own.
pub const BUSY_BEFORE: f64 = 0.50;

/// From this share of stolen time on, before or during a pass, no bottleneck is sure.
pub const STOLEN_CLEARLY: f64 = 0.15;

/// Others burn most of what is burnt.
pub const OTHERS_BURN: f64 = 0.50;

/// A loaded host that carries so many times as much the other way is not what holds a direction back: what sending and receiving cost a
/// processor differs by up to four (0.20 and 0.05 s for each GB over veth).
pub const CARRIES_MORE: f64 = 5.0;

/// Where the slower direction is flat at a class of Ethernet, so many times as much the other way is enough: what a processor allows is
/// at a class by chance only.
pub const CARRIES_MORE_THAN_LEVEL: f64 = 1.5;

/// Stopped by the receiver's window for this share of the busy time (the threshold of NDT).
pub const RWND_LIMITED: f64 = 0.15;

/// A stream's rate this close to window over round-trip time is set by the window.
pub const WINDOW_MATCH: std::ops::RangeInclusive<f64> = 0.75..=1.15;

/// Loss costs a CUBIC stream on a LAN visible speed from about half a per cent; below that look elsewhere.
pub const LOSS_SHARE: f64 = 0.005;

/// Goodput must be below this share of the reference before loss is to blame.
pub const LOSS_COSTS: f64 = 0.85;

/// In a step from fast to slow ports already a smaller share of drops, all in one direction, tells.
pub const STEP_LOSS_SHARE: f64 = 0.002;

/// Speeds differ by a step when one is at least this much faster.
pub const SPEED_STEP: f64 = 1.5;

/// The other direction must lose this many times less before loss counts as one-sided.
pub const ONE_SIDED: f64 = 4.0;

/// Damaged frames in a pass, absolute: fewer can be a single disturbance.
pub const CABLE_ERRORS: u64 = 10;

/// Pause frames per second of a pass, absolute: a switch that throttles sends hundreds.
pub const PAUSE_PER_SECOND: f64 = 20.0;

/// The most of a PCIe link's rate that a NIC gets: headers of 128–256 byte payloads cost 13–18 % (Gen3 x1: 6.0–6.6 of 7.88 Gbit/s).
pub const PCIE_USABLE: f64 = 0.87;

/// The most of a USB link's rate: 480 Mbit/s gives 320–350 of TCP, 5 Gbit/s gives 3.4–4.
pub const USB_USABLE: f64 = 0.78;

/// A rate of at least this share of the bus's ceiling sits at the bus.
pub const AT_BUS: f64 = 0.75;

/// A beginning this much faster than what follows is a cache that ran full.
pub const BURST: f64 = 1.5;

/// A filesystem with less than this share free is nearly full.
pub const NEARLY_FULL: f64 = 0.05;

/// Requests of a file protocol of at most this many bytes wait for the path more than they move (absolute).
pub const SMALL_IO_BYTES: u64 = 32 * 1024;

/// Small files that reach less than this share of the large file's rate are bound by the time of each file.
pub const SMALL_FILES: f64 = 0.5;

/// A figure this much above what the cable's bits allow cannot be.
pub const IMPOSSIBLE: f64 = 1.02;

/// Anything that costs this share of the speed beats a fault that costs none yet.
pub const COSTS_CLEARLY: f64 = 0.95;

/// A stream that moves at most this share of what clamped streams do has stalled.
pub const STALLED: f64 = 0.5;

/// The receive window of an OpenSSH channel in bytes (its channels.h, 2 MiB since 4.7).
pub const SSH_WINDOW_BYTES: f64 = 2_097_152.0;

/// A gain below this share is not worth a finding of its own.
pub const WORTH: f64 = 1.05;

/// All cores of a host count as taken from this share on: what is left is the gaps between two processes
/// that hand data to each other.
pub const CORES_TAKEN: f64 = 0.85;

/// A process that uses at least this share of a core tells what a whole core would give.
pub const COST_SHARE: f64 = 0.50;

/// Bytes that an interface moves beside a pass's payload: headers (6 % at MTU 1500), acknowledgements of the
/// other way, and what was sent before and after the counted time.
pub const COUNTED_BESIDE: f64 = 1.10;

/// Traffic of others makes a link busy from this share of the line on.
pub const BUSY_LINK: f64 = 0.10;

/// A loss in one direction that needs no second look: twice the share from which on loss counts at all.
pub const PLAIN_LOSS: f64 = 0.01;

/// An echo that comes back this much later beside a transfer than on the idle path waits in a standing queue
/// (absolute): CoDel's target of 5 ms (RFC 8289, section 4.2).
pub const STANDING_QUEUE_US: u64 = 5_000;

/// A stretch without any data this long is a stall (absolute): Linux sends again on its own after 200 ms at the
/// earliest (`TCP_RTO_MIN`), and no ordinary pause of a LAN is as long.
pub const STALL_US: u64 = 200_000;

/// A stretch without any data this long is an outage (absolute): a stream that lost a whole window sends again after 0.2 and 0.6 s, and no
/// scheduler keeps a program waiting as long.
pub const OUTAGE_US: u64 = 1_000_000;

/// Where all time without data is at most so many times the longest stretch of it, that was one outage and no way of the path.
pub const ONE_OUTAGE: f64 = 1.5;

/// So many dips at one distance are no chance.
pub const DIPS: u32 = 3;

/// Dips less deep than this share of the mean cost too little to look for.
pub const DIP_DEPTH: f64 = 0.25;

/// Both directions at once that reach less than this share of what each reaches alone share something: half duplex
/// gives 50 %, full duplex 97 % (acknowledgements go the other way).
pub const BOTH_WAYS: f64 = 0.75;

/// Two congestion controls whose rates differ by less than this factor do so by chance: passes follow each other.
pub const CONGESTION_DIFFERS: f64 = 1.25;

/// Several PCs whose sum is no more than this times the best one alone share a limit.
pub const GROWS: f64 = 1.15;

/// Jain's index below this is uneven: of two PCs one then gets three times what the other does (1:2 gives 0.9, 1:3 gives 0.8).
pub const FAIR: f64 = 0.80;

/// A stream thread at this share of a core, while its host's cores have this much left, measures one core.
pub const REST_IDLES: f64 = 0.60;

/// Streams that were paced on purpose and reach this share of the pace are what was asked for: headers cost 6 % at MTU 1500, and a
/// kernel's pace is met within some per cent. What is faster was not paced.
pub const AT_PACE: std::ops::RangeInclusive<f64> = 0.90..=1.10;

/// A window that would allow more than ten times the rate on the idle path holds nothing back, whatever the shares of time say: the
/// round trip of a window-limited stream is the idle one and what the hosts need to answer, which on a fast network is several times as
/// much (0.2 ms and 0.9 ms are common), but not ten times.
pub const WINDOW_USED: f64 = 0.10;

/// Two passes of one and the same kind differ by as much (that of the search over numbers of streams).
pub const ALIKE_PASSES: f64 = 0.05;

/// Jain's index from which on a sharing is even: of two PCs the one then gets at most 1.6 times what the other does.
pub const EVEN: f64 = 0.95;

/// Fewer interrupts in a pass than this say nothing about where they land (absolute).
pub const INTERRUPTS: u64 = 500;

/// From this share of them on one core does the work of the card.
pub const ON_ONE_CORE: f64 = 0.90;

/// From this share of the wire's ceiling on a rate is all of it: what is missing is the rounding of its figures.
pub const ALL_OF_IT: f64 = 0.99;

/// Frames that found no room in the receiver's port matter from this share on: a machine of the field that is healthy shows 0.007 %, and a
/// fifth of the share from which loss costs a stream visible speed is a warning already.
pub const PORT_DROPS: f64 = 0.001;

/// The most payload of a TCP segment at MTU 1500 in bytes.
pub const PAYLOAD: u64 = 1_448;

/// So many breaks of a link in [`FLAP_WINDOW_US`] are no chance: one is somebody who plugs or sets something, two are a mistake mended.
pub const FLAPS: usize = 3;

/// The time in which breaks belong together (absolute): negotiating takes 2 to 5 s, so three of them fit many times.
pub const FLAP_WINDOW_US: u64 = 600_000_000;

/// What the kernel's log told longer ago than this says nothing about today (absolute): a day.
pub const NEWS_US: u64 = 86_400_000_000;

/// Until then ports come up and down while a system starts (absolute).
pub const SETTLED_US: u64 = 60_000_000;

/// The bus kept the port waiting for this share of a pass: it is what holds it back.
pub const BUS_STALLED: f64 = 0.50;

/// A pass that took less time tells no rate of the path (absolute): TCP doubles its window once in a round trip, so that a fast path of 1 ms
/// is not full before some hundredths of a second.
pub const SHORTEST_PASS_US: u64 = 100_000;
