//! Which datagrams came, and in which order, in bounded memory. Pure.

use std::collections::VecDeque;

/// The datagrams behind the highest that came for which it is known one by one whether they came: half a second at a million a
/// second, in 64 KiB. What comes later than that cannot be told from a copy.
const WINDOW: u64 = 1 << 19;

/// The bits of a word.
const WORD: u64 = 64;

/// What became of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It came for the first time.
    New,
    /// It, or something that cannot be told from it, had come before.
    Again,
}

/// Keeps count of sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    /// The highest number and one.
    beyond: u64,
    /// Whether each number of the last words came; the first of them begins at `base`.
    words: VecDeque<u64>,
    base: u64,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    runs: Runs,
}

/// The longest run of missing numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    current: u64,
    longest: u64,
}

impl Runs {
    fn missing(&mut self, count: u64) {
        self.current = self.current.saturating_add(count);
        self.longest = self.longest.max(self.current);
    }

    /// The first `bits` of a word, the lowest first.
    fn word(&mut self, mut word: u64, mut bits: u64) {
        while bits > 0 {
            let gap = u64::from(word.trailing_zeros()).min(bits);
            self.missing(gap);
            bits -= gap;
            if bits == 0 {
                return;
            }
            self.current = 0;
            word = word.checked_shr(gap as u32).unwrap_or(0);
            let there = u64::from(word.trailing_ones()).min(bits);
            bits -= there;
            word = word.checked_shr(there as u32).unwrap_or(0);
        }
    }
}

impl Track {
    /// A datagram with this number came.
    pub(super) fn take(&mut self, sequence: u64) -> Seen {
        let late = sequence < self.beyond;
        if !late {
            self.advance(sequence);
        }
        let place = sequence.checked_sub(self.base).map(|at| (at / WORD, at % WORD));
        let word = place.and_then(|(at, _)| self.words.get_mut(usize::try_from(at).ok()?));
        let bit = place.map_or(0, |(_, bit)| 1 << bit);
        match word {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                self.received += 1;
                self.reordered += u64::from(late);
                Seen::New
            }
            _ => {
                self.duplicates += 1;
                Seen::Again
            }
        }
    }

    /// Makes room for a number beyond all others.
    fn advance(&mut self, sequence: u64) {
        self.beyond = sequence.saturating_add(1);
        // The word that it lies in, and how many words are kept before it.
        let start = sequence / WORD * WORD;
        let base = start.saturating_sub(WINDOW);
        while self.base < base {
            if let Some(word) = self.words.pop_front() {
                self.runs.word(word, WORD);
                self.base += WORD;
            } else {
                self.runs.missing(base - self.base);
                self.base = base;
            }
        }
        let words = usize::try_from((start - self.base) / WORD + 1).unwrap_or(0);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// The highest number and one; 0 when nothing came.
    pub(super) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The longest run of numbers below `sent` that never came.
    pub(super) fn longest_loss(&self, sent: u64) -> u64 {
        let (mut runs, mut at) = (self.runs, self.base);
        for word in &self.words {
            runs.word(*word, WORD.min(sent.saturating_sub(at)));
            at = at.saturating_add(WORD);
        }
        runs.missing(sent.saturating_sub(at));
        runs.longest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn naive_longest(came: &BTreeSet<u64>, sent: u64) -> u64 {
        let ends = came.iter().copied().filter(|n| *n < sent).chain([sent]);
        let mut next = 0;
        ends.map(|end| {
            let run = end - next;
            next = end + 1;
            run
        })
        .max()
        .unwrap_or(0)
    }

    #[test]
    fn what_came_is_told_apart() {
        for (name, came, sent, received, duplicates, reordered, longest) in [
            ("all in order", vec![0, 1, 2, 3], 4, 4, 0, 0, 0),
            ("one lost", vec![0, 1, 3], 4, 3, 0, 0, 1),
            ("two swapped", vec![0, 2, 1, 3], 4, 4, 0, 1, 0),
            ("a copy", vec![0, 1, 1, 2, 0], 3, 3, 2, 0, 0),
            ("the end lost", vec![0, 1], 200, 2, 0, 0, 198),
            ("the beginning lost", vec![100, 101], 102, 2, 0, 0, 100),
            ("nothing came", vec![], 77, 0, 0, 0, 77),
            ("a hole that was filled late", vec![0, 200, 100], 201, 3, 0, 1, 99),
        ] {
            let mut track = Track::default();
            for sequence in came {
                track.take(sequence);
            }
            assert_eq!((track.received, track.duplicates, track.reordered), (received, duplicates, reordered), "{name}");
            assert_eq!(track.longest_loss(sent), longest, "{name}");
        }
    }

    #[test]
    fn memory_is_bounded_however_far_numbers_jump() {
        let mut track = Track::default();
        for sequence in [0, u64::MAX - 1, u64::MAX, 5] {
            track.take(sequence);
        }
        assert!(track.words.len() as u64 <= WINDOW / WORD + 1);
        assert_eq!((track.received, track.duplicates), (3, 1), "what is too far behind cannot be told from a copy");
        assert!(track.longest_loss(u64::MAX) > 1 << 60);
    }

    proptest! {
        #[test]
        fn it_counts_as_a_set_does(
            steps in proptest::collection::vec((0u64..400, 0u64..300), 1..400), more in 0u64..500
        ) {
            let (mut track, mut came, mut copies, mut late, mut at) = (Track::default(), BTreeSet::new(), 0, 0, 0u64);
            for (ahead, back) in steps {
                at += ahead;
                let sequence = at.saturating_sub(back);
                late += u64::from(came.last().is_some_and(|last| sequence < *last) && !came.contains(&sequence));
                let new = came.insert(sequence);
                copies += u64::from(!new);
                prop_assert_eq!(track.take(sequence), if new { Seen::New } else { Seen::Again });
            }
            let sent = came.last().map_or(0, |last| last + 1) + more;
            prop_assert_eq!(track.received, came.len() as u64);
            prop_assert_eq!(track.duplicates, copies);
            prop_assert_eq!(track.reordered, late);
            prop_assert_eq!(track.beyond(), sent - more);
            prop_assert_eq!(track.longest_loss(sent), naive_longest(&came, sent));
        }

        #[test]
        fn runs_survive_the_end_of_the_window(
            steps in proptest::collection::vec(prop_oneof![3 => 1u64..3, 1 => 1u64..100_000, 1 => 1u64..3_000_000], 1..200)
        ) {
            let (mut track, mut came, mut at) = (Track::default(), BTreeSet::new(), 0);
            for step in steps {
                at += step;
                came.insert(at);
                track.take(at);
            }
            prop_assert_eq!(track.longest_loss(at + 1), naive_longest(&came, at + 1));
        }
    }
}
