//! Progress on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::output::say;
use crate::session::event::{Event, Watch};
use crate::units::{BitRate, ByteSize};

/// How often the bar is drawn.
const DRAW: Duration = Duration::from_millis(200);

/// Draws the events of a run.
#[derive(Clone)]
pub struct Progress(Arc<Mutex<Drawing>>);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

enum Look {
    Nothing,
    Lines,
    Bar(ProgressBar),
}

struct Drawing {
    look: Look,
    begun: Instant,
    expected: Duration,
    part: String,
    watch: Option<(Watch, u64, Instant)>,
}

impl Progress {
    /// A drawing that suits stderr, or none at all.
    pub fn new(quiet: bool) -> Self {
        let look = if quiet {
            Look::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            let template = "{bar:16} {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("━╸ "));
            }
            Look::Bar(bar)
        } else {
            Look::Lines
        };
        let drawing = Drawing { look, begun: Instant::now(), expected: Duration::ZERO, part: String::new(), watch: None };
        let progress = Self(Arc::new(Mutex::new(drawing)));
        progress.keep_drawing();
        progress
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Drawing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Redraws the bar until the last handle is gone.
    fn keep_drawing(&self) {
        if !matches!(self.lock().look, Look::Bar(_)) {
            return;
        }
        let weak = Arc::downgrade(&self.0);
        // Without a thread there is no bar, and all else goes on.
        let _ = std::thread::Builder::new().spawn(move || {
            while let Some(drawing) = weak.upgrade() {
                drawing.lock().unwrap_or_else(PoisonError::into_inner).draw();
                drop(drawing);
                std::thread::sleep(DRAW);
            }
        });
    }

    /// Takes an event.
    pub fn take(&self, event: Event) {
        let mut drawing = self.lock();
        match event {
            Event::Begin { expected } => {
                drawing.begun = Instant::now();
                drawing.expected = expected;
            }
            Event::Part { step, what, watch, .. } => {
                drawing.part = format!("{}: {what}", step.title());
                drawing.watch = watch.map(|watch| {
                    let now = watch();
                    (watch, now, Instant::now())
                });
                match &drawing.look {
                    Look::Lines => {
                        let left = drawing.left();
                        let part = &drawing.part;
                        say(&if left.is_zero() { part.clone() } else { format!("{part} ({} s left at most)", left.as_secs()) });
                    }
                    Look::Bar(_) => drawing.draw(),
                    Look::Nothing => {}
                }
            }
            Event::Note(text) => match &drawing.look {
                Look::Bar(bar) => bar.suspend(|| say(&text)),
                Look::Lines | Look::Nothing => say(&text),
            },
            Event::End => drawing.clear(),
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.lock().clear();
    }
}

impl Drawing {
    fn left(&self) -> Duration {
        self.expected.saturating_sub(self.begun.elapsed())
    }

    fn draw(&mut self) {
        let Look::Bar(bar) = &self.look else { return };
        let mut text = self.part.clone();
        if let Some((watch, before, since)) = &mut self.watch {
            let now = watch();
            let rate = BitRate::of(ByteSize(now.saturating_sub(*before)), since.elapsed());
            (*before, *since) = (now, Instant::now());
            text = format!("{text}  {rate}");
        }
        let left = self.expected.saturating_sub(self.begun.elapsed());
        if !self.expected.is_zero() {
            text = format!("{text}  ({} s left at most)", left.as_secs());
            let done = self.begun.elapsed().as_secs_f64() / self.expected.as_secs_f64();
            bar.set_position((done.min(1.0) * 1000.0) as u64);
        }
        bar.set_message(text);
    }

    fn clear(&mut self) {
        if let Look::Bar(bar) = &self.look {
            bar.finish_and_clear();
            self.look = Look::Nothing;
        }
    }
}
