//! A host whose programs' outputs were recorded, so that any system can read it.

use std::io;

use super::machine::Machine;
use crate::model::link::{Bus, Interface};
use crate::sys::ports::{Question, Teller};
use crate::sys::program::Printed;

/// The interfaces from `top` down, as the recorded outputs tell them.
///
/// Each output stands behind its question: `ifconfig en0`, `ifconfig -b bond0` (the details of an aggregation), `netstat en0`,
/// `pciconf igb0`, or `powershell` alone for the lines of weaklink's own script. Never empty; what is not told has its reason.
pub fn from_programs(outputs: &[(String, String)], top: &str) -> Vec<Interface> {
    let ask = |question: Question<'_>| answer(outputs, question);
    Machine::new(teller(outputs), Vec::new(), &ask, None).stack(top)
}

/// The bus that `pciconf -l -c NAME` of FreeBSD prints; none where it is no card of PCI Express.
pub fn from_pciconf(text: &str) -> Option<Bus> {
    super::pciconf::decode(text)
}

/// Which system the outputs are of.
pub(super) fn teller(outputs: &[(String, String)]) -> Teller {
    if outputs.iter().any(|(question, _)| question == "powershell") { Teller::PowerShell } else { Teller::Ifconfig }
}

/// The recorded answer; `NotFound` where there is none.
pub(super) fn answer(outputs: &[(String, String)], question: Question<'_>) -> io::Result<Printed> {
    let wanted = match question {
        Question::Interface(name) => format!("ifconfig {name}"),
        Question::Aggregation(name) => format!("ifconfig -b {name}"),
        Question::Route(peer) => format!("route {peer}"),
        Question::Counters(name) => format!("netstat {name}"),
        Question::Bus(name) => format!("pciconf {name}"),
        Question::Script(_) => "powershell".to_owned(),
    };
    let found = outputs.iter().find(|(question, _)| *question == wanted);
    let text = found.map(|(_, text)| text.clone()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(Printed { text, whole: true })
}
