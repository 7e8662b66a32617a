//! Black-box variational inference: families, estimators, optimisers, ADVI, diagnostics.
