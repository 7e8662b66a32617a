//! Variational inference with evidence: a model and data in, a checked posterior out.
