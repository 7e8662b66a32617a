//! Conditionally conjugate models at scale: batch and stochastic variational inference, variational tempering.
