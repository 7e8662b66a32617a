//! Self-contained HTML reports.
