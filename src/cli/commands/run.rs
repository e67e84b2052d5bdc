//! `weaklink run`.

use std::path::Path;

use crate::cli::args::{OutputArgs, RunArgs};
use crate::cli::exit::{Exit, of_document, of_error};
use crate::cli::output::{can_save, complain, print_report, save, say};
use crate::cli::progress::Progress;
use crate::cli::settings;
use crate::model::Document;
use crate::report::{Format, Style, render};
use crate::session::client::Run;
use crate::session::{Agent, AgentEvent, AgentSettings, Events, RunSettings, SessionError, diagnose};
use crate::sys::Stop;

/// Runs the diagnosis and prints the report.
pub fn run(args: &RunArgs) -> Exit {
    let (settings, dir) = match settings::run(args) {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return Exit::CouldNot;
        }
    };
    measure(&args.output, Tells::All, async move |events| match dir {
        Some(dir) => Box::pin(with_own_agent(settings, events, &dir, args.dir.is_none())).await,
        None => Box::pin(diagnose(settings, events)).await,
    })
}

/// How much the report on the terminal tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// What every report does.
    All,
    /// Every probe of the path MTU too.
    Probes,
    /// Of raw rates or links no more than the first screen; files get the rest.
    FirstScreen,
}

/// Runs a measurement with progress and interruption, and prints what came of it.
pub fn measure(output: &OutputArgs, tells: Tells, work: impl AsyncFnOnce(Events) -> Result<Run, SessionError>) -> Exit {
    if let Some(Err(reason)) = output.output.as_deref().map(can_save) {
        complain(&reason);
        return Exit::CouldNot;
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let interrupt = Stop::new();
    let stopped = interrupt.clone();
    let progress = Progress::new(output.quiet);
    let events = {
        let progress = progress.clone();
        Events::new(move |event| progress.take(event), interrupt.clone())
    };
    let result = runtime.block_on(async {
        stop_on_signal(interrupt);
        work(events).await
    });
    // Whoever interrupts does not wait for a connection that nobody answers.
    runtime.shutdown_timeout(std::time::Duration::from_millis(if stopped.is_set() { 200 } else { 2000 }));
    progress.clear();
    match result {
        Ok(run) => finish(output, tells, run),
        Err(error) => {
            complain(&error);
            of_error(&error)
        }
    }
}

/// The same with an agent in this process, over loopback.
async fn with_own_agent(mut settings: RunSettings, events: Events, dir: &Path, chosen: bool) -> Result<Run, SessionError> {
    if chosen {
        events.tell(crate::session::Event::Note(format!(
            "No --dir was given: disk tests use a new directory in {}, which is removed again.",
            dir.display()
        )));
    }
    let agent = AgentSettings {
        bind: Some(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
        port: 0,
        dir: Some(dir.to_owned()),
        code: settings.code.clone(),
    };
    let notes = events.clone();
    let agent = Agent::bind(agent, move |event| {
        if let AgentEvent::Note(text) = event {
            notes.tell(crate::session::Event::Note(text));
        }
    })?;
    settings.target.port = agent.address().port();
    let stop = Stop::new();
    let serving = tokio::spawn(agent.serve(stop.clone()));
    let result = Box::pin(diagnose(settings, events)).await;
    stop.set();
    let _ = serving.await;
    result
}

fn finish(args: &OutputArgs, tells: Tells, run: Run) -> Exit {
    let (trace, details) = (tells == Tells::Probes, tells != Tells::FirstScreen);
    let mut document = run.document;
    judge(&mut document);
    if matches!(run.ended, Some(SessionError::Interrupted)) {
        complain(&"interrupted; nothing is left behind");
    }
    let text = if args.json {
        Some(render(&document, Format::Json, &settings::file_style()))
    } else {
        run.ended.is_none().then(|| render(&document, Format::Text, &Style { trace, details, ..settings::style(args.color) }))
    };
    let mut exit = match &run.ended {
        Some(error) => {
            if !matches!(error, SessionError::Interrupted) {
                complain(error);
            }
            of_error(error)
        }
        None => of_document(&document),
    };
    if let Some(text) = text {
        exit = print_report(&text, exit);
    }
    if let Some(path) = &args.output {
        match save(&document, path, &Style { trace, ..settings::file_style() }) {
            Ok(()) => say(&format!("The report is in {}.", path.display())),
            Err(error) => {
                complain(&format!("cannot write the report to {}: {error}", path.display()));
                if exit != Exit::Interrupted {
                    exit = Exit::CouldNot;
                }
            }
        }
    }
    exit
}

/// Fills in findings and verdict.
pub fn judge(document: &mut Document) {
    let judgement = crate::verdict::judge(document);
    document.findings = judgement.findings;
    document.verdict = Some(judgement.verdict);
}

/// The files that building the runtime opens are six; its signal handling panics where it gets none.
const FILES: usize = 8;

/// The threads of the runtime, and those that soon come beside it; it panics where it gets none.
const THREADS: usize = 6;

/// Whether this process may open the files and start the threads without which nothing goes; else the sentence why not.
fn enough_to_start() -> Result<(), String> {
    // Where the first cannot be opened, it may be for another reason (Windows opens no directory), and the runtime's error tells.
    let open = || std::fs::File::open("/");
    if let Ok(first) = open() {
        let others: Result<Vec<_>, _> = (1..FILES).map(|_| open()).collect();
        others.map_err(|error| {
            format!("cannot start: {error}; raise the limit of open files, as with `ulimit -n 1024`, and start weaklink again")
        })?;
        drop(first);
    }
    let (sender, waiting) = std::sync::mpsc::channel::<()>();
    let waiting = std::sync::Arc::new(std::sync::Mutex::new(waiting));
    let started: Vec<_> = (0..THREADS)
        .map(|_| {
            let waiting = std::sync::Arc::clone(&waiting);
            // It ends when the sender is gone.
            let wait = move || drop(waiting.lock().map(|waiting| waiting.recv()));
            std::thread::Builder::new().stack_size(64 * 1024).spawn(wait)
        })
        .collect();
    drop(sender);
    let mut short = None;
    for thread in started {
        match thread {
            Ok(thread) => drop(thread.join()),
            Err(error) => short = Some(error),
        }
    }
    short.map_or(Ok(()), |error| {
        Err(format!(
            "cannot start: no more threads ({error}); raise the limit of processes, as with `ulimit -u`, and start weaklink again"
        ))
    })
}

/// The runtime of the control plane.
pub fn runtime() -> Result<tokio::runtime::Runtime, Exit> {
    if let Err(error) = enough_to_start() {
        complain(&error);
        return Err(Exit::CouldNot);
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(|error| {
        complain(&format!("cannot start: {error}"));
        Exit::CouldNot
    })
}

/// Sets the flag at the first Ctrl-C or termination signal; a second one ends the process at once.
pub fn stop_on_signal(stop: Stop) {
    tokio::spawn(async move {
        signal().await;
        stop.set();
        signal().await;
        std::process::exit(i32::from(Exit::Interrupted as u8));
    });
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    let _ = tokio::signal::ctrl_c().await;
}
