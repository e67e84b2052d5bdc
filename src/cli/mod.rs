//! The command line: `args` as typed, `settings` as meant (the only reader of the environment),
//! `progress` on stderr, `exit` codes, and one file for each command. Nobody else prints.

pub mod args;
pub mod commands;
pub mod exit;
pub mod output;
pub mod progress;
pub mod settings;

pub use commands::main;
