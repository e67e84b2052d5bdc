//! Exit codes, the only place that knows them.

use std::process::ExitCode;

use crate::model::finding::{Severity, Status};
use crate::model::{Document, Outcome};
use crate::session::SessionError;

/// The cause of a verdict that says that too little was measured.
const TOO_LITTLE: &str = "too-little-evidence";

/// What a script may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Healthy, or information only.
    Fine = 0,
    /// A finding that costs speed.
    Finding = 1,
    /// It could not be measured or decided, or the command was used in a wrong way.
    CouldNot = 2,
    /// Interrupted (128 + SIGINT, as shells have it).
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What a judged document means for a script.
pub fn of_document(document: &Document) -> Exit {
    let costs = document.findings.iter().any(|finding| finding.severity >= Severity::Warning);
    let lane_failed = document.measurements.copy.measured().is_some_and(|copy| {
        copy.lanes
            .iter()
            .any(|lane| !lane.rungs.is_empty() && lane.rungs.iter().all(|rung| matches!(rung.result, Outcome::Failed(_))))
    });
    match document.verdict.as_ref().map(|verdict| verdict.status) {
        _ if is_unanswered(document) => Exit::CouldNot,
        Some(Status::Bottleneck) => Exit::Finding,
        Some(Status::Healthy | Status::Inconclusive) if costs => Exit::Finding,
        Some(Status::Healthy) if lane_failed => Exit::CouldNot,
        Some(Status::Healthy) => Exit::Fine,
        Some(Status::Inconclusive) | None => Exit::CouldNot,
    }
}

/// Whether congestion controls were the question of a document about raw rates, and too few of them ran: what was found beside is no
/// answer to that.
fn is_unanswered(document: &Document) -> bool {
    let plan = document.plan.throughput.as_ref().filter(|_| document.plan.scope.is_throughput());
    let verdict = document.verdict.as_ref().filter(|verdict| verdict.status == Status::Inconclusive);
    plan.is_some_and(|plan| !plan.congestion.is_empty()) && verdict.is_some_and(|verdict| verdict.cause == TOO_LITTLE)
}

/// What a run that ended early means.
pub const fn of_error(error: &SessionError) -> Exit {
    match error {
        SessionError::Interrupted => Exit::Interrupted,
        _ => Exit::CouldNot,
    }
}
