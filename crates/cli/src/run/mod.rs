//! What every command that runs long shares: the folder of its results, and the run itself.
//!
//! | file | subject |
//! | --- | --- |
//! | `folder` | taking and opening a folder, the request that it keeps, where a run goes on |
//! | `session` | threads, Ctrl-C, trace, checkpoints and display around one run |

pub mod folder;
pub mod session;
