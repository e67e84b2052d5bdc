//! Who answers for one port: the running kernel by netlink and ioctl, or nobody.

#[cfg(test)]
use std::collections::BTreeMap;
use std::io;

use super::netlink::{self, Question};
use crate::link::ethtool::{self, Settings};
use crate::link::tree::Tree;
use crate::model::outcome::{Fact, Outcome, Source};
use crate::sys;

/// What a port says of its link, and by which way it was asked; or why it says nothing.
pub(in crate::link) type Link = Result<Fact<Settings>, String>;

/// One port that can be asked.
pub(in crate::link) struct Port {
    name: String,
    answers: Answers,
}

enum Answers {
    /// The kernel; the number of the family "ethtool", where it has one.
    Kernel(Option<u16>),
    /// Nobody, for this reason.
    Nobody(&'static str),
    /// What was recorded.
    #[cfg(test)]
    Recorded(Recorded),
}

/// Answers that were recorded, or made by hand; what is missing was not supported.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    /// Replies of netlink.
    pub messages: BTreeMap<Question, Vec<u8>>,
    /// Structures of the ioctl, by command; `ETHTOOL_GLINKSETTINGS` and `GSET` among them.
    pub structures: BTreeMap<u32, Vec<u8>>,
    /// The table of the hash.
    pub hash: Option<Vec<u32>>,
    /// A module's memory.
    pub module: Option<Vec<u8>>,
    /// The error where nothing was recorded, by number.
    pub error: i32,
}

/// `ETHTOOL_GSET`, `ETHTOOL_GLINKSETTINGS`: names of recorded answers.
#[cfg(test)]
pub(super) const GSET: u32 = 0x01;
#[cfg(test)]
pub(super) const GLINKSETTINGS: u32 = 0x4c;

/// `EOPNOTSUPP`, `EPERM` and `EACCES` on Linux; on the few machines that number them otherwise, the reason names the number.
const NOT_SUPPORTED: i32 = 95;
const NOT_PERMITTED: [i32; 2] = [1, 13];

/// Whether an error means that the driver or the kernel has no such thing.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(NOT_SUPPORTED)
}

/// Whether an error means that a privilege is missing.
pub(super) fn is_denied(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| NOT_PERMITTED.contains(&number))
}

/// Reads one value from a reply or a structure; none when it is not in there.
type Decode<T> = fn(&[u8]) -> Option<T>;

/// How one fact is asked for by both ways.
pub(super) struct Way<T> {
    /// What it is, in words: "flow control".
    pub what: &'static str,
    /// The question of netlink and the decoder of its reply.
    pub netlink: (Question, Decode<T>),
    /// The command of the ioctl and the decoder of its structure.
    pub ioctl: (u32, Decode<T>),
}

impl Port {
    /// The port `name`, which is asked only on the running machine itself.
    pub(in crate::link) fn new(tree: &Tree, name: &str) -> Self {
        let answers = if tree.is_live() {
            let reply = sys::net::generic_netlink(&netlink::family_request());
            Answers::Kernel(reply.ok().and_then(|messages| netlink::family(messages.first()?)))
        } else {
            Answers::Nobody("ethtool can be asked only on the running machine, not in a recording")
        };
        Self { name: name.to_owned(), answers }
    }

    /// A port that answers as was recorded.
    #[cfg(test)]
    pub(super) fn recorded(name: &str, answers: Recorded) -> Self {
        Self { name: name.to_owned(), answers: Answers::Recorded(answers) }
    }

    /// Why nobody can be asked, if that is so.
    pub(super) const fn why_nobody(&self) -> Option<&'static str> {
        match self.answers {
            Answers::Nobody(why) => Some(why),
            Answers::Kernel(_) => None,
            #[cfg(test)]
            Answers::Recorded(_) => None,
        }
    }

    /// The reply to a question of netlink.
    pub(super) fn message(&self, question: Question) -> io::Result<Vec<u8>> {
        match &self.answers {
            Answers::Kernel(Some(family)) => {
                let mut reply = sys::net::generic_netlink(&netlink::request(*family, question, &self.name))?;
                if reply.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's reply was empty"));
                }
                Ok(reply.swap_remove(0))
            }
            Answers::Kernel(None) | Answers::Nobody(_) => Err(io::Error::from_raw_os_error(NOT_SUPPORTED)),
            #[cfg(test)]
            Answers::Recorded(recorded) => {
                recorded.messages.get(&question).cloned().ok_or_else(|| io::Error::from_raw_os_error(recorded.error))
            }
        }
    }

    /// The structure that a command of the ioctl fills.
    pub(super) fn structure(&self, command: u32) -> io::Result<Vec<u8>> {
        match &self.answers {
            Answers::Kernel(_) => sys::net::ethtool_structure(&self.name, command),
            Answers::Nobody(_) => Err(io::Error::from_raw_os_error(NOT_SUPPORTED)),
            #[cfg(test)]
            Answers::Recorded(recorded) => {
                recorded.structures.get(&command).cloned().ok_or_else(|| io::Error::from_raw_os_error(recorded.error))
            }
        }
    }

    /// The table of the hash of incoming flows.
    pub(super) fn hash(&self) -> io::Result<Fact<Vec<u32>>> {
        if let Some(table) = self.message(Question::Hash).ok().and_then(|message| netlink::hash(&message)) {
            return Ok(Fact::new(table, Source::EthtoolNetlink));
        }
        let table = match &self.answers {
            Answers::Kernel(_) => sys::net::ethtool_hash_table(&self.name),
            Answers::Nobody(_) => Err(io::Error::from_raw_os_error(NOT_SUPPORTED)),
            #[cfg(test)]
            Answers::Recorded(recorded) => recorded.hash.clone().ok_or_else(|| io::Error::from_raw_os_error(recorded.error)),
        };
        Ok(Fact::new(table?, Source::Ethtool))
    }

    /// The first bytes of a plugged module's memory.
    pub(super) fn module(&self) -> io::Result<Fact<Vec<u8>>> {
        let part = |offset| {
            let message = self.message(Question::Module(offset))?;
            let bytes = netlink::module(&message).filter(|bytes| !bytes.is_empty());
            bytes.map(<[u8]>::to_vec).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the reply holds no bytes"))
        };
        match part(0) {
            Ok(mut memory) => {
                if memory.first().is_some_and(|first| super::module::is_long(*first)) {
                    memory.extend(part(128)?);
                }
                Ok(Fact::new(memory, Source::EthtoolNetlink))
            }
            // A refusal by netlink stands: the ioctl asks the same driver, and needs the same privilege.
            Err(error) if is_denied(&error) => Err(error),
            Err(_) => {
                let memory = match &self.answers {
                    Answers::Kernel(_) => sys::net::ethtool_module(&self.name),
                    Answers::Nobody(_) => Err(io::Error::from_raw_os_error(NOT_SUPPORTED)),
                    #[cfg(test)]
                    Answers::Recorded(recorded) => {
                        recorded.module.clone().ok_or_else(|| io::Error::from_raw_os_error(recorded.error))
                    }
                };
                Ok(Fact::new(memory?, Source::Ethtool))
            }
        }
    }

    /// What the port says of its link: by netlink, by the newer ioctl (kernel 4.6), or by the old one.
    pub(in crate::link) fn link(&self) -> Link {
        if let Some(why) = self.why_nobody() {
            return Err(why.to_owned());
        }
        if let Some(mut settings) = self.message(Question::Modes).ok().and_then(|message| netlink::modes(&message)) {
            if let Ok(message) = self.message(Question::Info) {
                (settings.port, settings.mdi) = netlink::info(&message);
            }
            return Ok(Fact::new(settings, Source::EthtoolNetlink));
        }
        let settings = match self.new_settings() {
            Ok(data) => ethtool::link_settings(&data),
            Err(_) => match self.old_settings() {
                Ok(data) => ethtool::old_settings(&data),
                Err(error) => {
                    return Err(format!("the driver of {} answers no ethtool question about its link ({error})", self.name));
                }
            },
        };
        let settings = settings.ok_or_else(|| format!("ethtool's answer for {} was cut", self.name))?;
        Ok(Fact::new(settings, Source::Ethtool))
    }

    fn new_settings(&self) -> io::Result<Vec<u8>> {
        match &self.answers {
            #[cfg(test)]
            Answers::Recorded(_) => self.structure(GLINKSETTINGS),
            _ => sys::net::ethtool_link_settings(&self.name),
        }
    }

    fn old_settings(&self) -> io::Result<Vec<u8>> {
        match &self.answers {
            #[cfg(test)]
            Answers::Recorded(_) => self.structure(GSET),
            _ => sys::net::ethtool_settings(&self.name),
        }
    }

    /// One fact by netlink, else by the ioctl, else the reason.
    pub(super) fn fact<T>(&self, way: &Way<T>) -> Outcome<Fact<T>> {
        if let Some(why) = self.why_nobody() {
            return Outcome::skipped(why);
        }
        let (question, of_message) = way.netlink;
        let reply = self.message(question);
        if let Some(value) = reply.as_ref().ok().and_then(|message| of_message(message)) {
            return Outcome::Measured(Fact::new(value, Source::EthtoolNetlink));
        }
        let (command, of_structure) = way.ioctl;
        match self.structure(command) {
            Ok(data) => match of_structure(&data) {
                Some(value) => Outcome::Measured(Fact::new(value, Source::Ethtool)),
                None => Outcome::skipped(self.untold(way.what)),
            },
            Err(_) if reply.is_ok() => Outcome::skipped(self.untold(way.what)),
            Err(error) => self.refused(way.what, &error),
        }
    }

    /// The driver has no such thing.
    pub(super) fn untold(&self, what: &str) -> String {
        format!("the driver of {} does not tell its {what}", self.name)
    }

    /// Why a question found no answer.
    pub(super) fn refused<T>(&self, what: &str, error: &io::Error) -> Outcome<T> {
        if is_unsupported(error) {
            Outcome::skipped(self.untold(what))
        } else if is_denied(error) {
            Outcome::skipped(format!("the {what} of {} is told to root only (CAP_NET_ADMIN); run weaklink as root", self.name))
        } else {
            Outcome::skipped(format!("the {what} of {} cannot be read: {error}", self.name))
        }
    }
}
