//! Reads the kernel's files about processors below a given root, so that recorded trees can be read as well.
//!
//! Every file is read up to a bound; what is missing or forbidden becomes a reason.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::decode::{self, CoreTicks, Task};
use super::group::{self, GroupTimes};
use super::interrupts::{self, Card, Reading};
use super::window::Id;
use crate::model::Outcome;

/// How much of one file is read: `/proc/stat` holds about 100 bytes for each core before the rest, the other files are far smaller.
const MAX_FILE: u64 = 1024 * 1024;

/// No more processes than this are read in one go; the kernel's usual limit of process numbers.
const MAX_PROCESSES: usize = 32 * 1024;

/// No more threads of one process than this are read: more run at the same time on no NAS.
const MAX_THREADS: usize = 256;

/// No more interfaces than this are looked at, and no more interrupts of one: a card with a queue for each core has some hundreds.
const MAX_CARDS: usize = 64;
const MAX_LINES: usize = 1024;

/// A root with `proc` and `sys` below it, and the process that is ours in it.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The directory of our own process, such as `/proc/self`.
    own: PathBuf,
    levels: Outcome<Vec<PathBuf>>,
    /// The network cards, looked for once.
    cards: Vec<Card>,
    buffer: Vec<u8>,
}

/// All processes that were read in one go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    /// Whether no bound cut the list.
    pub complete: bool,
    /// What each is and used.
    pub tasks: Vec<(Id, Task)>,
}

impl Tree {
    /// The tree below `root`, where our process is `own`, or the one that reads.
    pub fn new(root: &Path, own: Option<u32>) -> Self {
        let own = root.join("proc").join(own.map_or_else(|| "self".to_owned(), |pid| pid.to_string()));
        let levels = Outcome::skipped("not looked for yet");
        let mut tree = Self { root: root.to_owned(), own, levels, cards: find_cards(root), buffer: Vec::new() };
        tree.levels = tree.find_levels();
        tree
    }

    /// The number of our own process in this tree's own count.
    pub fn own(&self) -> Option<u32> {
        // In a container whose /proc is another's, only the link tells the number that fits it.
        let target = fs::read_link(&self.own).unwrap_or_else(|_| self.own.clone());
        target.file_name()?.to_str()?.parse().ok()
    }

    /// Every core's times.
    pub fn cores(&mut self) -> Result<Vec<CoreTicks>, String> {
        let path = self.root.join("proc/stat");
        let text = self.read(&path).map_err(|error| reason(&path, &error))?;
        let cores = decode::cores(text);
        if cores.is_empty() {
            Err(format!("{} lists no core, so the load of the processors is not known", path.display()))
        } else {
            Ok(cores)
        }
    }

    /// Every process that this process may see.
    pub fn processes(&mut self) -> Tasks {
        let directory = self.root.join("proc");
        let (numbers, complete) = numbers(&directory, MAX_PROCESSES);
        Tasks { complete, tasks: self.tasks(&directory, &numbers) }
    }

    /// Every thread of a process.
    pub fn threads(&mut self, process: u32) -> Vec<(Id, Task)> {
        let directory = self.root.join("proc").join(process.to_string()).join("task");
        let (numbers, _) = numbers(&directory, MAX_THREADS);
        self.tasks(&directory, &numbers)
    }

    fn tasks(&mut self, directory: &Path, numbers: &[u32]) -> Vec<(Id, Task)> {
        let mut tasks = Vec::with_capacity(numbers.len());
        for number in numbers {
            // One that ends meanwhile is simply not there.
            if let Ok(text) = self.read(&directory.join(number.to_string()).join("stat"))
                && let Some(task) = decode::task(text)
            {
                tasks.push((Id { number: *number, born: task.born }, task));
            }
        }
        tasks
    }

    /// For each thread of our process the nanoseconds that it waited for a core.
    pub fn waits(&mut self) -> Outcome<BTreeMap<u32, u64>> {
        let directory = self.own.join("task");
        let mut waits = BTreeMap::new();
        let mut kept = false;
        for number in numbers(&directory, MAX_THREADS).0 {
            if let Ok(text) = self.read(&directory.join(number.to_string()).join("schedstat"))
                && let Some(thread) = decode::waits(text)
            {
                kept |= thread.ran_ns > 0 || thread.waited_ns > 0;
                waits.insert(number, thread.waited_ns);
            }
        }
        if kept {
            Outcome::Measured(waits)
        } else {
            Outcome::skipped(
                "the kernel keeps no times of waiting for a core (schedstat); one built with CONFIG_SCHEDSTATS or started with delayacct does",
            )
        }
    }

    /// The times of our control group and its ancestors, own first.
    pub fn groups(&mut self) -> Outcome<Vec<GroupTimes>> {
        self.levels.clone().and_then(|levels| {
            let read = |level: &PathBuf| self.group(level);
            let times: Vec<Option<GroupTimes>> = levels.iter().map(read).collect();
            if times.iter().all(Option::is_none) {
                return Outcome::skipped(
                    "the control group of this process has no readable cpu.stat, so throttling by a quota cannot be seen",
                );
            }
            Outcome::Measured(times.into_iter().map(Option::unwrap_or_default).collect())
        })
    }

    fn group(&mut self, level: &Path) -> Option<GroupTimes> {
        let mut times = self.read(&level.join("cpu.stat")).map(group::times).ok()?;
        if times.used_us.is_none() {
            // Version 1 counts the use in another controller, which most systems mount together with this one.
            times.used_us = self.read(&level.join("cpuacct.usage")).ok().and_then(decode::number).map(|ns| ns / 1000);
        }
        Some(times)
    }

    fn find_levels(&mut self) -> Outcome<Vec<PathBuf>> {
        let (membership, mountinfo) = (self.own.join("cgroup"), self.own.join("mountinfo"));
        let texts = self.read(&membership).map(<[u8]>::to_vec).and_then(|text| Ok((text, self.read(&mountinfo)?)));
        let levels = texts.ok().and_then(|(membership, mountinfo)| group::levels(&membership, mountinfo));
        levels.map_or_else(
            || Outcome::skipped("no control group of processors is mounted here, so throttling by a quota cannot be seen"),
            |levels| {
                let below = |path: PathBuf| self.root.join(path.strip_prefix("/").unwrap_or(&path));
                Outcome::Measured(levels.into_iter().map(below).collect())
            },
        )
    }

    /// The microseconds in which some task of the host waited for a core.
    pub fn pressure(&mut self) -> Outcome<u64> {
        let path = self.root.join("proc/pressure/cpu");
        self.read(&path).ok().and_then(decode::pressure).map_or_else(
            || Outcome::skipped("the kernel has no pressure figures; Linux 4.20 and later has them, where psi is switched on"),
            Outcome::Measured,
        )
    }

    /// How often each core was interrupted for the network.
    pub fn interrupts(&mut self) -> Outcome<Reading> {
        let path = self.root.join("proc/softirqs");
        let Some(receive) = self.read(&path).ok().and_then(interrupts::receive) else {
            return Outcome::skipped(
                "/proc/softirqs is not readable here or counts no packets, so which core took the network's interrupts is not known; a container may hide it",
            );
        };
        let path = self.root.join("proc/interrupts");
        let list = std::mem::take(&mut self.cards);
        let cards = self.read(&path).map(|text| interrupts::cards(text, &list)).unwrap_or_default();
        self.cards = list;
        Outcome::Measured(Reading { receive, cards })
    }

    /// Whether other users' processes are visible.
    pub fn visibility(&mut self) -> Outcome<()> {
        let (list, first) = (self.root.join("proc"), self.root.join("proc/1/stat"));
        if let Err(error) = fs::read_dir(&list) {
            return Outcome::failed(reason(&list, &error));
        }
        match self.read(&first) {
            Ok(_) => Outcome::Measured(()),
            Err(_) => Outcome::skipped(
                "only processes of the same user are shown here (hidepid), so what others use is in the cores' shares but without names; started as root, weaklink sees all",
            ),
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<&[u8]> {
        self.buffer.clear();
        File::open(path)?.take(MAX_FILE).read_to_end(&mut self.buffer)?;
        Ok(&self.buffer)
    }
}

/// The interfaces that stand for a device, with the names and numbers that its interrupts go by.
fn find_cards(root: &Path) -> Vec<Card> {
    let Ok(entries) = fs::read_dir(root.join("sys/class/net")) else { return Vec::new() };
    let card = |name: String| {
        let device = root.join("sys/class/net").join(&name).join("device");
        let target = fs::read_link(&device).ok()?;
        let own = target.file_name()?.to_str()?.to_owned();
        // A device of a virtual machine hangs below the PCI device that has the interrupts.
        let bus = if own.starts_with("virtio") { device.join("..") } else { device };
        Some(Card { name, device: Some(own), numbers: numbers(&bus.join("msi_irqs"), MAX_LINES).0 })
    };
    let mut names: Vec<String> =
        entries.map_while(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).take(MAX_CARDS).collect();
    names.sort_unstable();
    names.into_iter().filter_map(card).collect()
}

/// The entries of a directory that are numbers, up to a bound, and whether these are all.
fn numbers(directory: &Path, most: usize) -> (Vec<u32>, bool) {
    let Ok(entries) = fs::read_dir(directory) else { return (Vec::new(), false) };
    let mut numbers: Vec<u32> =
        entries.map_while(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(most + 1).collect();
    let complete = numbers.len() <= most;
    numbers.truncate(most);
    (numbers, complete)
}

fn reason(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}; the load of the processors is not known without it", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, own: u32) -> Tree {
        Tree::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cpu").join(name), Some(own))
    }

    #[test]
    fn an_old_kernel_is_read() {
        let mut tree = tree("intel-nas-3.10", 2000);
        let cores = tree.cores().expect("recorded");
        assert_eq!(cores.iter().map(|core| (core.user, core.idle)).collect::<Vec<_>>(), [(700, 44800), (800, 45200)]);
        let mut tasks = tree.processes();
        tasks.tasks.sort_by_key(|(id, _)| *id);
        let names: Vec<_> =
            tasks.tasks.iter().map(|(id, task)| (id.number, task.name.as_str(), task.kernel, task.ticks)).collect();
        let expected =
            [(1, "init", false, 100), (90, "md2_raid5", true, 700), (812, "smbd", false, 4000), (2000, "weaklink", false, 30)];
        assert_eq!(names, expected);
        assert!(tasks.complete);
        assert_eq!(tree.own(), Some(2000));
        assert_eq!(tree.threads(2000).len(), 2);
        assert!(tree.threads(1).is_empty() && tree.threads(4711).is_empty());
        assert_eq!(tree.waits(), Outcome::Measured(BTreeMap::from([(2000, 3_000_000), (2001, 9_000_000)])));
        let levels = [(8_000_000, Some(7_000)), (0, None)].map(|(us, used_us)| GroupTimes { throttled_us: Some(us), used_us });
        assert_eq!(tree.groups(), Outcome::Measured(levels.to_vec()));
        assert!(matches!(tree.pressure(), Outcome::Skipped(_)));
        assert!(tree.interrupts().why().is_some_and(|why| why.contains("/proc/softirqs")));
        assert_eq!(tree.visibility(), Outcome::Measured(()));
    }

    #[test]
    fn a_container_with_a_core_switched_off_is_read() {
        let mut tree = tree("arm64-nas-5.10", 7);
        assert_eq!(tree.cores().map(|cores| cores.iter().map(|core| core.core).collect()), Ok(vec![0, 2, 3]));
        assert_eq!(tree.groups(), Outcome::Measured(vec![GroupTimes { throttled_us: Some(250_000), used_us: Some(5_000_000) }]));
        assert_eq!(tree.pressure(), Outcome::Measured(123_456));
        assert!(tree.waits().why().is_some_and(|why| why.contains("schedstat")), "zeros everywhere mean that nothing is kept");
        assert!(matches!(tree.visibility(), Outcome::Skipped(_)), "process 1 is not visible");
    }

    #[test]
    fn missing_files_are_reasons() {
        let mut tree = tree("bare", 7);
        assert!(tree.cores().is_err_and(|why| why.contains("proc/stat")));
        assert!(tree.processes().tasks.is_empty());
        for why in [tree.groups().why(), tree.pressure().why(), tree.waits().why()] {
            assert!(why.is_some_and(|why| why.len() > 40), "{why:?}");
        }
        let mut nowhere = Tree::new(Path::new("/does/not/exist"), None);
        assert_eq!((nowhere.own(), nowhere.processes().complete), (None, false));
        assert!(matches!(nowhere.visibility(), Outcome::Failed(_)));
    }
}
