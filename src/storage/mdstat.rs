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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resync_with_its_speed_is_read() {
        let arrays = parse(
            "Personalities : [raid6] [raid5] [raid4]\nmd0 : active raid5 sde1[3] sdc1[2] sdd1[1] sdb1[0]\n      \
             5860529472 blocks super 1.2 level 5, 64k chunk, algorithm 2 [4/4] [UUUU]\n      [>....................]  resync =  \
             1.1% (22409472/1953509824) finish=1541.6min speed=20876K/sec\n      \nunused devices: <none>\n",
        );
        let syncing = Some("resync = 1.1% (22409472/1953509824) finish=1541.6min speed=20876K/sec".to_owned());
        let expected = Array { name: "md0".to_owned(), level: "raid5".to_owned(), members: Some((4, 4)), syncing, devices: 4 };
        assert_eq!(arrays, [expected]);
    }

    #[test]
    fn several_arrays_do_not_mix_and_a_waiting_or_degraded_one_is_seen() {
        let arrays = parse(
            "Personalities : [raid1]\nmd2 : active (auto-read-only) raid1 sata1p3[0] sata2p3[1](F)\n      100 blocks [2/1] [U_]\n      \
             \tresync=DELAYED\n\nmd1 : active raid0 a[0] b[1]\n      2 blocks 64k chunks\n\nmd9 : inactive c[0](S)\n      5 blocks\n\n\
             unused devices: <none>\n",
        );
        let brief: Vec<_> = arrays.iter().map(|a| (a.name.as_str(), a.level.as_str(), a.members, a.syncing.as_deref())).collect();
        assert_eq!(
            brief,
            [("md2", "raid1", Some((2, 1)), Some("resync=DELAYED")), ("md1", "raid0", None, None), ("md9", "", None, None)]
        );
    }
}
