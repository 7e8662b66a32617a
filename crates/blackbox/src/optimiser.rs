//! First-order optimisers, which convert a gradient of the ELBO into an ascent step.

use std::fmt;
use std::str::FromStr;

use jensen_math::simd::Simd;
use jensen_run::{Archive, ArchiveError, SettingError, Snapshot};
use serde::{Deserialize, Serialize};

/// The schedule by which the step size changes over the iterations t = 1, 2, ….
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// A constant step size.
    Constant,
    /// The factor `(1 + t/delay)^(−power)`. The Robbins-Monro conditions require a power in (½, 1].
    Power {
        /// The number of iterations before the step size decays noticeably.
        delay: f64,
        /// The exponent of the decay.
        power: f64,
    },
}

impl Schedule {
    /// Returns the factor by which the step size is multiplied at iteration t.
    pub fn factor(self, t: u64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Power { delay, power } => (1.0 + t as f64 / delay).powf(-power),
        }
    }
}

/// The update rule of an optimiser, with its constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Stochastic gradient ascent with the step `ω += γ g`.
    Sgd,
    /// Adam with bias correction (Kingma and Ba 2015).
    Adam {
        /// The decay rate of the mean of the gradients.
        beta1: f64,
        /// The decay rate of the mean of the squared gradients.
        beta2: f64,
        /// The number added to the square root.
        epsilon: f64,
    },
    /// Adagrad, which divides the gradient by the root of the sum of its squares (Duchi, Hazan and Singer 2011).
    Adagrad {
        /// The number added to the square root.
        epsilon: f64,
    },
    /// RMSProp, which divides the gradient by the root of a decaying mean of its squares (Tieleman and Hinton 2012).
    RmsProp {
        /// The decay rate of the mean of the squared gradients.
        decay: f64,
        /// The number added to the square root.
        epsilon: f64,
    },
}

impl Rule {
    /// Returns Adam with the constants of the original paper.
    pub const fn adam() -> Self {
        Self::Adam {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        }
    }

    /// Returns the default step size of this rule for variational inference.
    pub fn default_step_size(self) -> f64 {
        match self {
            Self::Sgd => 1e-3,
            Self::Adam { .. } => 0.02,
            Self::Adagrad { .. } => 0.1,
            Self::RmsProp { .. } => 0.01,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sgd => "sgd",
            Self::Adam { .. } => "adam",
            Self::Adagrad { .. } => "adagrad",
            Self::RmsProp { .. } => "rmsprop",
        })
    }
}

impl FromStr for Rule {
    type Err = SettingError;

    /// Parses the name of a rule and returns the rule with its default constants.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text {
            "sgd" => Ok(Self::Sgd),
            "adam" => Ok(Self::adam()),
            "adagrad" => Ok(Self::Adagrad { epsilon: 1e-8 }),
            "rmsprop" => Ok(Self::RmsProp {
                decay: 0.9,
                epsilon: 1e-8,
            }),
            _ => Err(SettingError::new(format!(
                "unknown optimiser `{text}`; expected sgd, adam, adagrad or rmsprop"
            ))),
        }
    }
}

/// The settings of an optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimiser {
    /// The update rule.
    pub rule: Rule,
    /// The step size γ, before the schedule is applied.
    pub step_size: f64,
    /// The schedule of the step size.
    pub schedule: Schedule,
}

impl From<Rule> for Optimiser {
    /// Returns an optimiser with this rule. The step size is constant and equals the rule's default.
    fn from(rule: Rule) -> Self {
        Self {
            rule,
            step_size: rule.default_step_size(),
            schedule: Schedule::Constant,
        }
    }
}

/// The moments and counters that an optimiser stores between steps.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimiserState {
    /// The number of iterations so far.
    pub t: u64,
    mean: Vec<f64>,
    square: Vec<f64>,
}

impl OptimiserState {
    /// Creates the initial state for `n` parameters.
    pub fn new(n: usize) -> Self {
        Self {
            t: 0,
            mean: vec![0.0; n],
            square: vec![0.0; n],
        }
    }
}

impl Optimiser {
    /// Moves `omega` in the direction that increases the objective, given its `gradient`. `scale` multiplies the step
    /// size of the schedule.
    pub fn step(
        &self,
        state: &mut OptimiserState,
        gradient: &[f64],
        scale: f64,
        omega: &mut [f64],
    ) {
        state.t += 1;
        let gamma = scale * self.step_size * self.schedule.factor(state.t);
        let t = i32::try_from(state.t).unwrap_or(i32::MAX);
        move_parameters(
            Simd::detect(),
            (self.rule, gamma, t),
            gradient,
            state,
            omega,
        );
    }
}

jensen_math::simd_fn! {
    /// Computes `omega += gamma · direction`. The bias correction depends on the iteration t. Each rule has its own
    /// loop, which the compiler vectorises. The loops use no fused operations, so all SIMD levels give the same bits.
    fn move_parameters, move_parameters_fn = <V>(rule: (Rule, f64, i32), gradient: &[f64], state: &mut OptimiserState, omega: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        let (rule, gamma, t) = rule;
        let moments = state.mean.iter_mut().zip(&mut state.square);
        let all = omega.iter_mut().zip(gradient).zip(moments);
        match rule {
            Rule::Sgd => {
                for (w, g) in omega.iter_mut().zip(gradient) {
                    *w += gamma * g;
                }
            }
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
            } => {
                // Computes m / bias₁ / (√(v / bias₂) + ε) with a single division.
                let root = (1.0 - beta2.powi(t)).sqrt();
                let rate = gamma * root / (1.0 - beta1.powi(t));
                let epsilon = epsilon * root;
                for ((w, &g), (m, v)) in all {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w += rate * *m / (v.sqrt() + epsilon);
                }
            }
            Rule::Adagrad { epsilon } => {
                for ((w, &g), (_, v)) in all {
                    *v += g * g;
                    *w += gamma * (g / (v.sqrt() + epsilon));
                }
            }
            Rule::RmsProp { decay, epsilon } => {
                for ((w, &g), (_, v)) in all {
                    *v = decay * *v + (1.0 - decay) * g * g;
                    *w += gamma * (g / (v.sqrt() + epsilon));
                }
            }
        }
    }
}

impl Snapshot for OptimiserState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("t", self.t);
        archive.put("mean", &self.mean);
        archive.put("square", &self.square);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let mean = archive.vec("mean")?;
        Ok(Self {
            t: archive.get("t")?,
            square: archive.vec_of("square", mean.len())?,
            mean,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn optimiser(name: &str, step_size: f64) -> Optimiser {
        Optimiser {
            rule: name.parse().unwrap(),
            step_size,
            schedule: Schedule::Constant,
        }
    }

    #[test]
    fn first_steps_by_hand() {
        // For any gradient, the first step of Adam and of Adagrad has the length of the step size. The first step of
        // RMSProp is 1/√0.1 times as long.
        for (name, factor) in [("adam", 1.0), ("adagrad", 1.0), ("rmsprop", 10f64.sqrt())] {
            let mut omega = [1.0, 1.0];
            let mut state = OptimiserState::new(2);
            optimiser(name, 0.1).step(&mut state, &[5.0, -0.2], 1.0, &mut omega);
            assert!((omega[0] - 1.0 - 0.1 * factor).abs() < 1e-6, "{name}");
            assert!((omega[1] - 1.0 + 0.1 * factor).abs() < 1e-6, "{name}");
        }
        let mut omega = [0.0];
        optimiser("sgd", 0.5).step(&mut OptimiserState::new(1), &[3.0], 0.5, &mut omega);
        assert_eq!(omega, [0.75]);
    }

    #[test]
    fn every_rule_climbs_a_hill() {
        for (name, step_size) in [
            ("sgd", 0.1),
            ("adam", 0.05),
            ("adagrad", 0.5),
            ("rmsprop", 0.01),
        ] {
            let mut omega = [3.0, -2.0];
            let mut state = OptimiserState::new(2);
            let optimiser = optimiser(name, step_size);
            for _ in 0..3000 {
                let gradient = [-omega[0], -4.0 * omega[1]];
                optimiser.step(&mut state, &gradient, 1.0, &mut omega);
            }
            assert!(omega.iter().all(|w| w.abs() < 0.02), "{name} {omega:?}");
        }
    }

    #[test]
    fn schedules_fall() {
        let schedule = Schedule::Power {
            delay: 10.0,
            power: 0.5,
        };
        assert_eq!(schedule.factor(30), 0.5);
        assert_eq!(Schedule::Constant.factor(1000), 1.0);
    }
}
