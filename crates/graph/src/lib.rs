//! The expression graph engine: draws as SIMD lanes, graph-to-graph differentiation.
