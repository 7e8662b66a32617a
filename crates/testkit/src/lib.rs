//! Oracles, finite differences and model corpus for Jensen's tests.
