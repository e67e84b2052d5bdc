//! The content of test data: random, unique in every 4 KiB, and checkable at any place.
//!
//! A pool of random bytes is repeated, and the first 16 bytes of every 4 KiB block carry the block's
//! number and the seed: so nothing compresses and no two blocks are equal (deduplication finds
//! nothing), yet filling and checking run at the speed of a memory copy and never become the
//! bottleneck on a small processor.

/// The unit in which the content is unique.
pub const BLOCK: usize = 4096;

/// The size of the random pool: larger than an L2 cache would make it slow, smaller would repeat too soon.
const POOL: usize = 1 << 20;

/// A stream of content that is fixed by its seed.
#[derive(Clone)]
pub struct Pattern {
    seed: u64,
    pool: std::sync::Arc<[u8]>,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pattern").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): one round.
const fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Pattern {
    /// The content that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut pool = vec![0u8; POOL];
        for (i, word) in pool.chunks_exact_mut(8).enumerate() {
            let state = seed.wrapping_add((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            word.copy_from_slice(&mix(state).to_le_bytes());
        }
        Self { seed, pool: pool.into() }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    fn stamp(&self, block: u64) -> [u8; 16] {
        let mut stamp = [0u8; 16];
        stamp[..8].copy_from_slice(&block.to_le_bytes());
        stamp[8..].copy_from_slice(&mix(self.seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes());
        stamp
    }

    /// Writes the content at `offset` into `buffer`; any offset and length will do.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) {
        self.pieces(offset, buffer.len(), |at, pool, stamp| {
            let part = &mut buffer[at..at + pool.len()];
            part.copy_from_slice(pool);
            part[..stamp.len()].copy_from_slice(stamp);
            true
        });
    }

    /// Whether `buffer` is the content at `offset`.
    pub fn check(&self, offset: u64, buffer: &[u8]) -> bool {
        self.pieces(offset, buffer.len(), |at, pool, stamp| {
            let part = &buffer[at..at + pool.len()];
            &part[..stamp.len()] == stamp && part[stamp.len()..] == pool[stamp.len()..]
        })
    }

    /// Calls `f` for each part of a block: where it stands in the buffer, the pool's bytes, and the part of the stamp in front.
    fn pieces(&self, offset: u64, len: usize, mut f: impl FnMut(usize, &[u8], &[u8]) -> bool) -> bool {
        let mut done = 0;
        while done < len {
            let place = offset + done as u64;
            let (block, within) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
            let take = (BLOCK - within).min(len - done);
            let pool_at = (block as usize % (POOL / BLOCK)) * BLOCK + within;
            let stamp = self.stamp(block);
            let stamp = if within < stamp.len() { &stamp[within..stamp.len().min(within + take)] } else { &[] };
            if !f(done, &self.pool[pool_at..pool_at + take], stamp) {
                return false;
            }
            done += take;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_equals_the_same_part_of_the_whole() {
        let pattern = Pattern::new(7);
        let mut whole = vec![0; 3 * BLOCK];
        pattern.fill(0, &mut whole);
        for (from, len) in [(0, 1), (5, 30), (BLOCK - 3, 40), (BLOCK + 8, 9), (0, 3 * BLOCK)] {
            let mut part = vec![0; len];
            pattern.fill(from as u64, &mut part);
            assert_eq!(part, whole[from..from + len], "{from} {len}");
            assert!(pattern.check(from as u64, &part));
        }
    }

    #[test]
    fn one_changed_byte_or_a_wrong_place_is_seen() {
        let pattern = Pattern::new(1);
        let mut data = vec![0; 2 * BLOCK];
        pattern.fill(0, &mut data);
        assert!(!pattern.check(BLOCK as u64, &data));
        assert!(!Pattern::new(2).check(0, &data));
        for at in [0, 15, 16, BLOCK, 2 * BLOCK - 1] {
            data[at] ^= 1;
            assert!(!pattern.check(0, &data), "{at}");
            data[at] ^= 1;
        }
    }

    #[test]
    fn no_two_blocks_are_equal() {
        let pattern = Pattern::new(3);
        let mut data = vec![0; 2 * POOL];
        pattern.fill(0, &mut data);
        let mut blocks: Vec<&[u8]> = data.chunks(BLOCK).collect();
        blocks.sort_unstable();
        assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
