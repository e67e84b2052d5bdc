//! `weaklink explain`.

use crate::cli::args::ExplainArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{complain, print_report};
use crate::model::finding::Code;
use crate::verdict;

/// Prints what a code means, or all codes.
pub fn explain(args: &ExplainArgs) -> Exit {
    let Some(text) = &args.code else {
        let width = verdict::rules().iter().map(|doc| doc.code.len()).max().unwrap_or(0);
        let list: Vec<String> = verdict::rules().iter().map(|doc| format!("{:width$}  {}\n", doc.code, doc.title)).collect();
        return print_report(&list.concat(), Exit::Fine);
    };
    let doc = text.parse::<Code>().ok().and_then(|code| verdict::explain(&code));
    let Some(doc) = doc else {
        let near: Vec<&str> = verdict::rules().iter().map(|doc| doc.code).filter(|code| code.contains(text.as_str())).collect();
        let hint = if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(", ")) };
        complain(&format!("there is no code {text:?}{hint}; `weaklink explain` lists all codes"));
        return Exit::CouldNot;
    };
    let text = format!(
        "{}: {}\n\nWhat it means\n  {}\n\nHow it is detected\n  {}\n\nHow to fix it\n  {}\n",
        doc.code, doc.title, doc.meaning, doc.detected, doc.fix
    );
    print_report(&text, Exit::Fine)
}
