//! The kernel's texts about processors and processes, as numbers. Pure; any bytes are survived.
//!
//! The formats are those of `proc(5)` and of the kernel's `Documentation/accounting/psi.rst` and
//! `Documentation/scheduler/sched-stats.rst`. Columns that an old kernel does not have are zero.

/// No more cores than this are kept, whatever a file says; Linux itself is built for at most 8192.
const MAX_CORES: usize = 8192;

/// The longest name that is kept, in bytes: `/proc/[pid]/stat` gives 15 for a program and up to 63 for a kernel worker.
const MAX_NAME: usize = 63;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: the task is a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What one core did since the start of the system, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTicks {
    /// The kernel's number of the core; numbers of cores that are switched off are missing.
    pub core: u32,
    /// Programs, those with low priority and guests of a hypervisor included.
    pub user: u64,
    /// The kernel on behalf of programs.
    pub system: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Waiting for a disk with nothing else to do; the kernel lets it fall at times.
    pub iowait: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
    /// Nothing to do.
    pub idle: u64,
}

/// What a process or thread is and used, from its `stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The program's own name (`comm`), never its arguments.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// Time on a core since its birth, in ticks.
    pub ticks: u64,
    /// How many threads it has.
    pub threads: u64,
    /// When it was born, in ticks since the start of the system; tells two users of one number apart.
    pub born: u64,
}

/// How a thread fared with the scheduler since its birth, from its `schedstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Nanoseconds on a core.
    pub ran_ns: u64,
    /// Nanoseconds ready to run without a core.
    pub waited_ns: u64,
}

/// A number in decimal digits.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.trim().parse().ok()
}

pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The cores of `/proc/stat`, in the order of their numbers.
pub fn cores(text: &[u8]) -> Vec<CoreTicks> {
    let mut cores: Vec<CoreTicks> = lines(text).filter_map(core).take(MAX_CORES).collect();
    cores.sort_by_key(|core| core.core);
    cores.dedup_by_key(|core| core.core);
    cores
}

/// One line such as `cpu0 user nice system idle iowait irq softirq steal …`.
fn core(line: &[u8]) -> Option<CoreTicks> {
    let mut words = words(line);
    let core = u32::try_from(number(words.next()?.strip_prefix(b"cpu")?)?).ok()?;
    let (user, nice, system, idle) =
        (number(words.next()?)?, number(words.next()?)?, number(words.next()?)?, number(words.next()?)?);
    let mut later = || words.next().and_then(number).unwrap_or(0);
    let (iowait, irq, softirq, steal) = (later(), later(), later(), later());
    Some(CoreTicks { core, user: user.saturating_add(nice), system, softirq, irq, iowait, steal, idle })
}

/// One `/proc/[pid]/stat` or `/proc/[pid]/task/[tid]/stat`.
pub fn task(text: &[u8]) -> Option<Task> {
    // The name may hold spaces and brackets itself; only the last bracket ends it.
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let name = text.get(open + 1..close)?;
    let name = String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)).into_owned();
    let rest: Vec<&[u8]> = words(text.get(close + 1..)?).take(20).collect();
    let column = |at: usize| rest.get(at).copied().and_then(number);
    Some(Task {
        name,
        kernel: column(6)? & KERNEL_THREAD != 0,
        ticks: column(11)?.saturating_add(column(12)?),
        threads: column(17)?,
        born: column(19)?,
    })
}

/// One `/proc/[pid]/task/[tid]/schedstat`.
pub fn waits(text: &[u8]) -> Option<Waits> {
    let mut words = words(text);
    Some(Waits { ran_ns: number(words.next()?)?, waited_ns: number(words.next()?)? })
}

/// The microseconds in which some task waited, from `/proc/pressure/cpu`.
pub fn pressure(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(b"some "))?;
    words(line).find_map(|word| number(word.strip_prefix(b"total=")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_generation_of_proc_stat_is_read() {
        let seven = |user, system, softirq, irq, iowait, steal, idle| CoreTicks {
            core: 0,
            user,
            system,
            softirq,
            irq,
            iowait,
            steal,
            idle,
        };
        for (name, text, expected) in [
            ("ten columns, guests are part of user", "cpu 9 9 9 9\ncpu0 10 5 3 100 7 1 2 4 6 2\n", seven(15, 3, 2, 1, 7, 4, 100)),
            ("eight columns of the time before guests", "cpu0 10 5 3 100 7 1 2 4\nintr 5", seven(15, 3, 2, 1, 7, 4, 100)),
            ("four columns", "cpu0 10 5 3 100\n", seven(15, 3, 0, 0, 0, 0, 100)),
            ("a broken later column counts as nothing", "cpu0 10 5 3 100 x 1\n", seven(15, 3, 0, 1, 0, 0, 100)),
        ] {
            assert_eq!(cores(text.as_bytes()), vec![expected], "{name}");
        }
        for nothing in ["", "cpu 1 2 3 4", "cpu0 1 2 3", "cpux 1 2 3 4", "cpu99999999999 1 2 3 4", "cpu0 -1 2 3 4"] {
            assert!(cores(nothing.as_bytes()).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn a_name_may_hold_brackets_spaces_and_bytes_that_are_no_text() {
        let tail = "S 1 1 1 0 -1 4194304 1 2 3 4 100 23 5 6 20 0 7 0 4242 1 2 3";
        for (comm, name) in [
            ("smbd", "smbd"),
            ("tmux: server", "tmux: server"),
            ("a) R 1 (b", "a) R 1 (b"),
            ("", ""),
            ("kworker/u8:2+kcryptd/253:0", "kworker/u8:2+kcryptd/253:0"),
        ] {
            let read = task(format!("77 ({comm}) {tail}").as_bytes());
            let expected = Task { name: name.to_owned(), kernel: false, ticks: 123, threads: 7, born: 4242 };
            assert_eq!(read, Some(expected), "{comm}");
        }
        let kernel = task(b"15 (md0_raid5) S 2 0 0 0 -1 2129984 0 0 0 0 0 900 0 0 20 0 1 0 33 0");
        assert!(kernel.is_some_and(|task| task.kernel && task.ticks == 900));
        assert_eq!(
            task(b"1 (\xff\xfe) S 1 1 1 0 -1 0 1 2 3 4 1 2 5 6 20 0 1 0 9").map(|t| t.name),
            Some("\u{fffd}\u{fffd}".into())
        );
        for bad in ["", "1", "1 (x", ")1(", "1 (x) S 1 2", "1 )x( S 1 1 1 0 -1 0 1 2 3 4 1 2 5 6 20 0 1 0 9"] {
            assert_eq!(task(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn waits_and_pressure_are_read() {
        assert_eq!(waits(b"812 106092 1\n"), Some(Waits { ran_ns: 812, waited_ns: 106_092 }));
        assert_eq!(waits(b"812"), None);
        let text = b"some avg10=5.17 avg60=2.47 avg300=1.44 total=20174367\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(text), Some(20_174_367));
        assert_eq!(pressure(b"full total=7"), None);
    }

    proptest! {
        #[test]
        fn random_bytes_do_no_harm(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            cores(&text);
            task(&text);
            waits(&text);
            pressure(&text);
        }

        #[test]
        fn almost_right_texts_do_no_harm(text in "(cpu[0-9]{0,3}|some|[0-9]{0,22}|\\(|\\)|total=| |\n){0,60}") {
            cores(text.as_bytes());
            task(text.as_bytes());
            pressure(text.as_bytes());
        }
    }
}
