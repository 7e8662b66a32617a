//! The settings that Stan generates for embedded Laplace approximations (`prim/fun/generate_laplace_options.hpp`).

/// The tolerance of the search for the mode.
pub const TOLERANCE: f64 = 1.490_12e-8;

/// The settings that follow the tolerance: the largest number of steps, the solver, the largest number of steps in a
/// line search, and whether other solvers are tried if the first one fails.
pub const COUNTS: [i32; 4] = [500, 1, 1000, 1];
