//! Tests whether a program can be lowered, using made-up data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LowerError, LowerOptions, lower};
use crate::diagnostic::{Code, Diagnostic};
use crate::interpret::{Interpreter, Invention};
use crate::program::Program;
use crate::value::error::{ErrorKind, Halt, Limits};

const TRIALS: [Invention; 4] = [
    Invention {
        size: 2,
        high: true,
        off: false,
    },
    Invention {
        size: 3,
        high: false,
        off: false,
    },
    Invention {
        size: 1,
        high: true,
        off: false,
    },
    Invention {
        size: 2,
        high: true,
        off: true,
    },
];

/// A trial is abandoned after this many interpreter steps or graph nodes.
const MOST: u64 = 1_000_000;

/// A trial with made-up data is abandoned if one value is larger than this many bytes.
const ROOM: u64 = 256 << 20;

/// A trial is abandoned after the interrupt has been checked this many times. A check occurs every few hundred steps.
const PATIENCE: u64 = 4_000;

/// Returns the constructs of a correct program that lowering rejects. The program is lowered with several sets of
/// made-up data that satisfy its declarations. If lowering rejects a construct for all of these data, the construct is
/// an error. If lowering rejects the construct for only some of these data, the construct is a warning. Made-up data
/// for which the program fails for another reason are ignored.
pub fn refusals(program: &Arc<Program>) -> Vec<Diagnostic> {
    let trials = if program.data.is_empty() {
        &TRIALS[..1]
    } else {
        &TRIALS[..]
    };
    let outcomes: Vec<Option<LowerError>> = trials
        .iter()
        .filter_map(|what| outcome(program, *what))
        .collect();
    let refused = outcomes.iter().flatten().count();
    let Some(first) = outcomes.iter().flatten().next() else {
        return Vec::new();
    };
    let message = first.message.clone();
    let diagnostic = if refused == outcomes.len() {
        Diagnostic::error(Code::Unsupported, first.span, message)
    } else {
        let message = format!("{message}: Jensen cannot fit this program for some data");
        Diagnostic::warning(Code::Unsupported, first.span, message)
    };
    let how = if program.data.is_empty() {
        return vec![diagnostic];
    } else {
        format!(
            "tried with simulated data: {refused} of {} sets failed",
            outcomes.len()
        )
    };
    vec![diagnostic.help(how)]
}

fn outcome(program: &Arc<Program>, what: Invention) -> Option<Option<LowerError>> {
    let own = program.data.is_empty();
    // This failure would also end a fit. It is caused neither by the limits of the trial nor by made-up data.
    let fails = |kind| own && matches!(kind, ErrorKind::Failed | ErrorKind::Excess);
    let bind = |seed| interpreter(own, seed).bind_invented(program.clone(), what);
    let bound = match bind(0) {
        Ok(bound) => bound,
        // Transformed data may draw random numbers, so another seed may succeed.
        Err(error) if fails(error.kind) || own && error.kind == ErrorKind::Rejected => {
            return bind(1).err().map(|_| Some(error.into()));
        }
        Err(_) => return None,
    };
    let options = LowerOptions {
        node_limit: MOST as usize,
        ..LowerOptions::default()
    };
    match lower(&bound, options) {
        Ok(_) => Some(None),
        Err(error) if fails(error.kind) || error.kind == ErrorKind::Unsupported => {
            Some(Some(error))
        }
        Err(_) => None,
    }
}

/// The limits are low, so that a trial is short. If `own` is true, the data are the program's own and may be as large
/// as in a fit.
fn interpreter(own: bool, seed: u64) -> Interpreter {
    let asked = AtomicU64::new(0);
    let limits = Limits::default();
    Interpreter {
        limits: Limits {
            steps: MOST,
            bytes: if own { limits.bytes } else { ROOM },
            ..limits
        },
        seed,
        halt: Halt::new(move || {
            (asked.fetch_add(1, Ordering::Relaxed) > PATIENCE).then(|| "long enough".to_owned())
        }),
    }
}
