//! The mounted lane on a directory of this machine.

use std::path::Path;
use std::time::{Duration, Instant};

use weaklink::copy::{CopySpec, LaneDriver, Mounted, Progress, RungPlan};
use weaklink::model::copy::{Copied, FileSet, LaneKind};
use weaklink::model::{Direction, Outcome};
use weaklink::sys::Stop;
use weaklink::units::ByteSize;

const SECONDS: Duration = Duration::from_secs(30);

fn spec() -> CopySpec {
    CopySpec { seed: 5, max_bytes: ByteSize(6_000_001), small_files: 40 }
}

fn leftovers(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// The directory may lie in memory or on a filesystem that keeps its cache; then a download must say so.
fn honest(result: &Outcome<Copied>) -> Option<&Copied> {
    if let Some(why) = result.why() {
        assert!(why.contains("memory"), "{why}");
    }
    result.measured()
}

fn run(lane: &mut Mounted, plan: RungPlan) -> Outcome<Copied> {
    lane.run(&plan, SECONDS, &Stop::new(), &Progress::new())
}

#[test]
fn all_copies_run_are_compared_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut lane = Mounted::new(dir.path(), spec());
    assert_eq!(lane.kind(), LaneKind::Mounted);
    let opened = lane.open(&Stop::new()).unwrap();
    if cfg!(target_os = "linux") {
        assert!(opened.protocol.measured().is_some_and(|protocol| !protocol.is_empty()), "{opened:?}");
        assert!(opened.facts.iter().any(|fact| fact.name == "network"));
    }
    assert_eq!(leftovers(dir.path()), 1);
    for plan in lane.rungs() {
        let result = run(&mut lane, plan);
        match (plan.direction, plan.files) {
            (Direction::Upload, FileSet::Large) => assert_eq!(result.measured().unwrap().bytes, ByteSize(6_000_001)),
            (Direction::Upload, FileSet::Small) => {
                let copied = result.measured().unwrap();
                assert_eq!(copied.files, 40);
                assert!(copied.per_file_us.is_some());
            }
            (Direction::Download, FileSet::Large) => {
                if let Some(copied) = honest(&result) {
                    assert_eq!(copied.bytes, ByteSize(6_000_001));
                    assert!(copied.verified_bytes.measured().is_some_and(|bytes| bytes.0 > 0));
                }
            }
            (Direction::Download, FileSet::Small) => {
                if let Some(copied) = honest(&result) {
                    assert_eq!(copied.verified_bytes, Outcome::Measured(copied.bytes));
                }
            }
        }
    }
    for plan in lane.rungs().into_iter().filter(|plan| plan.direction == Direction::Upload) {
        assert!(run(&mut lane, plan).measured().is_some(), "a repeat begins anew");
    }
    lane.close();
    assert_eq!(leftovers(dir.path()), 0);
}

#[test]
fn a_download_without_an_upload_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut lane = Mounted::new(dir.path(), spec());
    lane.open(&Stop::new()).unwrap();
    for plan in lane.rungs().into_iter().filter(|plan| plan.direction == Direction::Download) {
        assert!(run(&mut lane, plan).why().is_some_and(|why| why.contains("uploaded")));
    }
}

#[test]
fn content_that_changed_on_the_way_is_a_failed_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let mut lane = Mounted::new(dir.path(), spec());
    lane.open(&Stop::new()).unwrap();
    let rungs = lane.rungs();
    run(&mut lane, rungs[0]);
    let scratch = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let large = scratch.join("weaklink-large");
    let mut data = std::fs::read(&large).unwrap();
    data[3] ^= 1;
    std::fs::write(&large, data).unwrap();
    std::fs::File::open(&large).unwrap().sync_all().unwrap();
    if let Some(copied) = honest(&run(&mut lane, rungs[1])) {
        assert!(copied.verified_bytes.why().is_some_and(|why| why.contains("differs")));
    }
}

#[test]
fn a_directory_that_is_not_there_or_is_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    assert!(Mounted::new(&absent, spec()).open(&Stop::new()).is_err_and(|why| why.contains("absent")));
    assert!(!absent.exists());
    let file = dir.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    assert!(Mounted::new(&file, spec()).open(&Stop::new()).is_err_and(|why| why.contains("not a directory")));
}

#[test]
fn a_stop_ends_a_copy_soon_and_the_directory_is_removed_on_drop() {
    let dir = tempfile::tempdir().unwrap();
    let mut lane = Mounted::new(dir.path(), CopySpec::new(1, ByteSize(u64::MAX)));
    lane.open(&Stop::new()).unwrap();
    let (stop, progress) = (Stop::new(), Progress::new());
    let plan = lane.rungs()[0];
    let start = Instant::now();
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| lane.run(&plan, Duration::from_secs(600), &stop, &progress));
        while progress.bytes() == 0 {
            std::thread::yield_now();
        }
        stop.set();
        worker.join().unwrap()
    });
    assert!(result.measured().is_none());
    assert!(start.elapsed() < Duration::from_secs(60));
    drop(lane);
    assert_eq!(leftovers(dir.path()), 0);
}

#[test]
fn a_copy_ends_when_its_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut lane = Mounted::new(dir.path(), CopySpec::new(1, ByteSize(1 << 40)));
    lane.open(&Stop::new()).unwrap();
    let plan = lane.rungs()[0];
    let result = lane.run(&plan, Duration::from_millis(400), &Stop::new(), &Progress::new());
    let copied = result.measured().unwrap();
    assert!(copied.bytes.0 > 0 && copied.elapsed_us.0 >= 400_000);
}
