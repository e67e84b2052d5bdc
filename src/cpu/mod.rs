//! What the processors do during a measurement, and what they could do at most.
//!
//! A rung that is slow because one core is full looks like a slow network from outside, and "25 %"
//! of four cores can be one full core. So every measurement is bracketed by a [`Sampler`] at both
//! ends: shares for each core, the processes that used them, and whether this process was kept from
//! running at all (a quota, other programs, a hypervisor). [`ciphers`] tells beforehand what one core
//! gives with the ciphers of SSH, and [`describe`] says what kind of host this is.
//!
//! The rhythm: [`decode`], [`group`] and [`interrupts`] turn the kernel's texts into numbers and [`window()`] turns two
//! readings into shares, all pure; [`tree`] reads the files below a given root, and [`sample`] owns
//! the thread and the clock.

pub mod cipher;
pub mod decode;
pub mod group;
pub mod host;
pub mod interrupts;
pub mod sample;
pub mod tree;
pub mod window;

pub use cipher::{aes_instructions, ciphers};
pub use host::describe;
pub use sample::{Sampler, visibility};
pub use window::{Snapshot, window};

#[cfg(all(test, target_os = "linux"))]
mod live_tests;
