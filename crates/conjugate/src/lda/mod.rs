//! Latent Dirichlet allocation over streamed documents.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings` | [`LdaSettings`] |

mod settings;

pub use settings::{LdaSettings, LocalRule};
