//! A box in the wire that does to packets what no kernel here does by itself: it forgets how large they may be, it puts lies
//! into routers' mouths, it rewrites what TCP agrees on.
//!
//! It is this same program, started again inside a host without addresses: frames that come in at `p1` go out at `p2`, and back.

#![expect(unreachable_pub, reason = "shared by an example and tests, which are crates of their own")]

use std::io::{self, Write as _};
use std::time::Duration;

use crate::net::{Lab, Running};

/// The variable that names the trick.
const TRICK: &str = "WEAKLINK_MIDDLE";

/// The test that becomes the box where the program is a test binary; others ignore these arguments.
const ARGS: [&str; 4] = ["--exact", "becomes_the_box_in_the_wire", "--nocapture", "--test-threads=1"];

/// What the box does, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// Drops packets above `from` silently, and as soon as one above `to` has passed in the same direction, all above `to`: a route
    /// that changes under way.
    Lower {
        /// The largest packet at first.
        from: u16,
        /// The largest packet from then on.
        to: u16,
    },
    /// Puts this MTU into what routers say about packets that are too large.
    Lie(u16),
    /// Lets no SYN ask for larger segments.
    Clamp(u16),
}

impl Trick {
    fn words(self) -> String {
        match self {
            Self::Lower { from, to } => format!("lower {from} {to}"),
            Self::Lie(mtu) => format!("lie {mtu}"),
            Self::Clamp(mss) => format!("clamp {mss}"),
        }
    }

    fn read(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        let name = words.next()?;
        let number = words.next()?.parse().ok()?;
        match name {
            "lower" => Some(Self::Lower { from: number, to: words.next()?.parse().ok()? }),
            "lie" => Some(Self::Lie(number)),
            "clamp" => Some(Self::Clamp(number)),
            _ => None,
        }
    }
}

/// Starts the box in a host; it works until it is dropped.
pub fn start(lab: &Lab, host: &str, trick: Trick) -> io::Result<Running> {
    let mut command = lab.command(host, std::env::current_exe()?);
    command.args(ARGS).env(TRICK, trick.words());
    let mut running = Running::start(command)?;
    running.wait_for("THE BOX WORKS", Duration::from_secs(10))?;
    Ok(running)
}

/// Is the box, if the environment says so, and then never comes back; otherwise it tells that this is an ordinary start.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "an end tells by printing")]
pub fn play() -> io::Result<bool> {
    use pnet::datalink::{self, Channel, Config};

    let Ok(words) = std::env::var(TRICK) else { return Ok(false) };
    let trick = Trick::read(&words).ok_or_else(|| io::Error::other("an unknown trick"))?;
    let open = |name: &str| {
        let interface = datalink::interfaces().into_iter().find(|interface| interface.name == name);
        let interface = interface.ok_or_else(|| io::Error::other(format!("no interface {name}")))?;
        let config = Config { read_buffer_size: 1 << 16, write_buffer_size: 1 << 16, ..Config::default() };
        match datalink::channel(&interface, config)? {
            Channel::Ethernet(sender, receiver) => Ok((sender, receiver)),
            _ => Err(io::Error::other("no Ethernet")),
        }
    };
    let (near_sender, near) = open("p1")?;
    let (far_sender, far) = open("p2")?;
    println!("\nTHE BOX WORKS");
    io::stdout().flush()?;
    let ways = [(near, far_sender), (far, near_sender)].map(|(mut receiver, mut sender)| {
        std::thread::spawn(move || -> io::Result<()> {
            let mut changed = false;
            loop {
                let mut frame = receiver.next()?.to_vec();
                if judge(trick, &mut frame, &mut changed) {
                    // A full queue loses the frame, as a switch would.
                    let _ = sender.send_to(&frame, None);
                }
            }
        })
    });
    for way in ways {
        way.join().map_err(|_| io::Error::other("a way of the box is gone"))??;
    }
    Ok(true)
}

/// Elsewhere there is no box.
#[cfg(not(target_os = "linux"))]
pub fn play() -> io::Result<bool> {
    Ok(false)
}

/// Changes a frame as the trick asks; tells whether it goes on.
fn judge(trick: Trick, frame: &mut [u8], changed: &mut bool) -> bool {
    match trick {
        Trick::Lower { from, to } => {
            // 14 bytes are the Ethernet header.
            let packet = frame.len().saturating_sub(14);
            let most = if *changed { to } else { from };
            *changed |= packet > usize::from(to) && packet <= usize::from(from);
            return packet <= usize::from(most);
        }
        Trick::Lie(mtu) => lie(frame, mtu),
        Trick::Clamp(mss) => clamp(frame, mss).unwrap_or_default(),
    }
    true
}

/// Where the transport header begins, and its protocol number.
fn transport(frame: &[u8]) -> Option<(usize, u8)> {
    match frame.get(12..14)? {
        [0x08, 0x00] => Some((14 + usize::from(frame.get(14)? & 15) * 4, *frame.get(23)?)),
        [0x86, 0xdd] => Some((54, *frame.get(20)?)),
        _ => None,
    }
}

fn lie(frame: &mut [u8], mtu: u16) {
    let Some((at, protocol)) = transport(frame) else { return };
    // ICMP fragmentation needed has the MTU in its last two bytes (RFC 1191, 4); ICMPv6 packet too big in the last four, of which
    // the upper two are zero (RFC 4443, 3.2).
    if matches!((protocol, frame.get(at..at + 2)), (1, Some([3, 4])) | (58, Some([2, _]))) {
        rewrite(frame, at + 6, mtu, at + 2).unwrap_or_default();
    }
}

/// The MSS option of a SYN, when it asks for more.
fn clamp(frame: &mut [u8], mss: u16) -> Option<()> {
    let (at, protocol) = transport(frame)?;
    let is_syn = protocol == 6 && frame.get(at + 13)? & 2 != 0;
    let end = at + usize::from(frame.get(at + 12)? >> 4) * 4;
    let mut option = at + 20;
    while is_syn && option < end {
        match *frame.get(option)? {
            0 => break,
            1 => option += 1,
            2 => {
                let asked = u16::from_be_bytes([*frame.get(option + 2)?, *frame.get(option + 3)?]);
                if asked > mss {
                    rewrite(frame, option + 2, mss, at + 16)?;
                }
                break;
            }
            _ => option += usize::from(*frame.get(option + 1)?).max(2),
        }
    }
    Some(())
}

/// Puts a word into a packet and keeps its check sum right (RFC 1624, equation 3); both lie on even places.
fn rewrite(frame: &mut [u8], at: usize, word: u16, sum_at: usize) -> Option<()> {
    let old = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
    let sum = u16::from_be_bytes([*frame.get(sum_at)?, *frame.get(sum_at + 1)?]);
    let mut new = u32::from(!sum) + u32::from(!old) + u32::from(word);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    frame.get_mut(at..at + 2)?.copy_from_slice(&word.to_be_bytes());
    frame.get_mut(sum_at..sum_at + 2)?.copy_from_slice(&(!(new as u16)).to_be_bytes());
    Some(())
}
