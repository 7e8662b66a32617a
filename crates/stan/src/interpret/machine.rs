//! The state of one evaluation.

use std::sync::Arc;

use crate::functions::random::{Address, Draws};
use crate::program::{Program, Span, VarId};
use crate::value::Value;
use crate::value::error::{Eval, FnError, Halt, Limits};

/// The values of the variables, indexed by [`VarId`]. A variable whose declaration has not been executed is `None`.
pub type Slots = Vec<Option<Arc<Value>>>;

/// A function that receives the output of `print`, one line per call.
pub type Sink<'s> = dyn FnMut(&str) + 's;

/// Evaluates the expressions and statements of one program. See [`Machine::new`].
pub struct Machine<'m> {
    pub(super) program: &'m Program,
    pub(super) locals: &'m [Vec<VarId>],
    pub(super) limits: Limits,
    pub(super) halt: Halt,
    work: u64,
    /// The values of the variables.
    pub slots: Slots,
    /// The current value of the log density.
    pub target: f64,
    /// Whether the log density includes the terms of `jacobian +=` and the log-Jacobians of the parameters.
    pub jacobian: bool,
    /// Whether `~` and `_lupdf` drop their additive constants, which are the terms that depend only on arguments of
    /// level data. Stan itself may drop more terms in the body of a function, if the call passes data for an argument
    /// that is not declared `data`.
    pub drop_constants: bool,
    /// The stream of random numbers, or `None` if the program may not draw any.
    pub rng: Option<Draws>,
    pub(super) address: Address,
    pub(super) steps: u64,
    pub(super) depth: u32,
    pub(super) sink: &'m mut Sink<'m>,
}

/// The interrupt is checked each time this many units of work are done. This work takes a few hundred microseconds.
const ASK_EVERY: u64 = 4096;

impl<'m> Machine<'m> {
    /// Creates a machine for `program` whose variables have the values in `slots`. `locals` contains the program's
    /// [`function_locals`](crate::program::function_locals). By default, the log density includes constants and
    /// Jacobians, and random numbers are not available. Set the fields to change these defaults.
    pub fn new(
        program: &'m Program,
        locals: &'m [Vec<VarId>],
        slots: Slots,
        limits: Limits,
        sink: &'m mut Sink<'m>,
    ) -> Machine<'m> {
        Machine {
            program,
            locals,
            limits,
            halt: Halt::default(),
            work: ASK_EVERY,
            slots,
            target: 0.0,
            jacobian: true,
            drop_constants: false,
            rng: None,
            address: Address::default(),
            steps: 0,
            depth: 0,
            sink,
        }
    }

    /// Sets an interrupt that can end the evaluation.
    pub fn with_halt(self, halt: Halt) -> Self {
        Self { halt, ..self }
    }

    /// `amount` is a number of units of work, such as visited elements. The interrupt is checked occasionally.
    pub(super) fn work(&mut self, amount: usize, span: Span) -> Eval<()> {
        self.work = self.work.saturating_add(amount as u64);
        if self.work >= ASK_EVERY {
            self.work = 0;
            self.halt.check(span)?;
        }
        Ok(())
    }

    pub(super) fn step(&mut self, span: Span) -> Eval<()> {
        self.work(1, span)?;
        self.steps += 1;
        if self.steps > self.limits.steps {
            let message = format!(
                "stopped after {} steps: does this loop or recursion end?",
                self.limits.steps
            );
            return Err(FnError::limit(message).at(span));
        }
        Ok(())
    }

    pub(super) fn nested<T>(
        &mut self,
        span: Span,
        body: impl FnOnce(&mut Self) -> Eval<T>,
    ) -> Eval<T> {
        if self.depth >= self.limits.depth {
            let message = format!(
                "stopped {} levels deep: does this recursion end?",
                self.limits.depth
            );
            return Err(FnError::excess(message).at(span));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    pub(super) fn variable(&self, var: VarId, span: Span) -> Eval<&Arc<Value>> {
        self.slots[var.0 as usize].as_ref().ok_or_else(|| {
            FnError::invalid(format!("`{}` has no value yet", self.program.var(var).name)).at(span)
        })
    }

    pub(super) fn snippet(&self, span: Span) -> &'m str {
        let text = self
            .program
            .files
            .get(span.file.0 as usize)
            .map_or("", |file| file.text.as_str());
        let text = text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("expression");
        if text.len() > 60 || text.contains('\n') {
            "expression"
        } else {
            text
        }
    }
}
