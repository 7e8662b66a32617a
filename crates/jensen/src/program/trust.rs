//! The settings of TrustVI.

use jensen_blackbox::{MethodSettings, TrustSettings};
use serde::{Deserialize, Serialize};

use crate::Error;
#[cfg(feature = "clap")]
use crate::job::words;

/// The settings of TrustVI: the parameters in Table 1 of Regier, Jordan and McAuliffe (2017), and the initial radius.
/// Absent settings take their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct TrustRequest {
    /// Algorithm 1 of the paper as printed, from the initial point, without several starts; only with --method trust
    #[cfg_attr(
        feature = "clap",
        arg(id = "trust_paper", long = "trust-paper", help_heading = "TrustVI")
    )]
    pub paper: bool,
    /// η: the share of the predicted improvement that a step must achieve, above 0 and at most 0.5 [default: 0.3]
    #[cfg_attr(feature = "clap", arg(id = "trust_eta", long = "trust-eta", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub eta: Option<f64>,
    /// γ: the factor by which the region grows and shrinks, above 1 [default: 2]
    #[cfg_attr(feature = "clap", arg(id = "trust_gamma", long = "trust-gamma", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub gamma: Option<f64>,
    /// λ: Jensen rejects a step without evaluating it if its predicted improvement is below λδ²/η nats in a region of
    /// radius δ [default: 1e-10]
    #[cfg_attr(feature = "clap", arg(id = "trust_lambda", long = "trust-lambda", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub lambda: Option<f64>,
    /// α: the weight of the radius in the potential L − αδ², above λ/(1 − γ⁻²); with a larger value, fewer draws assess
    /// a step [default: 0.5]
    #[cfg_attr(feature = "clap", arg(id = "trust_alpha", long = "trust-alpha", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub alpha: Option<f64>,
    /// ν₁: a constant of Inequality 13, below 1 − η; with a larger value, the inequality requires fewer draws [default:
    /// 0.2]
    #[cfg_attr(feature = "clap", arg(id = "trust_nu1", long = "trust-nu1", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub nu1: Option<f64>,
    /// ν₂: the smallest norm of a good gradient, as a share of the true gradient's norm, below 1; affects the radius up
    /// to which Inequality 13 applies [default: 0.5]
    #[cfg_attr(feature = "clap", arg(id = "trust_nu2", long = "trust-nu2", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub nu2: Option<f64>,
    /// ν₃: the accuracy of a good gradient's direction, below 1 − η − ν₁; affects the same radius [default: 0.2]
    #[cfg_attr(feature = "clap", arg(id = "trust_nu3", long = "trust-nu3", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub nu3: Option<f64>,
    /// ζ₀: the probability of a good gradient, between 0.5 and 1; only bounds ζ₁, because a jackknife determines the
    /// draws of gradients [default: 0.9]
    #[cfg_attr(feature = "clap", arg(id = "trust_zeta0", long = "trust-zeta0", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub zeta0: Option<f64>,
    /// ζ₁: the probability of accepting a good step, between 1/(2ζ₀) and 1 [default: 0.8]
    #[cfg_attr(feature = "clap", arg(id = "trust_zeta1", long = "trust-zeta1", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub zeta1: Option<f64>,
    /// κ_H: the largest curvature of a model whose Hessian is explicit, in the metric of the region [default: 1e16]
    #[cfg_attr(feature = "clap", arg(id = "trust_kappa_h", long = "trust-kappa-h", value_name = "X", value_parser = words::not_negative, help_heading = "TrustVI"))]
    pub kappa_h: Option<f64>,
    /// δ⁻: the largest radius at which Inequality 13 applies [default: any]
    #[cfg_attr(feature = "clap", arg(id = "trust_delta_minus", long = "trust-delta-minus", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub delta_minus: Option<f64>,
    /// δ_max: the largest radius, in standard deviations of the approximation [default: 1e6]
    #[cfg_attr(feature = "clap", arg(id = "trust_delta_max", long = "trust-delta-max", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub delta_max: Option<f64>,
    /// δ₀: the first radius, at most δ_max [default: 3]
    #[cfg_attr(feature = "clap", arg(id = "trust_delta0", long = "trust-delta0", value_name = "X", value_parser = words::positive, help_heading = "TrustVI"))]
    pub delta0: Option<f64>,
}

impl TrustRequest {
    /// Returns whether the user gave any of these settings.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the settings in `usual`, with the given settings in place of the defaults.
    ///
    /// # Errors
    /// Fails if a parameter is outside the range that Table 1 allows. The range of some parameters depends on other
    /// parameters.
    pub fn over(&self, usual: TrustSettings) -> Result<TrustSettings, Error> {
        let settings = TrustSettings {
            eta: self.eta.unwrap_or(usual.eta),
            gamma: self.gamma.unwrap_or(usual.gamma),
            lambda: self.lambda.unwrap_or(usual.lambda),
            alpha: self.alpha.unwrap_or(usual.alpha),
            nu1: self.nu1.unwrap_or(usual.nu1),
            nu2: self.nu2.unwrap_or(usual.nu2),
            nu3: self.nu3.unwrap_or(usual.nu3),
            zeta0: self.zeta0.unwrap_or(usual.zeta0),
            zeta1: self.zeta1.unwrap_or(usual.zeta1),
            kappa_h: self.kappa_h.unwrap_or(usual.kappa_h),
            delta_minus: self.delta_minus.unwrap_or(usual.delta_minus),
            delta_max: self.delta_max.unwrap_or(usual.delta_max),
            delta0: self.delta0.unwrap_or(usual.delta0),
            ..usual
        };
        let checked = settings.validate();
        checked.map_err(|why| Error::Setting(format!("{why} (flags --trust-…)")))?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_given_win_and_are_checked_together() {
        let usual = TrustSettings::default();
        assert_eq!(TrustRequest::default().over(usual).unwrap(), usual);
        let given = TrustRequest {
            eta: Some(0.1),
            delta_max: Some(2.0),
            delta0: Some(2.0),
            ..TrustRequest::default()
        };
        let settings = given.over(usual).unwrap();
        assert_eq!((settings.eta, settings.delta0), (0.1, 2.0));
        assert_eq!(settings.gamma, usual.gamma);
        // The default initial radius is 3.
        let alone = TrustRequest {
            delta0: None,
            ..given
        };
        let why = alone.over(usual).unwrap_err().to_string();
        assert!(
            why.contains("delta0 is 3, but must be between 0 and 2"),
            "{why}"
        );
    }
}
