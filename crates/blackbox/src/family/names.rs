//! The list of families, and their names in messages, results and stored fits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use super::{Conditional, Family, Flow, FullRank, LowRank, MeanField, Mixture, Space, Sparse};
use crate::error::positive;

/// Generates [`FamilyKind`] from a list of families. A kind of family may have a parameter, which is a positive integer
/// and may have a default value.
macro_rules! families {
    ($($(#[$doc:meta])* $kind:ident $({ $(#[$about:meta])* $number:ident $(= $usual:literal)? })? => $name:literal,)*) => {
        /// One of Jensen's families, together with its parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FamilyKind {
            $($(#[$doc])* $kind $({ $(#[$about])* $number: usize })?,)*
        }

        impl FamilyKind {
            /// Returns the family of this kind on a space, such as ℝᵈ.
            pub fn build(self, space: impl Into<Space>) -> Arc<dyn Family> {
                let space = space.into();
                match self {
                    $(Self::$kind $({ $number })? => Arc::new($kind::new(space.into() $(, $number)?)),)*
                }
            }

            /// Returns the number of parameters of the family on a space. The method does not build the family, which
            /// can be large.
            pub fn parameters(self, space: &Space) -> usize {
                match self {
                    Self::Sparse => Sparse::parameters_on(space),
                    Self::Conditional => self.build(space.clone()).parameters(),
                    _ => self.build(space.dim).parameters(),
                }
            }

            /// Checks that the parameter of the kind is within its range.
            ///
            /// # Errors
            /// Fails with a sentence that contains the setting and its value.
            pub fn validate(self) -> Result<(), SettingError> {
                match self {
                    $(Self::$kind $({ $number })? => {
                        $(positive([(stringify!($number), $number as f64)])?;)?
                        Ok(())
                    })*
                }
            }
        }

        impl fmt::Display for FamilyKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind $({ $number })? => {
                        f.write_str($name)?;
                        $(write!(f, "={}", $number)?;)?
                        Ok(())
                    })*
                }
            }
        }

        impl FromStr for FamilyKind {
            type Err = SettingError;

            fn from_str(text: &str) -> Result<Self, SettingError> {
                let (name, number) = match text.split_once('=') {
                    Some((name, number)) => (name, Some(number)),
                    None => (text, None),
                };
                $(if name == $name {
                    let parameters: &[&str] = &[$(stringify!($number))?];
                    if parameters.is_empty() && number.is_some() {
                        return Err(SettingError::new(format!("`{text}`: the family `{name}` takes no number")));
                    }
                    return Ok(Self::$kind $({
                        $number: whole(text, stringify!($number), number, None $(.or(Some($usual)))?)?
                    })?);
                })*
                let known = [$(concat!($name $(, "=", stringify!($number))?)),*];
                Err(SettingError::new(format!("unknown family `{text}`; expected one of {}", known.join(", "))))
            }
        }
    };
}

fn whole(
    text: &str,
    what: &str,
    number: Option<&str>,
    usual: Option<usize>,
) -> Result<usize, SettingError> {
    match (number.map(str::parse), usual) {
        (Some(Ok(number)), _) if number > 0 => Ok(number),
        (None, Some(usual)) => Ok(usual),
        _ => Err(SettingError::new(format!(
            "`{text}`: the {what} must be a positive whole number"
        ))),
    }
}

families! {
    /// Gaussians with independent coordinates.
    MeanField => "meanfield",
    /// Gaussians with an unrestricted covariance.
    FullRank => "fullrank",
    /// Gaussians whose covariance is a diagonal plus the product of `rank` factors with their transposes.
    LowRank {
        /// The number of factors.
        rank
    } => "lowrank",
    /// Gaussians with a sparse precision. An element of the precision is nonzero only if the corresponding mixed second
    /// derivative of the density can be nonzero.
    Sparse => "sparse",
    /// Gaussians in which the local parameters have a sparse precision. The means, scales and regression coefficients
    /// of the local parameters depend on the global parameters.
    Conditional => "conditional",
    /// Mixtures of at most this number of Gaussians with unrestricted covariances.
    Mixture {
        /// The largest number of components.
        components = 8
    } => "mixture",
    /// Flows of affine coupling layers in the whitened space of the best Gaussian.
    Flow {
        /// The number of coupling layers.
        layers = 6
    } => "flow",
}

/// The name of a family: either a [`FamilyKind`] or the name of a caller's own family. The name of a caller's own
/// family never equals that of a [`FamilyKind`], so Jensen never reads a stored fit as a member of another family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FamilyName(Name);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Listed(FamilyKind),
    Own { own: String },
}

impl FamilyName {
    /// Creates the name of a caller's own family.
    pub fn own(name: impl Into<String>) -> Self {
        Self(Name::Own { own: name.into() })
    }

    pub(crate) fn listed(kind: FamilyKind) -> Self {
        Self(Name::Listed(kind))
    }

    /// Returns the kind of one of Jensen's families, or `None` for a caller's own family.
    pub fn kind(&self) -> Option<FamilyKind> {
        match self.0 {
            Name::Listed(kind) => Some(kind),
            Name::Own { .. } => None,
        }
    }
}

impl PartialEq<FamilyKind> for FamilyName {
    fn eq(&self, kind: &FamilyKind) -> bool {
        self.kind() == Some(*kind)
    }
}

impl fmt::Display for FamilyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Name::Listed(kind) => kind.fmt(f),
            Name::Own { own } => f.write_str(own),
        }
    }
}
