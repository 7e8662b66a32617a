//! The error of an invalid setting.

use std::fmt;

/// The error returned if a setting is out of range or cannot be parsed. The message of the error is one sentence that
/// contains the setting, the value and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl SettingError {
    /// Creates an error whose message is `sentence`.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}
