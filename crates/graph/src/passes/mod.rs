//! Passes that transform graphs. Each pass rebuilds the graph through the constructors, so that constants are folded,
//! expressions are simplified and common subexpressions are merged again. In tests and debug builds, the verifier runs
//! after each pass.

mod columns;
mod compact;
mod repeats;
mod reroll;
mod scalarise;

pub use compact::{compact, extract, inlined, settled};
pub(crate) use compact::{import, transplant};
pub use repeats::repeats;
pub use reroll::reroll;
pub(crate) use scalarise::scalarise;

use crate::ir::Graph;

/// Runs the standard passes that precede differentiation. The passes re-roll loops, remove unused nodes, and multiply
/// columns of predictors by factors of data.
pub fn optimise(graph: &Graph) -> Graph {
    let never = || None;
    optimise_unless(graph, &never).unwrap_or_else(|reason| unreachable!("{reason}"))
}

/// Like [`optimise`], but calls `asked` between passes. If `asked` returns a reason, stops and returns it.
pub(crate) fn optimise_unless(
    graph: &Graph,
    asked: &dyn Fn() -> Option<String>,
) -> Result<Graph, String> {
    let go_on = || asked().map_or(Ok(()), Err);
    let compacted = compact(graph);
    go_on()?;
    let rolled = reroll(&compacted);
    drop(compacted);
    go_on()?;
    let rolled = columns::fold_factors(rolled);
    crate::verify::debug_verify(&rolled);
    Ok(rolled)
}
