//! What kind of host this is, without anything private: no host name, no serial number, no address is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;

use super::decode::{lines, number};
use crate::model::Outcome;
use crate::model::host::{Host, TcpSettings};
use crate::sys;
use crate::units::ByteSize;

/// How much of one file is read; `/proc/cpuinfo` has some 1500 bytes a core, and the first core is enough.
const MAX_FILE: u64 = 256 * 1024;

/// The longest text that is taken over, in characters.
const MAX_TEXT: usize = 120;

/// Why a system without a tree of kernel files tells nothing more.
const NO_TREE: &str = "this system does not tell in a way that weaklink reads; Linux does";

/// Where ARM64 boards name themselves; `/proc/device-tree` is a link to it.
const BOARD: &str = "sys/firmware/devicetree/base/model";

/// ARM's numbers of its cores (`CPU part` where `CPU implementer` is 0x41), those that are found in NAS
/// devices and small computers; from the main ID registers in ARM's technical reference manuals.
const ARM_CORES: &[(u64, &str)] = &[
    (0x926, "ARM926"),
    (0xb76, "ARM1176"),
    (0xc05, "Cortex-A5"),
    (0xc07, "Cortex-A7"),
    (0xc08, "Cortex-A8"),
    (0xc09, "Cortex-A9"),
    (0xc0e, "Cortex-A17"),
    (0xc0f, "Cortex-A15"),
    (0xd03, "Cortex-A53"),
    (0xd04, "Cortex-A35"),
    (0xd05, "Cortex-A55"),
    (0xd07, "Cortex-A57"),
    (0xd08, "Cortex-A72"),
    (0xd09, "Cortex-A73"),
    (0xd0a, "Cortex-A75"),
    (0xd0b, "Cortex-A76"),
    (0xd0c, "Neoverse-N1"),
    (0xd40, "Neoverse-V1"),
    (0xd41, "Cortex-A78"),
    (0xd46, "Cortex-A510"),
    (0xd47, "Cortex-A710"),
    (0xd49, "Neoverse-N2"),
];

/// Describes this host.
pub fn describe() -> Host {
    describe_below(sys::host::kernel_tree())
}

/// Describes the host whose kernel files are below `root`; the program and the cores are this process's.
pub fn describe_below(root: Option<&Path>) -> Host {
    let told = |of: fn(&Path) -> Outcome<String>| root.map_or_else(|| Outcome::skipped(NO_TREE), of);
    Host {
        weaklink: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel: told(kernel),
        cpu_model: told(cpu_model),
        cores: thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        memory_bytes: root.map_or_else(|| Outcome::skipped(NO_TREE), memory),
        tcp: root.map_or_else(|| Outcome::skipped(NO_TREE), tcp),
    }
}

fn read(root: &Path, path: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(root.join(path))?.take(MAX_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: io::Error| format!("cannot read /{path}: {error}; a container may hide it"))
}

/// The first line of a file, or what there is before a zero byte.
fn word(root: &Path, path: &str) -> Result<String, String> {
    let bytes = read(root, path)?;
    let line = bytes.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
    let text = text(line);
    if text.is_empty() { Err(format!("/{path} is empty")) } else { Ok(text) }
}

/// Bytes as a text of bounded length, runs of spaces as one.
fn text(bytes: &[u8]) -> String {
    let whole = String::from_utf8_lossy(bytes);
    whole.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TEXT).collect()
}

fn kernel(root: &Path) -> Outcome<String> {
    word(root, "proc/sys/kernel/osrelease").into()
}

fn cpu_model(root: &Path) -> Outcome<String> {
    let info = read(root, "proc/cpuinfo");
    let board = word(root, BOARD).or_else(|_| word(root, "proc/device-tree/model")).ok();
    match (info.as_deref().ok().and_then(model), board) {
        (Some(model), Some(board)) => Outcome::Measured(format!("{model} ({board})")),
        (Some(model), None) => Outcome::Measured(model),
        (None, Some(board)) => Outcome::Measured(board),
        (None, None) => Outcome::failed(
            info.err().unwrap_or_else(|| "/proc/cpuinfo names no processor in a form that weaklink knows".to_owned()),
        ),
    }
}

/// The processor as `/proc/cpuinfo` names it, in the words of x86, MIPS, POWER, old and new ARM and RISC-V.
fn model(info: &[u8]) -> Option<String> {
    let value = |key: &str| fields(info).find(|(found, value)| found.eq_ignore_ascii_case(key) && !value.is_empty());
    let named = ["model name", "cpu model", "cpu", "uarch"].iter().find_map(|key| value(key)).map(|(_, value)| value);
    let hardware = value("Hardware").map(|(_, value)| value);
    match (named.or_else(|| arm_cores(info)), hardware) {
        (Some(named), Some(hardware)) => Some(format!("{named}, {hardware}")),
        (named, hardware) => named.or(hardware),
    }
}

fn fields(info: &[u8]) -> impl Iterator<Item = (String, String)> {
    lines(info).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((text(line.get(..colon)?), text(line.get(colon + 1..)?)))
    })
}

/// The kinds of ARM cores, each once: a big.LITTLE processor has two.
fn arm_cores(info: &[u8]) -> Option<String> {
    let hex = |value: &str| u64::from_str_radix(value.strip_prefix("0x")?, 16).ok();
    let mut kinds: Vec<String> = Vec::new();
    let mut maker = None;
    for (key, value) in fields(info) {
        match key.as_str() {
            "CPU implementer" => maker = hex(&value),
            "CPU part" => {
                let known = hex(&value).filter(|_| maker == Some(0x41));
                let known = known.and_then(|part| ARM_CORES.iter().find(|(number, _)| *number == part));
                let maker = maker.unwrap_or(0);
                let kind =
                    known.map_or_else(|| format!("ARM implementer {maker:#x} part {value}"), |(_, name)| format!("ARM {name}"));
                // Four kinds are more than any processor has.
                if kinds.len() < 4 && !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            _ => {}
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(" + "))
}

fn memory(root: &Path) -> Outcome<ByteSize> {
    let total = read(root, "proc/meminfo").and_then(|info| {
        let found = fields(&info).find(|(key, _)| key == "MemTotal");
        let kib = found.and_then(|(_, value)| number(value.strip_suffix("kB")?.as_bytes()));
        kib.map(|kib| ByteSize(kib.saturating_mul(1024))).ok_or_else(|| "/proc/meminfo has no line MemTotal".to_owned())
    });
    total.into()
}

fn tcp(root: &Path) -> Outcome<TcpSettings> {
    let ip = |name: &str| word(root, &format!("proc/sys/net/ipv4/{name}"));
    let core = |name: &str| word(root, &format!("proc/sys/net/core/{name}")).ok()?.parse().ok();
    let settings = TcpSettings {
        congestion_default: ip("tcp_congestion_control").ok(),
        congestion_available: controls(root),
        rmem_bytes: ip("tcp_rmem").ok().as_deref().and_then(three),
        wmem_bytes: ip("tcp_wmem").ok().as_deref().and_then(three),
        rmem_max_bytes: core("rmem_max"),
        wmem_max_bytes: core("wmem_max"),
        mtu_probing: ip("tcp_mtu_probing").ok().and_then(|value| value.parse().ok()),
        window_scaling: ip("tcp_window_scaling").ok().and_then(|value| value.parse::<u32>().ok()).map(|value| value != 0),
    };
    if settings == TcpSettings::default() {
        let reason = ip("tcp_congestion_control").err();
        return Outcome::failed(reason.unwrap_or_else(|| "no setting of TCP below /proc/sys/net is readable".to_owned()));
    }
    Outcome::Measured(settings)
}

/// The bit of `CAP_NET_ADMIN` in the kernel's sets of capabilities (linux/capability.h).
const NET_ADMIN: u32 = 12;

/// The congestion controls that this program can choose: those that anybody may, and with `CAP_NET_ADMIN` all that the kernel has.
fn controls(root: &Path) -> Vec<String> {
    let status = read(root, "proc/self/status").unwrap_or_default();
    let held = fields(&status).find(|(key, _)| key == "CapEff").and_then(|(_, value)| u64::from_str_radix(&value, 16).ok());
    let all = held.is_some_and(|held| held >> NET_ADMIN & 1 == 1);
    let of = |name: &str| word(root, &format!("proc/sys/net/ipv4/{name}")).ok();
    let names = all.then(|| of("tcp_available_congestion_control")).flatten().or_else(|| of("tcp_allowed_congestion_control"));
    names.map(|names| names.split(' ').map(ToOwned::to_owned).collect()).unwrap_or_default()
}

fn three(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split(' ').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::PathBuf;

    fn tree(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cpu").join(name)
    }

    #[test]
    fn recorded_hosts_are_described() {
        for (name, kernel, cpu, memory) in [
            ("intel-nas-3.10", "3.10.108", "Intel(R) Celeron(R) CPU J3455 @ 1.50GHz", 3_994_048_u64 << 10),
            ("arm64-nas-5.10", "5.10.55+", "ARM Cortex-A55 (Realtek RTD1619B NAS)", 1_015_808 << 10),
            (
                "armv7-nas-3.10",
                "3.10.108",
                "ARMv7 Processor rev 1 (v7l), Marvell Armada 380/381/382/383/384/385/388 (Device Tree)",
                507_904 << 10,
            ),
        ] {
            let host = describe_below(Some(&tree(name)));
            assert_eq!(host.kernel.measured().map(String::as_str), Some(kernel), "{name}");
            assert_eq!(host.cpu_model.measured().map(String::as_str), Some(cpu), "{name}");
            assert_eq!(host.memory_bytes.measured(), Some(&ByteSize(memory)), "{name}");
        }
    }

    #[test]
    fn settings_of_tcp_are_read() {
        let expected = TcpSettings {
            congestion_default: Some("cubic".into()),
            congestion_available: vec!["reno".into(), "cubic".into()],
            rmem_bytes: Some([4096, 87380, 6_291_456]),
            wmem_bytes: Some([4096, 16384, 4_194_304]),
            rmem_max_bytes: Some(212_992),
            wmem_max_bytes: Some(212_992),
            mtu_probing: Some(0),
            window_scaling: Some(true),
        };
        assert_eq!(describe_below(Some(&tree("intel-nas-3.10"))).tcp, Outcome::Measured(expected));
        let container = describe_below(Some(&tree("arm64-nas-5.10"))).tcp;
        let container = container.measured().expect("what is there is told");
        assert_eq!(container.rmem_max_bytes, None, "a network namespace of an old kernel does not show it");
        assert_eq!(container.congestion_default.as_deref(), Some("bbr"));
        assert_eq!(container.rmem_bytes, None, "two numbers are not three");
    }

    #[test]
    fn who_may_choose_any_congestion_control_is_told_all_that_there_are() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
            std::fs::write(path, text).expect("a file");
        };
        write("proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno bbr\n");
        assert_eq!(controls(dir.path()), ["reno", "bbr"], "nobody tells the capabilities");
        write("proc/sys/net/ipv4/tcp_available_congestion_control", "reno bbr cubic\n");
        for (held, expected) in
            [("0000000000000000", 2), ("000001ffffffefff", 2), ("0000000000001000", 3), ("000001ffffffffff", 3)]
        {
            write("proc/self/status", &format!("Name:\tweaklink\nCapEff:\t{held}\n"));
            assert_eq!(controls(dir.path()).len(), expected, "{held}");
        }
    }

    #[test]
    fn missing_files_are_reasons() {
        let host = describe_below(Some(&tree("bare")));
        for reason in [host.kernel.why(), host.cpu_model.why(), host.memory_bytes.why(), host.tcp.why()] {
            assert!(reason.is_some_and(|reason| reason.contains("/proc/")), "{reason:?}");
        }
        let elsewhere = describe_below(None);
        for reason in [elsewhere.kernel.why(), elsewhere.cpu_model.why(), elsewhere.memory_bytes.why(), elsewhere.tcp.why()] {
            assert_eq!(reason, Some(NO_TREE));
        }
        assert!(elsewhere.cores >= 1 && !elsewhere.arch.is_empty());
    }

    #[test]
    fn processors_name_themselves_in_many_words() {
        let two = "CPU implementer\t: 0x41\nCPU part\t: 0xd03\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\nCPU part\t: 0xd08\n";
        for (info, expected) in [
            (
                "model name\t: Intel(R) Atom(TM) CPU  C3538 @ 2.10GHz\nmodel name\t: other\n",
                Some("Intel(R) Atom(TM) CPU C3538 @ 2.10GHz"),
            ),
            (two, Some("ARM Cortex-A53 + ARM Cortex-A72")),
            (
                "CPU implementer\t: 0x56\nCPU part\t: 0x131\nHardware\t: Marvell Kirkwood\n",
                Some("ARM implementer 0x56 part 0x131, Marvell Kirkwood"),
            ),
            ("cpu\t\t: POWER9, altivec supported\n", Some("POWER9, altivec supported")),
            ("system type\t: x\ncpu model\t\t: MIPS 1004Kc V2.15\n", Some("MIPS 1004Kc V2.15")),
            ("processor\t: 0\nuarch\t\t: sifive,u74-mc\n", Some("sifive,u74-mc")),
            ("Serial\t\t: 00000000deadbeef\nmodel name\t:\n", None),
            ("", None),
        ] {
            assert_eq!(model(info.as_bytes()).as_deref(), expected, "{info}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_do_no_harm(info in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = model(&info);
            prop_assert!(text(&info).chars().count() <= MAX_TEXT);
            three(&text(&info));
        }

        #[test]
        fn strange_parts_do_no_harm(info in "((CPU part|CPU implementer|Hardware|model name)\t: (0x[0-9a-f]{0,20}|é)\n){0,9}") {
            prop_assert!(model(info.as_bytes()).is_none_or(|model| model.len() < 2000));
        }
    }
}
