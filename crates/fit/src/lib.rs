//! The fit loop: algorithms as init, step and output; traces, budgets, checkpoints.
