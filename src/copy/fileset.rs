//! Which files are copied: one large, or many small. Pure.

use crate::units::ByteSize;

/// The smallest of the small files, bytes: one block of most filesystems.
pub const SMALL_MIN: u32 = 4 * 1024;

/// The largest of the small files, bytes. With [`SMALL_MIN`] and the rule of [`small_sizes`] the mean is
/// 12 KiB, as of the files of a Linux kernel tree (73,767 files, 929.7 MB).
pub const SMALL_MAX: u32 = 16 * 1024;

/// Fewer small files say little: a few slow ones decide the mean.
pub const SMALL_COUNT_MIN: u32 = 200;

/// More small files say nothing new, and fill the server's directory.
pub const SMALL_COUNT_MAX: u32 = 1000;

/// What a lane copies; the time that it may take comes with each copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySpec {
    /// Fixes the content and the sizes of the files. A new one for each run, so that no cache and no deduplication knows it.
    pub seed: u64,
    /// The largest size of the large file. The caller has looked at the free space.
    pub max_bytes: ByteSize,
    /// The largest number of small files, [`SMALL_COUNT_MIN`] to [`SMALL_COUNT_MAX`]; less are copied when the time is over.
    pub small_files: u32,
}

impl CopySpec {
    /// The usual number of small files with this content and this largest size.
    pub const fn new(seed: u64, max_bytes: ByteSize) -> Self {
        Self { seed, max_bytes, small_files: SMALL_COUNT_MAX }
    }
}

/// The sizes in bytes of `count` small files.
///
/// Each is the larger of two evenly spread numbers, which makes larger files likelier and puts the mean at
/// two thirds of the way from the smallest to the largest.
pub fn small_sizes(seed: u64, count: u32) -> Vec<u32> {
    let span = u64::from(SMALL_MAX - SMALL_MIN + 1);
    let mut state = seed ^ 0x5ca1_ab1e_0f11_e5e7;
    let mut next = || {
        // SplitMix64, the generator of the test content as well.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % span
    };
    (0..count).map(|_| SMALL_MIN + next().max(next()) as u32).collect()
}

/// Where in the content the small file of this index begins, bytes: no two of them share any.
pub const fn small_offset(index: u32) -> u64 {
    index as u64 * SMALL_MAX as u64
}

/// The name of the small file of this index.
pub fn small_name(index: u32) -> String {
    format!("small-{index:05}")
}

/// The name of the large file.
pub const LARGE_NAME: &str = "large";

/// Whether `name` is one that [`small_name`] makes.
pub fn is_small_name(name: &str) -> bool {
    name.strip_prefix("small-").is_some_and(|rest| rest.len() == 5 && rest.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_have_the_sizes_of_a_kernel_tree() {
        let sizes = small_sizes(1, SMALL_COUNT_MAX);
        assert!(sizes.iter().all(|size| (SMALL_MIN..=SMALL_MAX).contains(size)));
        let mean = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / f64::from(SMALL_COUNT_MAX);
        assert!((mean - 12.0 * 1024.0).abs() < 400.0, "{mean}");
    }

    #[test]
    fn the_seed_fixes_the_sizes_and_a_shorter_list_is_the_beginning_of_a_longer_one() {
        assert_eq!(small_sizes(7, 50), small_sizes(7, 200)[..50]);
        assert_ne!(small_sizes(7, 50), small_sizes(8, 50));
        assert!(small_sizes(7, 0).is_empty());
    }

    #[test]
    fn no_two_small_files_share_content() {
        for (index, size) in small_sizes(3, 100).into_iter().enumerate() {
            assert!(small_offset(index as u32) + u64::from(size) <= small_offset(index as u32 + 1));
        }
    }

    #[test]
    fn only_our_own_names_are_known() {
        assert!(is_small_name(&small_name(0)) && is_small_name(&small_name(999)));
        for other in ["small-", "small-1", "small-123456", "small-00a00", "large", "../small-00000"] {
            assert!(!is_small_name(other), "{other}");
        }
    }
}
