//! Where to: `[USER@]HOST[:DIR]` as `scp` reads it, or `ssh://[USER@]HOST[:PORT][/DIR]`. Pure.

use std::fmt;
use std::str::FromStr;

/// A server, and a directory on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name to log in with; without one the user's configuration decides.
    pub user: Option<String>,
    /// The name, the address (without brackets) or the alias of the user's configuration.
    pub host: String,
    /// The port; without one the user's configuration decides.
    pub port: Option<u16>,
    /// The directory, relative to the home directory of the user there unless it begins with `/`.
    pub dir: Option<String>,
}

/// A text that is no target: one sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not [USER@]HOST[:DIR] or ssh://[USER@]HOST[:PORT][/DIR]: {wrong}")]
pub struct ParseTargetError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub wrong: &'static str,
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.strip_prefix("ssh://").or_else(|| text.strip_prefix("sftp://")) {
            Some(rest) => url(rest),
            None => plain(text),
        };
        parsed.and_then(checked).map_err(|wrong| ParseTargetError { text: text.to_owned(), wrong })
    }
}

impl fmt::Display for Target {
    /// As people say it: `me@nas (port 2222)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.login())?;
        self.port.map_or(Ok(()), |port| write!(f, " (port {port})"))
    }
}

impl Target {
    /// `[USER@]HOST`, as one types it after `ssh`.
    pub(super) fn login(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// What is typed to name a directory as well: `me@nas:DIR`, with a port `ssh://me@nas:2222/DIR`.
    pub(super) fn with_dir(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        match self.port {
            Some(port) => format!("ssh://{}{host}:{port}/DIR", user.replace('%', "%25")),
            None => format!("{user}{host}:DIR"),
        }
    }
}

const BRACKETS: &str = "write an IPv6 address in brackets: [::1] or [::1]:DIR";

fn plain(text: &str) -> Result<Target, &'static str> {
    let mut letters = text.chars();
    if let (Some('a'..='z' | 'A'..='Z'), Some(':'), Some('\\' | '/')) = (letters.next(), letters.next(), letters.next()) {
        return Err("it looks like a Windows path; for a server with a name of one letter write ssh://HOST/DIR");
    }
    let (authority, dir) = match text.find('[') {
        Some(open) if !text.get(..open).unwrap_or_default().contains([':', '/']) => {
            let close = text.find(']').ok_or("the bracket is not closed")?;
            let (authority, rest) = text.split_at(close + 1);
            match rest.strip_prefix(':') {
                Some(dir) => (authority, Some(dir)),
                None if rest.is_empty() => (authority, None),
                None => return Err("after the bracket comes nothing or :DIR"),
            }
        }
        _ => match text.split_once(':') {
            Some((authority, dir)) => (authority, Some(dir)),
            None => (text, None),
        },
    };
    if authority.contains('/') {
        return Err("it looks like a local path; a mounted directory is given with --path");
    }
    let (user, host) = split_user(authority);
    if !host.starts_with('[') && dir.is_some_and(|dir| format!("{host}:{dir}").parse::<std::net::Ipv6Addr>().is_ok()) {
        return Err(BRACKETS);
    }
    Ok(Target {
        user: user.map(str::to_owned),
        host: unbracketed(host)?,
        port: None,
        dir: dir.filter(|dir| !dir.is_empty()).map(str::to_owned),
    })
}

fn url(rest: &str) -> Result<Target, &'static str> {
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, host_port) = split_user(authority);
    let (host, port) = match host_port.rfind(']') {
        Some(close) => {
            let (host, rest) = host_port.split_at(close + 1);
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(BRACKETS)?) })
        }
        None => match host_port.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(BRACKETS),
            Some((host, port)) => (host, Some(port)),
            None => (host_port, None),
        },
    };
    let port = match port {
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => {
            Some(port.parse::<u16>().ok().filter(|port| *port > 0).ok_or("the port is not 1 to 65535")?)
        }
        Some(_) => return Err("the port is not a number"),
        None => None,
    };
    let path = decode(path)?;
    let dir = match path.strip_prefix("/~/") {
        Some("") => Some(".".to_owned()),
        Some(relative) => Some(relative.to_owned()),
        None => (path.len() > 1).then_some(path),
    };
    Ok(Target { user: user.map(decode).transpose()?, host: unbracketed(host)?, port, dir })
}

fn split_user(authority: &str) -> (Option<&str>, &str) {
    authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host))
}

fn unbracketed(host: &str) -> Result<String, &'static str> {
    match host.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.strip_suffix(']').ok_or("the bracket is not closed")?;
            let address = inner.split('%').next().unwrap_or_default();
            address
                .parse::<std::net::Ipv6Addr>()
                .map(|_| inner.to_owned())
                .map_err(|_| "what stands in brackets is no IPv6 address")
        }
        None => Ok(host.to_owned()),
    }
}

fn decode(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "after % come two hexadecimal digits";
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).ok_or(WRONG);
        out.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(out).map_err(|_| "the decoded text is not UTF-8")
}

/// Host and user become arguments of a program that hands them on to commands of the user's configuration: nothing in them may be an option or mean something to a shell.
fn checked(target: Target) -> Result<Target, &'static str> {
    let harmless = |c: char| !c.is_control() && !c.is_whitespace() && !r#"'"`$\;&<>|(){}*?!#,"#.contains(c);
    if target.host.is_empty() {
        return Err("the host is missing");
    }
    if target.host.starts_with('-') || target.user.as_ref().is_some_and(|user| user.starts_with('-')) {
        return Err("neither user nor host begins with a dash");
    }
    if !target.host.chars().all(|c| harmless(c) && !matches!(c, '@' | '/' | '[' | ']')) {
        return Err("the host has characters that no host has");
    }
    if target
        .user
        .as_ref()
        .is_some_and(|user| user.is_empty() || !user.chars().all(|c| harmless(c) || c == '\\') || user.ends_with('\\'))
    {
        return Err("the user is empty or has characters that are not allowed here");
    }
    if target.dir.as_ref().is_some_and(|dir| dir.chars().any(char::is_control)) {
        return Err("the directory has control characters");
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(user: Option<&str>, host: &str, port: Option<u16>, dir: Option<&str>) -> Target {
        Target { user: user.map(str::to_owned), host: host.to_owned(), port, dir: dir.map(str::to_owned) }
    }

    #[test]
    fn targets_are_read_as_people_type_them() {
        for (text, expected) in [
            ("nas", target(None, "nas", None, None)),
            ("me@nas", target(Some("me"), "nas", None, None)),
            ("nas:", target(None, "nas", None, None)),
            ("nas:dir", target(None, "nas", None, Some("dir"))),
            ("me@nas:/volume1/a b", target(Some("me"), "nas", None, Some("/volume1/a b"))),
            ("nas:/odd:name@home", target(None, "nas", None, Some("/odd:name@home"))),
            ("me@corp@nas:x", target(Some("me@corp"), "nas", None, Some("x"))),
            (r"CORP\me@nas", target(Some(r"CORP\me"), "nas", None, None)),
            ("192.0.2.7:/x", target(None, "192.0.2.7", None, Some("/x"))),
            ("[::1]", target(None, "::1", None, None)),
            ("[::1]:/x", target(None, "::1", None, Some("/x"))),
            ("me@[fe80::1%eth0]:x", target(Some("me"), "fe80::1%eth0", None, Some("x"))),
            ("nas:[odd]", target(None, "nas", None, Some("[odd]"))),
            ("ssh://nas", target(None, "nas", None, None)),
            ("ssh://nas/", target(None, "nas", None, None)),
            ("ssh://me@nas:2222/volume1/x", target(Some("me"), "nas", Some(2222), Some("/volume1/x"))),
            ("ssh://nas/~/x", target(None, "nas", None, Some("x"))),
            ("ssh://nas/~/", target(None, "nas", None, Some("."))),
            ("ssh://[2001:db8::1]:22/x", target(None, "2001:db8::1", Some(22), Some("/x"))),
            ("ssh://me%40corp@nas/a%20b", target(Some("me@corp"), "nas", None, Some("/a b"))),
            ("sftp://c/x", target(None, "c", None, Some("/x"))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_target_is_named_for_people_and_suggested_as_it_is_typed() {
        for (text, named, suggested) in [
            ("nas", "nas", "nas:DIR"),
            ("ssh://me@nas:2222", "me@nas (port 2222)", "ssh://me@nas:2222/DIR"),
            ("me@[::1]", "me@::1", "me@[::1]:DIR"),
            ("ssh://[::1]:22", "::1 (port 22)", "ssh://[::1]:22/DIR"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), target.with_dir().as_str()), (named, suggested), "{text}");
            assert!(target.with_dir().parse::<Target>().is_ok_and(|read| read.host == target.host && read.port == target.port));
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "missing"),
            (":dir", "missing"),
            ("me@", "missing"),
            ("@nas", "user is empty"),
            ("-oProxyCommand=x", "dash"),
            ("-x@nas", "dash"),
            ("ssh://-oProxyCommand=x/y", "dash"),
            ("ssh://%2dx@nas", "dash"),
            ("::1", "brackets"),
            ("me@fe80::1", "brackets"),
            ("ssh://2001:db8::1/x", "brackets"),
            ("[::1", "not closed"),
            ("[nas]:x", "IPv6"),
            ("[::1]x", "after the bracket"),
            (r"C:\Users\me", "Windows"),
            ("C:/Users/me", "Windows"),
            (r"\\nas\share", "characters"),
            ("/mnt/nas", "local path"),
            ("./nas:x", "local path"),
            ("na s", "characters"),
            ("nas;reboot", "characters"),
            ("$(reboot)", "characters"),
            ("me`x`@nas", "user"),
            ("nas\n", "characters"),
            ("nas:a\nb", "control"),
            ("ssh://nas:0/", "65535"),
            ("ssh://nas:99999/", "65535"),
            ("ssh://nas:x/", "number"),
            ("ssh://nas/%zz", "hexadecimal"),
            ("ssh://nas/%ff", "UTF-8"),
            ("ssh://nas/%00", "control"),
            ("ssh:///x", "missing"),
        ] {
            let error = text.parse::<Target>().expect_err(text);
            assert!(error.wrong.contains(reason), "{text:?}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_becomes_an_option(text in "\\PC{0,40}") {
            if let Ok(target) = text.parse::<Target>() {
                proptest::prop_assert!(!target.host.starts_with('-') && !target.host.is_empty());
                proptest::prop_assert!(!target.user.unwrap_or_default().starts_with('-'));
            }
        }
    }
}
