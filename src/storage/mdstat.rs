//! Pure reading of `/proc/mdstat`: what Linux's software RAIDs do now.

/// One array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// Its name, such as `md2`.
    pub name: String,
    /// The level, such as `raid5`; empty for an array that is not started.
    pub level: String,
    /// How many members it should have and how many work, as in `[4/3]`; none for levels without redundancy.
    pub members: Option<(u32, u32)>,
    /// What runs, as the kernel words it: `resync = 1.1% (22409472/1953509824) finish=1541.6min speed=20876K/sec`.
    pub syncing: Option<String>,
    /// The devices listed, failed and spare ones included.
    pub devices: u32,
}

/// What md calls its background work.
const WORK: [&str; 5] = ["resync", "recovery", "reshape", "check", "repair"];

/// Reads the whole file; what it does not know it leaves out.
pub fn parse(text: &str) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for line in text.lines() {
        if let Some((name, rest)) = line.split_once(" : ")
            && name.starts_with("md")
        {
            let level =
                rest.split_whitespace().find(|word| word.starts_with("raid") || *word == "linear" || *word == "multipath");
            let devices = rest.split_whitespace().filter(|word| word.contains('[')).count() as u32;
            let level = level.unwrap_or_default().to_owned();
            arrays.push(Array { name: name.trim().to_owned(), level, devices, ..Array::default() });
        } else if let Some(array) = arrays.last_mut().filter(|_| line.starts_with(' ')) {
            array.members = array.members.or_else(|| line.split_whitespace().find_map(members));
            let line = line.split_once("] ").filter(|(bar, _)| bar.trim_start().starts_with('[')).map_or(line, |(_, rest)| rest);
            if WORK.iter().any(|work| line.trim_start().starts_with(work)) {
                array.syncing = Some(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        } else if !line.trim().is_empty() {
            // "unused devices" and whatever else stands between arrays.
            arrays.push(Array::default());
        }
    }
    arrays.retain(|array| !array.name.is_empty());
    arrays
}

fn members(word: &str) -> Option<(u32, u32)> {
    let (all, working) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
    Some((all.parse().ok()?, working.parse().ok()?))
}
