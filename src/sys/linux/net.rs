//! Questions to the kernel about interfaces: route netlink, generic netlink, and the ethtool ioctl. Answers
//! are raw bytes; `link` decodes them.

#![expect(unsafe_code, reason = "the ethtool ioctl has no safe interface")]

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::{
    Socket, SocketAddr,
    protocols::{NETLINK_GENERIC, NETLINK_ROUTE},
};

/// The kernel answers a dump in parts of at most 32 KiB (`netlink_dump`, since 4.4); older ones 16 KiB.
const PART: usize = 64 * 1024;
/// No host that this tool meets has interfaces for more than this many bytes.
const MOST: usize = 8 << 20;
/// Netlink answers from memory, or after the driver was asked; a longer wait means that it will never answer.
const WAIT: Duration = Duration::from_secs(1);

/// `NLMSG_ERROR` of linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
/// `NLMSG_DONE` of linux/netlink.h.
const NLMSG_DONE: u16 = 3;
/// `NLM_F_MULTI` of linux/netlink.h: more messages follow until `NLMSG_DONE`.
const NLM_F_MULTI: u16 = 2;

/// Sends one serialised request of route netlink and gives every message of the answer, headers included.
///
/// The closing `NLMSG_DONE` is left out. Errors are the kernel's, or that it did not answer within a second.
pub fn rtnetlink(request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    netlink(NETLINK_ROUTE, request)
}

/// Sends one serialised request of generic netlink and gives every message of the answer, headers included.
///
/// Errors are the kernel's (`ENOENT` for a family that it does not have), or that it did not answer within a second.
pub fn generic_netlink(request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    netlink(NETLINK_GENERIC, request)
}

fn netlink(protocol: isize, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket2::SockRef::from(&socket).set_read_timeout(Some(WAIT))?;
    socket.send_to(request, &SocketAddr::new(0, 0), 0)?;
    let (began, mut messages, mut size) = (Instant::now(), Vec::new(), 0);
    while began.elapsed() < WAIT && size < MOST {
        let mut part = Vec::with_capacity(PART);
        let (length, from) = match socket.recv_from(&mut part, libc::MSG_TRUNC) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            answer => answer?,
        };
        if from.port_number() != 0 {
            continue; // Any process may write to our socket; only port 0 is the kernel.
        }
        if length > part.len() {
            return Err(io::Error::other("the kernel's netlink answer was larger than any known kernel sends"));
        }
        size += length;
        if take_messages(&part, &mut messages)? {
            return Ok(messages);
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "netlink did not come to an end"))
}

/// Splits one datagram into messages; true when the answer is complete.
fn take_messages(mut rest: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while !rest.is_empty() {
        let header = NetlinkBuffer::new_checked(rest).map_err(|e| io::Error::other(e.to_string()))?;
        let length = header.length() as usize;
        match header.message_type() {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = header.payload().first_chunk::<4>().map_or(0, |b| i32::from_ne_bytes(*b));
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) };
            }
            _ => messages.push(rest.get(..length).unwrap_or(rest).to_vec()),
        }
        if header.flags() & NLM_F_MULTI == 0 {
            return Ok(true);
        }
        // Messages start at multiples of four bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// `ETHTOOL_GSET` of linux/ethtool.h: `struct ethtool_cmd`, 44 bytes.
const GSET: u32 = 0x01;
/// `ETHTOOL_GDRVINFO`: `struct ethtool_drvinfo`, 196 bytes.
const GDRVINFO: u32 = 0x03;
/// `ETHTOOL_GSTRINGS`.
const GSTRINGS: u32 = 0x1b;
/// `ETHTOOL_GSTATS`.
const GSTATS: u32 = 0x1d;
/// `ETHTOOL_GSSET_INFO` (kernel 2.6.34).
const GSSET_INFO: u32 = 0x37;
/// `ETHTOOL_GFEATURES` (kernel 2.6.39).
const GFEATURES: u32 = 0x3a;
/// `ETHTOOL_GLINKSETTINGS` (kernel 4.6).
const GLINKSETTINGS: u32 = 0x4c;
/// Commands that read one `struct ethtool_value` and change nothing: GRXCSUM, GTXCSUM, GTSO, GGSO, GFLAGS, GGRO.
const VALUES: [u32; 6] = [0x14, 0x16, 0x1e, 0x23, 0x25, 0x2b];
/// Commands that read one structure of a fixed size and change nothing: `ETHTOOL_GDRVINFO`, `GCOALESCE`, `GRINGPARAM`,
/// `GPAUSEPARAM`, `GRXRINGS`, `GCHANNELS`, `GMODULEINFO`, `GEEE`, `GFECPARAM`.
const STRUCTURES: [u32; 9] = [GDRVINFO, 0x0e, 0x10, 0x12, 0x2d, 0x3c, GMODULEINFO, 0x44, 0x50];
/// The largest of these, `struct ethtool_drvinfo`, has 196 bytes; `struct ethtool_rxnfc` has 192.
const STRUCTURE: usize = 256;
/// `ETHTOOL_GRXFHINDIR` (kernel 2.6.36).
const GRXFHINDIR: u32 = 0x38;
/// The largest table of known drivers has 2048 places.
const PLACES: u32 = 16_384;
/// `ETHTOOL_GMODULEINFO` (kernel 3.4).
const GMODULEINFO: u32 = 0x42;
/// `ETHTOOL_GMODULEEEPROM` (kernel 3.4).
const GMODULEEEPROM: u32 = 0x43;
/// What identifies a module stands in its first 256 bytes (SFF-8472 A0h; SFF-8636 lower page and page 00h).
const MODULE: u32 = 256;
/// `ETH_SS_STATS`: the set of strings that names the statistics.
const SET_STATISTICS: u32 = 1;
/// `ETH_SS_FEATURES`: the set of strings that names the features.
const SET_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const STRING: usize = 32;
/// More strings than this are not read; the largest drivers have some thousands (one set for each queue).
const STRINGS: usize = 8192;
/// The kernel writes as many strings as the driver has *now*, whatever room was asked for: twice the
/// room covers a driver whose number of queues changes between the two questions.
const ROOM: usize = 2 * STRINGS;

/// One ethtool command; the answer is in `data`.
///
/// `data` must be at least as long as anything that the kernel writes for the command in its first
/// four bytes: the functions below, the only callers, each see to it.
fn ethtool(name: &str, data: &mut [u8]) -> io::Result<()> {
    // Any socket carries the question; it is not bound, as the loopback interface may be down.
    let new = |domain| socket2::Socket::new(domain, socket2::Type::DGRAM, None);
    let socket = new(socket2::Domain::IPV4).or_else(|_| new(socket2::Domain::UNIX))?;
    // SAFETY: ifreq is plain data for which all zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an interface's name"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the descriptor is open, the name ends with a zero byte, and `data` outlives the call and has
    // room for the answer (see above).
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn put(data: &mut [u8], at: usize, value: u32) {
    if let Some(place) = data.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

fn word(data: &[u8], at: usize) -> u32 {
    data.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_ne_bytes(*b))
}

/// `struct ethtool_link_settings` with its three masks as `ETHTOOL_GLINKSETTINGS` gives it (kernel 4.6 and later).
pub fn ethtool_link_settings(name: &str) -> io::Result<Vec<u8>> {
    const HEAD: usize = 48;
    const NWORDS: usize = 15;
    // The number of words is a signed byte, so three masks of 127 words are the most there can be.
    let mut data = vec![0; HEAD + 3 * 127 * 4];
    put(&mut data, 0, GLINKSETTINGS);
    ethtool(name, &mut data)?;
    // The first answer is only the number of words in a mask, negative.
    let words = data[NWORDS].cast_signed().unsigned_abs();
    if words == 0 || words > 127 {
        return Err(io::Error::other("the kernel gave no size for the link modes"));
    }
    data.fill(0);
    put(&mut data, 0, GLINKSETTINGS);
    data[NWORDS] = words;
    ethtool(name, &mut data)?;
    data.truncate(HEAD + 3 * usize::from(words) * 4);
    Ok(data)
}

/// `struct ethtool_cmd` as `ETHTOOL_GSET` gives it, for kernels before 4.6.
pub fn ethtool_settings(name: &str) -> io::Result<Vec<u8>> {
    let mut data = vec![0; 44];
    put(&mut data, 0, GSET);
    ethtool(name, &mut data)?;
    Ok(data)
}

/// The driver's name as `ETHTOOL_GDRVINFO` gives it: 32 bytes, padded with zeros.
pub fn ethtool_driver(name: &str) -> io::Result<Vec<u8>> {
    let mut data = vec![0; 196];
    put(&mut data, 0, GDRVINFO);
    ethtool(name, &mut data)?;
    Ok(data[4..36].to_vec())
}

/// One structure of linux/ethtool.h as a command that only reads gives it, padded with zeros to 256 bytes.
pub fn ethtool_structure(name: &str, command: u32) -> io::Result<Vec<u8>> {
    if !STRUCTURES.contains(&command) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a command that only reads a structure"));
    }
    let mut data = vec![0; STRUCTURE];
    put(&mut data, 0, command);
    ethtool(name, &mut data)?;
    Ok(data)
}

/// The table that leads the hash of an incoming flow to a receive queue (`ETHTOOL_GRXFHINDIR`): the queue of each place.
pub fn ethtool_hash_table(name: &str) -> io::Result<Vec<u32>> {
    let mut data = vec![0; 8];
    put(&mut data, 0, GRXFHINDIR);
    // With room for nothing the kernel gives only the size.
    ethtool(name, &mut data)?;
    let places = word(&data, 4);
    if places > PLACES {
        return Err(io::Error::other("the driver's table is larger than this program reads"));
    }
    let mut data = vec![0; 8 + places as usize * 4];
    put(&mut data, 0, GRXFHINDIR);
    put(&mut data, 4, places);
    // The kernel refuses when the table has grown beyond the size that was given.
    ethtool(name, &mut data)?;
    let places = places.min(word(&data, 4)) as usize;
    Ok(data[8..].as_chunks().0.iter().take(places).map(|b| u32::from_ne_bytes(*b)).collect())
}

/// The first 256 bytes of a plugged module's memory, or fewer where it has fewer; needs `CAP_NET_ADMIN`.
pub fn ethtool_module(name: &str) -> io::Result<Vec<u8>> {
    const HEAD: usize = 16;
    let length = word(&ethtool_structure(name, GMODULEINFO)?, 8).min(MODULE);
    let mut data = vec![0; HEAD + MODULE as usize];
    put(&mut data, 0, GMODULEEEPROM);
    put(&mut data, 12, length);
    ethtool(name, &mut data)?;
    data.truncate(HEAD + length as usize);
    Ok(data.split_off(HEAD))
}

/// The value of one of the old commands that read a flag (`ETHTOOL_GTSO` and its like).
pub fn ethtool_value(name: &str, command: u32) -> io::Result<u32> {
    if !VALUES.contains(&command) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a command that only reads a flag"));
    }
    let mut data = [0; 8];
    put(&mut data, 0, command);
    ethtool(name, &mut data)?;
    Ok(word(&data, 4))
}

/// How many strings a set has.
fn set_size(name: &str, set: u32) -> io::Result<usize> {
    let mut data = [0; 24];
    put(&mut data, 0, GSSET_INFO);
    data[8..16].copy_from_slice(&(1u64 << set).to_ne_bytes());
    ethtool(name, &mut data)?;
    match word(&data, 16) as usize {
        _ if data[8..16] == [0; 8] => Ok(0),
        size if size <= STRINGS => Ok(size),
        _ => Err(io::Error::other("the driver has more strings than this program reads")),
    }
}

fn strings(name: &str, set: u32, size: usize) -> io::Result<Vec<[u8; STRING]>> {
    let mut data = vec![0; 12 + ROOM * STRING];
    put(&mut data, 0, GSTRINGS);
    put(&mut data, 4, set);
    put(&mut data, 8, size as u32);
    ethtool(name, &mut data)?;
    let size = (word(&data, 8) as usize).min(size);
    Ok(data[12..].as_chunks().0.iter().take(size).copied().collect())
}

/// The driver's own statistics (`ethtool -S`): names padded with zeros, and values.
pub fn ethtool_statistics(name: &str) -> io::Result<Vec<([u8; 32], u64)>> {
    let size = set_size(name, SET_STATISTICS)?;
    if size == 0 {
        return Ok(Vec::new());
    }
    let names = strings(name, SET_STATISTICS, size)?;
    let mut data = vec![0; 8 + ROOM * 8];
    put(&mut data, 0, GSTATS);
    put(&mut data, 4, size as u32);
    ethtool(name, &mut data)?;
    if word(&data, 4) as usize != names.len() {
        return Err(io::Error::other("the driver's statistics changed while they were read"));
    }
    Ok(names.into_iter().zip(data[8..].as_chunks().0.iter().map(|b| u64::from_ne_bytes(*b))).collect())
}

/// The names of the kernel's features, padded with zeros.
pub fn ethtool_feature_names(name: &str) -> io::Result<Vec<[u8; 32]>> {
    strings(name, SET_FEATURES, set_size(name, SET_FEATURES)?)
}

/// The kernel's features of an interface as `struct ethtool_get_features_block` (available, requested, active,
/// never changed), 32 features each, in the order of their names.
pub fn ethtool_features(name: &str) -> io::Result<Vec<[u32; 4]>> {
    let blocks = set_size(name, SET_FEATURES)?.div_ceil(32);
    let mut data = vec![0; 8 + blocks * 16];
    put(&mut data, 0, GFEATURES);
    put(&mut data, 4, blocks as u32);
    // The kernel writes no more blocks than the size says.
    ethtool(name, &mut data)?;
    let blocks = data[8..].as_chunks::<16>().0.iter();
    Ok(blocks.map(|b| [word(b, 0), word(b, 4), word(b, 8), word(b, 12)]).collect())
}
