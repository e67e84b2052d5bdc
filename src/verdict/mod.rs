//! The verdict: facts in, one answer out. Pure: a saved report can be judged again without a NAS.
//!
//! The rhythm: [`mod@ideal`] holds the arithmetic of Ethernet, `seen` reads the document once into numbers per
//! end and direction, [`mod@ladder`] sets the ceilings of a direction beside each other, every rule of
//! `rules` says which part of the ladder it explains and how strongly, and `rank` asks of each direction which
//! part binds, what the best explanation of that part is, what its removal would give, and how sure that is.
//! A rule never decides the verdict: it offers an explanation, and the ladder says whether one is needed.

pub mod ideal;
pub mod ladder;
pub mod limits;

mod counted;
mod judge;
mod line_rate;
mod link_answer;
mod load;
mod mtu_answer;
mod phases;
mod rank;
mod rates_answer;
mod rates_asked;
mod rates_compared;
mod rates_group;
mod rules;
mod seen;
mod sentence;
mod words;

#[cfg(test)]
mod scenario;

pub use judge::{Judgement, judge};
pub use rules::{RuleDoc, explain, rules};
