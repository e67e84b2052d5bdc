//! weaklink answers one question: **why is the copy between this PC and that NAS not faster, and what
//! would make it so?**
//!
//! An agent on the NAS (`weaklink serve`) and a client on the PC (`weaklink run`) look at their links,
//! search the largest packet in each direction, move raw TCP, write and read disks and copy files. All that goes
//! into one [document](model::Document); [`verdict::judge`] reads it and names the cause, and [`report::render`]
//! shows it.
//!
//! The last two are pure, so a saved report can be judged again anywhere:
//!
//! ```
//! use weaklink::{report, verdict};
//!
//! let saved = include_bytes!("../tests/fixtures/report/black-hole.json");
//! let document = report::read(saved)?;
//! let judgement = verdict::judge(&document);
//! assert_eq!(judgement.verdict.code.to_string(), "network.mtu-black-hole");
//! println!("{}", judgement.verdict.sentence);
//! # Ok::<(), report::ReadError>(())
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | host | one of the two ends, *pc* or *nas* |
//! | link | an interface of a host and the cable at it |
//! | path | everything between the two hosts |
//! | stream | one TCP connection that carries test data |
//! | lane | one way of copying: raw TCP, a mounted share, SSH |
//! | rung | one rate on the ladder; each adds one component to the one before |
//! | probe | one packet of the MTU search |
//! | finding | something that was found, with a stable code |
//! | verdict | the one answer |
//! | upload, download | PC → NAS, NAS → PC |
//!
//! # Modules
//!
//! | module | what it is |
//! |---|---|
//! | [`units`] | rates, sizes, times; the only place where bits meet bytes |
//! | [`model`] | the report document: plain data |
//! | [`stats`], [`pattern`] | statistics of series; the content of test data |
//! | [`mtu`], [`throughput`], [`link`], [`cpu`], [`storage`], [`copy`] | one thing measured each: engine and decoders pure, I/O in a shell around them |
//! | [`iperf3`] | iperf3's wire, both roles |
//! | [`sys`] | the seam to the operating system |
//! | [`wire`], [`session`] | the control protocol; the two ends of a diagnosis |
//! | [`verdict`], [`report`] | document to answer, document to text |
//! | [`cli`] | the command line |

pub mod cli;
pub mod copy;
pub mod cpu;
pub mod iperf3;
pub mod link;
pub mod model;
pub mod mtu;
pub mod pattern;
pub mod report;
pub mod session;
pub mod stats;
pub mod storage;
pub mod sys;
pub mod throughput;
pub mod units;
pub mod verdict;
pub mod wire;
