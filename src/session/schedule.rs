//! Pure: how long each step may take, so that the whole run keeps its promise.

use std::time::Duration;

use crate::model::plan::Depth;

/// The steps that a run will take, as far as they cost time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The NAS has a directory.
    pub nas_dir: bool,
    /// The PC has a directory.
    pub pc_dir: bool,
    /// The lanes that the user named.
    pub lanes: u32,
}

/// The time for each thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// One pass of the throughput test, of which there are four; passes that end early leave their time to more streams.
    pub pass: Duration,
    /// Both directions at once, only where a run is thorough.
    pub both: Duration,
    /// The unclamped stream, only behind a black hole.
    pub unclamped: Duration,
    /// One cipher, of which there are five.
    pub cipher: Duration,
    /// Writing to a disk, and again reading.
    pub disk: Duration,
    /// One copy of a large file.
    pub large: Duration,
    /// One copy of small files.
    pub small: Duration,
    /// The search of the path MTU in one direction.
    pub mtu: Duration,
}

/// The time that a run promises to keep.
pub const fn promise(depth: Depth) -> Duration {
    match depth {
        Depth::Quick => Duration::from_secs(20),
        Depth::Normal => Duration::from_secs(60),
        Depth::Thorough => Duration::from_secs(300),
    }
}

/// What connecting, describing, closing files and ending streams cost beside the measured times.
const OVERHEAD: Duration = Duration::from_secs(6);

impl Times {
    /// The times for a run: as long as the promise allows, never longer than useful.
    pub fn plan(depth: Depth, wanted: Wanted) -> Self {
        let unit = match depth {
            Depth::Quick => 1.0,
            Depth::Normal => 3.0,
            Depth::Thorough => 10.0,
        };
        let both = if depth == Depth::Thorough { 0.5 } else { 0.0 };
        let wish = Self::with_unit(unit, both);
        let room = promise(depth).saturating_sub(OVERHEAD).as_secs_f64();
        let total = wish.total(wanted).as_secs_f64();
        if total > room { Self::with_unit((unit * room / total * 0.98).max(0.4), both) } else { wish }
    }

    /// All times follow from the length of a pass.
    fn with_unit(unit: f64, both: f64) -> Self {
        let part = |share: f64| Duration::from_secs_f64(unit * share);
        Self {
            pass: part(1.0),
            both: part(both),
            unclamped: part(0.8).min(Duration::from_secs(3)),
            cipher: part(0.05).min(Duration::from_millis(300)),
            disk: part(1.1),
            large: part(1.0),
            small: part(0.6),
            mtu: Duration::from_secs(4),
        }
    }

    /// The time of all steps together when each needs all of its own (a black hole included).
    pub fn total(&self, wanted: Wanted) -> Duration {
        let mut total = self.pass * 4 + self.both + self.unclamped + self.cipher * 5 + self.mtu * 2;
        if wanted.nas_dir {
            total += (self.disk * 2 + self.large * 2).mul_f64(1.25);
        }
        if wanted.pc_dir {
            total += (self.disk * 2).mul_f64(1.25);
        }
        if wanted.nas_dir && wanted.pc_dir {
            total += (self.large * 2).mul_f64(1.25);
        }
        total += (self.large * 2 + self.small * 2).mul_f64(1.25) * wanted.lanes;
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_keeps_its_promise() {
        for depth in [Depth::Quick, Depth::Normal, Depth::Thorough] {
            for bits in 0..12u8 {
                let wanted = Wanted { nas_dir: bits & 1 > 0, pc_dir: bits & 2 > 0, lanes: u32::from(bits / 4) };
                let times = Times::plan(depth, wanted);
                assert!(times.total(wanted) + OVERHEAD <= promise(depth) + Duration::from_secs(9), "{depth:?} {wanted:?}");
                assert!(times.pass >= Duration::from_millis(400));
            }
        }
    }

    #[test]
    fn a_normal_run_without_lanes_has_full_passes() {
        let times = Times::plan(Depth::Normal, Wanted { nas_dir: true, ..Wanted::default() });
        assert_eq!(times.pass, Duration::from_secs(3));
    }
}
