//! What `ssh -v` says: what it negotiated, and why it gave up. Pure.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::target::Target;
use crate::copy::lane::fact;
use crate::model::copy::LaneFact;
use crate::model::outcome::Source;

/// What was said so far, in bounded memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What was agreed for PC → NAS.
    pub upload: Option<Agreed>,
    /// What was agreed for NAS → PC.
    pub download: Option<Agreed>,
    /// The key exchange.
    pub kex: Option<String>,
    /// The server's software as it calls itself.
    pub server: Option<String>,
    /// The method of the login: `publickey`, `none` …
    pub login: Option<String>,
    /// The address that was connected to, unless a proxy did it. Not among the facts: the report has the addresses of both hosts elsewhere.
    pub peer: Option<IpAddr>,
    /// The own interface behind an address that means something on one cable only, by name or number.
    pub scope: Option<String>,
    /// Whether a proxy or a jump host stands between.
    pub proxy: bool,
    /// What is for people: everything but debug lines, the last few.
    said: VecDeque<String>,
}

/// What was agreed for one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Such as `aes128-gcm@openssh.com`.
    pub cipher: String,
    /// Such as `umac-64-etm@openssh.com`, or `<implicit>` when the cipher does it.
    pub mac: String,
    /// `none`, `zlib@openssh.com`.
    pub compression: String,
}

/// The lines for people that are kept: the warning about a changed key has 13.
const KEPT: usize = 24;

/// A longer line is cut, bytes.
const LONGEST: usize = 2048;

impl Trace {
    /// Takes the next line.
    ///
    /// What stands later counts: behind a jump host, whose own client speaks first on the same stream, the
    /// target's lines are the last ones.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_end_matches(['\r', '\n']);
        let line = (0..=LONGEST.min(line.len())).rev().find_map(|end| line.get(..end)).unwrap_or_default();
        if let Some(debug) = line.strip_prefix("debug1: ") {
            self.debug(debug);
        } else if let Some(login) = line.strip_prefix("Authenticated to ") {
            let method = login.rsplit_once("using \"").and_then(|(_, rest)| rest.split_once('"'));
            self.login = method.map(|(method, _)| method.to_owned());
        } else if !line.starts_with("debug") && !line.trim().is_empty() {
            if self.said.len() == KEPT {
                self.said.pop_front();
            }
            self.said.push_back(line.to_owned());
        }
    }

    fn debug(&mut self, line: &str) {
        if let Some(kex) = line.strip_prefix("kex: ") {
            if let Some(agreed) = kex.strip_prefix("client->server ") {
                self.upload = agreed_of(agreed);
            } else if let Some(agreed) = kex.strip_prefix("server->client ") {
                self.download = agreed_of(agreed);
            } else if let Some(algorithm) = kex.strip_prefix("algorithm: ") {
                self.kex = Some(algorithm.to_owned());
            }
        } else if let Some((_, version)) = line.split_once("remote software version ") {
            self.server = Some(version.to_owned());
        } else if let Some(method) = line.strip_prefix("Authentication succeeded (") {
            // Before OpenSSH 9 the line for people did not name the method.
            self.login = method.split_once(')').map(|(method, _)| method.to_owned());
        } else if line.starts_with("Executing proxy command") || line.starts_with("Setting implicit ProxyCommand") {
            self.proxy = true;
            (self.peer, self.scope) = (None, None);
        } else if let Some(to) = line.strip_prefix("Connecting to ")
            && !self.proxy
        {
            // `NAME [ADDRESS] port N.`; the last of several addresses is the one that answered.
            let address = to.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
            let (address, scope) = address.map_or(("", None), |(address, _)| match address.split_once('%') {
                Some((address, scope)) => (address, Some(scope)),
                None => (address, None),
            });
            self.peer = address.parse().ok();
            // Interfaces have names of 15 letters and figures at most.
            let is_name = |scope: &&str| !scope.is_empty() && scope.len() <= 15 && scope.bytes().all(|b| b.is_ascii_graphic());
            self.scope = scope.filter(is_name).map(str::to_owned);
        }
    }

    /// The address that was connected to, with the interface behind it where it needs one.
    pub fn server(&self) -> Option<String> {
        let peer = self.peer?;
        Some(self.scope.as_ref().map_or_else(|| peer.to_string(), |scope| format!("{peer}%{scope}")))
    }

    /// The facts that are known by now.
    pub fn facts(&self) -> Vec<LaneFact> {
        let mut facts = Vec::new();
        let mut add = |name: &str, value: Option<&str>| {
            facts.extend(value.map(|value| fact(name, value, Source::Program)));
        };
        let (up, down) = (self.upload.as_ref(), self.download.as_ref());
        add("cipher_upload", up.map(|agreed| agreed.cipher.as_str()));
        add("cipher_download", down.map(|agreed| agreed.cipher.as_str()));
        add("mac", up.map(|agreed| agreed.mac.as_str()));
        if up.map(|agreed| &agreed.mac) != down.map(|agreed| &agreed.mac) {
            add("mac_download", down.map(|agreed| agreed.mac.as_str()));
        }
        add("compression", up.map(|agreed| agreed.compression.as_str()));
        if up.map(|agreed| &agreed.compression) != down.map(|agreed| &agreed.compression) {
            add("compression_download", down.map(|agreed| agreed.compression.as_str()));
        }
        add("kex", self.kex.as_deref());
        add("server", self.server.as_deref());
        add("login", self.login.as_deref());
        add("proxy", self.proxy.then_some("yes"));
        facts
    }

    /// Why `ssh` gave up, in one sentence that says what to do; `command` is the login as one types it.
    pub fn failure(&self, target: &Target, command: &str) -> String {
        let has = |needle: &str| self.said.iter().any(|line| line.contains(needle));
        let try_it = format!("try it by hand with `{command}`");
        if has("HOST IDENTIFICATION HAS CHANGED") || has("has changed and you have requested strict checking") {
            return format!(
                "the SSH host key of {target} is not the one that is known: someone else may answer there, or the server was set up anew; {try_it}"
            );
        }
        if has("Host key verification failed") {
            return format!("the SSH host key of {target} is not known yet: log in once with `{command}` and confirm it");
        }
        if has("subsystem request failed") {
            return format!("{target} offers no SFTP: turn on the SFTP service (Subsystem sftp) of the server");
        }
        if has("Permission denied") {
            let methods = self.said.iter().rev().find_map(|line| line.rsplit_once("Permission denied (")?.1.split_once(')'));
            let methods = methods.map_or(String::new(), |(methods, _)| format!(" (it would accept {methods})"));
            return format!(
                "{target} refused the login{methods}: weaklink never asks for a password, so make `{command}` work without one, with a key or an agent"
            );
        }
        match self.last() {
            Some(line) => format!("the SSH connection to {target} failed: {line}; {try_it}"),
            None => format!("the SSH connection to {target} ended without a word; {try_it}"),
        }
    }

    /// The last line for people that says something.
    fn last(&self) -> Option<&str> {
        let noise = |line: &str| {
            ["OpenSSH_", "Transferred:", "Bytes per second:", "Warning: Permanently added", "Pseudo-terminal"]
                .iter()
                .any(|start| line.starts_with(start))
                || line.chars().all(|c| matches!(c, '@' | '*' | '-' | '=' | '#' | ' '))
        };
        let line = self.said.iter().rev().find(|line| !noise(line))?;
        Some(line.strip_prefix("ssh: ").unwrap_or(line).trim().trim_end_matches('.'))
    }
}

/// `cipher: X MAC: Y compression: Z`, or `X Y Z` before OpenSSH 6.8.
fn agreed_of(text: &str) -> Option<Agreed> {
    let words: Vec<&str> = text.split_whitespace().filter(|word| !word.ends_with(':')).collect();
    match *words.as_slice() {
        [cipher, mac, compression] => {
            Some(Agreed { cipher: cipher.to_owned(), mac: mac.to_owned(), compression: compression.to_owned() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Trace {
        let mut trace = Trace::default();
        text.lines().for_each(|line| trace.line(line));
        trace
    }

    fn facts(text: &str) -> Vec<(String, String)> {
        read(text).facts().into_iter().map(|fact| (fact.name, fact.value)).collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn recorded_logins_give_cipher_mac_and_compression() {
        let server = "OpenSSH_9.2p1 Debian-2+deb12u10";
        for (text, cipher, mac, compression) in [
            (include_str!("../../../tests/fixtures/copy/ssh_v_ok.txt"), "chacha20-poly1305@openssh.com", "<implicit>", "none"),
            (
                include_str!("../../../tests/fixtures/copy/ssh_v_gcm.txt"),
                "aes128-gcm@openssh.com",
                "<implicit>",
                "zlib@openssh.com",
            ),
            (include_str!("../../../tests/fixtures/copy/ssh_v_ctr.txt"), "aes256-ctr", "umac-64-etm@openssh.com", "none"),
        ] {
            let expected = pairs(&[
                ("cipher_upload", cipher),
                ("cipher_download", cipher),
                ("mac", mac),
                ("compression", compression),
                ("kex", "sntrup761x25519-sha512"),
                ("server", server),
                ("login", "publickey"),
            ]);
            assert_eq!(facts(text), expected);
            assert_eq!(read(text).peer, Some(std::net::Ipv4Addr::LOCALHOST.into()));
        }
    }

    #[test]
    fn old_clients_and_directions_that_differ_are_read() {
        let text = "debug1: Remote protocol version 2.0, remote software version dropbear_2022.83\n\
            debug1: kex: server->client aes128-ctr hmac-md5 none\n\
            debug1: kex: client->server 3des-cbc hmac-sha1 zlib\n\
            debug1: Authentication succeeded (publickey).\n";
        let expected = pairs(&[
            ("cipher_upload", "3des-cbc"),
            ("cipher_download", "aes128-ctr"),
            ("mac", "hmac-sha1"),
            ("mac_download", "hmac-md5"),
            ("compression", "zlib"),
            ("compression_download", "none"),
            ("server", "dropbear_2022.83"),
            ("login", "publickey"),
        ]);
        assert_eq!(facts(text), expected);
    }

    #[test]
    fn behind_a_jump_host_the_lines_of_the_target_count() {
        let text = "debug1: Executing proxy command: exec ssh -v -W '[nas]:22' jump\n\
            debug1: kex: client->server cipher: aes256-ctr MAC: hmac-sha2-256 compression: none\n\
            debug1: kex: client->server cipher: aes128-gcm@openssh.com MAC: <implicit> compression: none\n";
        let trace = read(text);
        assert_eq!(trace.upload.as_ref().map(|agreed| agreed.cipher.as_str()), Some("aes128-gcm@openssh.com"));
        assert!(trace.facts().iter().any(|fact| fact.name == "proxy"));
        let jump = "debug1: Setting implicit ProxyCommand from ProxyJump: ssh -W x jump\ndebug1: Connecting to jump [192.0.2.9] port 22.\n";
        assert_eq!(read(jump).peer, None);
    }

    #[test]
    fn the_servers_address_keeps_its_interface() {
        let long = "x".repeat(40);
        for (address, told) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("fe80::1%eth0", Some("fe80::1%eth0")),
            ("fe80::1%", Some("fe80::1")),
            (&format!("fe80::1%{long}"), Some("fe80::1")),
            ("nas", None),
        ] {
            let read = read(&format!("debug1: Connecting to nas [{address}] port 22.\n"));
            assert_eq!(read.server().as_deref(), told, "{address}");
        }
    }

    #[test]
    fn a_failure_is_one_sentence_that_says_what_to_do() {
        let target: Target = "ssh://me@nas:2222".parse().unwrap();
        for (text, parts) in [
            (
                "No ED25519 host key is known for nas and you have requested strict checking.\nHost key verification failed.\n",
                ["the SSH host key of me@nas (port 2222) is not known yet", "with `ssh -p 2222 me@nas`"],
            ),
            (
                "@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@\nHost key for nas has changed and you have requested strict checking.\nHost key verification failed.\n",
                ["not the one that is known", "set up anew"],
            ),
            (
                "me@nas: Permission denied (publickey,password).\n",
                ["refused the login (it would accept publickey,password)", "never asks for a password"],
            ),
            (
                "ssh: connect to host nas port 2222: Connection refused\n",
                ["connect to host nas port 2222: Connection refused", "by hand"],
            ),
            ("ssh: Could not resolve hostname nas: Name or service not known\n", ["Could not resolve hostname nas", "by hand"]),
            ("subsystem request failed on channel 0\n", ["no SFTP", "Subsystem sftp"]),
            ("command-line: line 0: Bad configuration option: nonsense\n", ["Bad configuration option: nonsense", "failed"]),
            (
                "Unable to negotiate with 192.0.2.7 port 22: no matching cipher found. Their offer: aes128-ctr\n",
                ["no matching cipher found", "aes128-ctr"],
            ),
            (
                "client_loop: send disconnect: Broken pipe\nTransferred: sent 1, received 2 bytes, in 0.1 seconds\n",
                ["Broken pipe", "nas"],
            ),
            ("debug1: something\nOpenSSH_9.2p1, OpenSSL 3\n", ["without a word", "nas"]),
            ("", ["without a word", "nas"]),
        ] {
            let sentence = read(text).failure(&target, "ssh -p 2222 me@nas");
            for part in parts {
                assert!(sentence.contains(part), "{text:?}: {sentence}");
            }
            assert!(!sentence.contains('\n'));
        }
    }

    #[test]
    fn endless_and_broken_output_stays_small() {
        let mut trace = Trace::default();
        for i in 0..10_000 {
            trace.line(&format!("banner {i} {}", "ä".repeat(4000)));
        }
        assert!(trace.said.len() <= KEPT && trace.said.iter().all(|line| line.len() <= LONGEST));
        for broken in [
            "debug1: kex: client->server",
            "debug1: kex: ",
            "Authenticated to ",
            "debug1: kex: client->server cipher:",
            "Authenticated to x using \"",
        ] {
            trace.line(broken);
        }
        assert_eq!(trace.upload, None);
    }
}
