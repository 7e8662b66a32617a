//! The table of families.

use super::functions as stan;
use super::{Family, Link, Parameter, Response};

/// The scale of a response. For parameters without a formula, the priors in this file are those of brms 2.22 (function
/// `def_dpar_prior`), with two exceptions. Scales of the response have exponential priors, as described in rstanarm's
/// vignette on priors. Shapes have another prior if gamma(0.01, 0.01) would concentrate near zero.
const SIGMA: Parameter = Parameter {
    name: "sigma",
    link: Link::Log,
    bounds: "<lower=0>",
    prior: "",
    fixed: None,
};

const SHAPE: Parameter = Parameter {
    name: "shape",
    prior: "gamma(0.01, 0.01)",
    ..SIGMA
};

/// The dispersion of counts. Its inverse is a variance (as in brms since 2.19).
const DISPERSION: Parameter = Parameter {
    prior: "inv_gamma(0.4, 0.3)",
    ..SHAPE
};

const PHI: Parameter = Parameter {
    name: "phi",
    ..SHAPE
};

const NU: Parameter = Parameter {
    name: "nu",
    bounds: "<lower=1>",
    prior: "gamma(2, 0.1)",
    ..SIGMA
};

const NDT: Parameter = Parameter {
    name: "ndt",
    bounds: "<lower=0, upper=min_y>",
    prior: "uniform(0, min_y)",
    ..SIGMA
};

const SHARE: Parameter = Parameter {
    name: "zi",
    link: Link::Logit,
    bounds: "<lower=0, upper=1>",
    prior: "beta(1, 1)",
    fixed: None,
};

const HURDLE: Parameter = Parameter {
    name: "hu",
    ..SHARE
};

const IDENTITY: &[Link] = &[Link::Identity, Link::Log, Link::Inverse];
const LOG: &[Link] = &[Link::Log, Link::Identity, Link::Inverse];
const COUNTS: &[Link] = &[Link::Log, Link::Identity, Link::Sqrt];
const SHARES: &[Link] = &[Link::Logit, Link::Probit, Link::Cloglog, Link::Identity];
const LOGIT: &[Link] = &[Link::Logit];

const USUAL: Family = Family {
    name: "",
    response: Response::Real,
    links: IDENTITY,
    parameters: &[],
    density: ("", ""),
    fused: None,
    mean: "{mu}",
    functions: "",
    parts: &[],
};

/// All families.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "gaussian",
        parameters: &[SIGMA],
        density: ("normal", "{mu}, {sigma}"),
        ..USUAL
    },
    Family {
        name: "student",
        parameters: &[SIGMA, NU],
        density: ("student_t", "{nu}, {mu}, {sigma}"),
        ..USUAL
    },
    Family {
        name: "skew_normal",
        parameters: &[
            SIGMA,
            Parameter {
                name: "alpha",
                link: Link::Identity,
                bounds: "",
                prior: "normal(0, 4)",
                fixed: None,
            },
        ],
        density: ("skew_normal_mean", "{mu}, {sigma}, {alpha}"),
        functions: stan::SKEW_NORMAL,
        ..USUAL
    },
    Family {
        name: "exgaussian",
        parameters: &[
            SIGMA,
            Parameter {
                name: "beta",
                ..SIGMA
            },
        ],
        density: ("exp_mod_normal", "{mu} - {beta}, {sigma}, inv({beta})"),
        ..USUAL
    },
    Family {
        name: "asym_laplace",
        parameters: &[
            SIGMA,
            Parameter {
                name: "quantile",
                link: Link::Logit,
                bounds: "<lower=0, upper=1>",
                prior: "beta(1, 1)",
                fixed: Some(0.5),
            },
        ],
        // Stan's scale parameter is twice the scale of quantile regression.
        density: ("skew_double_exponential", "{mu}, 2 * {sigma}, {quantile}"),
        mean: "{mu} + {sigma} {*} (1 - 2 * {quantile}) {/} ({quantile} {*} (1 - {quantile}))",
        ..USUAL
    },
    Family {
        name: "gen_extreme_value",
        parameters: &[
            SIGMA,
            // The mean is infinite for shapes of at least 1, and likelihoods have no regular maximum for shapes below
            // −1/2 (Smith, Biometrika 72, 1985). The shapes of floods, rains and winds are mostly within 0.3 of 0
            // (Martins and Stedinger, Water Resources Research 36, 2000).
            Parameter {
                name: "xi",
                link: Link::Identity,
                bounds: "<lower=-0.5, upper=1>",
                prior: "normal(0, 0.25)",
                fixed: None,
            },
        ],
        density: ("gen_extreme_value", "{mu}, {sigma}, {xi}"),
        mean: "{mu} + {sigma} {*} (tgamma(1 - {xi}) - 1) {/} {xi}",
        functions: stan::GEN_EXTREME_VALUE,
        ..USUAL
    },
    Family {
        name: "von_mises",
        response: Response::Angle,
        links: &[Link::TanHalf, Link::Identity],
        parameters: &[Parameter {
            name: "kappa",
            prior: "gamma(2, 0.01)",
            ..SHAPE
        }],
        density: ("von_mises", "{mu}, {kappa}"),
        ..USUAL
    },
    Family {
        name: "lognormal",
        response: Response::Positive,
        links: &[Link::Identity],
        parameters: &[Parameter {
            prior: "student_t(3, 0, 2.5)",
            ..SIGMA
        }],
        density: ("lognormal", "{mu}, {sigma}"),
        mean: "exp({mu} + square({sigma}) / 2)",
        ..USUAL
    },
    Family {
        name: "shifted_lognormal",
        response: Response::Positive,
        links: &[Link::Identity],
        parameters: &[
            Parameter {
                prior: "student_t(3, 0, 2.5)",
                ..SIGMA
            },
            NDT,
        ],
        density: ("shifted_lognormal", "{mu}, {sigma}, {ndt}"),
        mean: "{ndt} + exp({mu} + square({sigma}) / 2)",
        functions: stan::SHIFTED_LOGNORMAL,
        ..USUAL
    },
    Family {
        name: "gamma",
        response: Response::Positive,
        links: LOG,
        parameters: &[SHAPE],
        density: ("gamma", "{shape}, {shape} {/} {mu}"),
        ..USUAL
    },
    Family {
        name: "inverse.gaussian",
        response: Response::Positive,
        links: LOG,
        parameters: &[SHAPE],
        density: ("inverse_gaussian", "{mu}, {shape}"),
        functions: stan::INVERSE_GAUSSIAN,
        ..USUAL
    },
    Family {
        name: "exponential",
        response: Response::Positive,
        links: LOG,
        density: ("exponential", "inv({mu})"),
        ..USUAL
    },
    Family {
        name: "weibull",
        response: Response::Positive,
        links: LOG,
        parameters: &[SHAPE],
        density: ("weibull", "{shape}, {mu} {/} tgamma(1 + inv({shape}))"),
        ..USUAL
    },
    Family {
        name: "cox",
        response: Response::Positive,
        links: &[Link::Log],
        density: ("cox", "{mu}, bhaz[n], cbhaz[n]"),
        functions: stan::COX,
        ..USUAL
    },
    Family {
        name: "wiener",
        response: Response::Positive,
        links: &[Link::Identity],
        parameters: &[
            Parameter {
                name: "bs",
                prior: "gamma(1, 1)",
                ..SIGMA
            },
            NDT,
            Parameter {
                name: "bias",
                ..SHARE
            },
        ],
        density: ("wiener_diffusion", "{dec}, {mu}, {bs}, {ndt}, {bias}"),
        mean: "{ndt} + {bs} {*} (expm1(-2 * {mu} {*} {bias} {*} {bs}) {/} expm1(-2 * {mu} {*} {bs}) - {bias}) {/} {mu}",
        functions: stan::WIENER,
        ..USUAL
    },
    Family {
        name: "beta",
        response: Response::Share,
        links: SHARES,
        parameters: &[PHI],
        density: ("beta_proportion", "{mu}, {phi}"),
        ..USUAL
    },
    Family {
        name: "zero_inflated_beta",
        response: Response::ShareWithEnds { one: false },
        links: SHARES,
        parameters: &[PHI, SHARE],
        density: ("zero_inflated_beta", "{mu}, {phi}, {zi}"),
        mean: "(1 - {zi}) {*} {mu}",
        functions: stan::ZERO_INFLATED_BETA,
        ..USUAL
    },
    Family {
        name: "zero_one_inflated_beta",
        response: Response::ShareWithEnds { one: true },
        links: SHARES,
        parameters: &[
            PHI,
            Parameter {
                name: "zoi",
                ..SHARE
            },
            Parameter {
                name: "coi",
                ..SHARE
            },
        ],
        density: ("zero_one_inflated_beta", "{mu}, {phi}, {zoi}, {coi}"),
        mean: "{zoi} {*} {coi} + (1 - {zoi}) {*} {mu}",
        functions: stan::ZERO_ONE_INFLATED_BETA,
        ..USUAL
    },
    Family {
        name: "bernoulli",
        response: Response::Binary,
        links: SHARES,
        density: ("bernoulli", "{mu}"),
        fused: Some((Link::Logit, "bernoulli_logit", "{eta}")),
        ..USUAL
    },
    Family {
        name: "binomial",
        response: Response::Trials,
        links: SHARES,
        density: ("binomial", "{trials}, {mu}"),
        fused: Some((Link::Logit, "binomial_logit", "{trials}, {eta}")),
        mean: "{trials} {*} {mu}",
        ..USUAL
    },
    Family {
        name: "beta_binomial",
        response: Response::Trials,
        links: SHARES,
        parameters: &[PHI],
        density: (
            "beta_binomial",
            "{trials}, {mu} {*} {phi}, (1 - {mu}) {*} {phi}",
        ),
        mean: "{trials} {*} {mu}",
        ..USUAL
    },
    Family {
        name: "zero_inflated_binomial",
        response: Response::Trials,
        links: SHARES,
        parameters: &[SHARE],
        density: ("zero_inflated_binomial", "{trials}, {mu}, {zi}"),
        mean: "{trials} {*} (1 - {zi}) {*} {mu}",
        functions: stan::ZERO_INFLATED_BINOMIAL,
        ..USUAL
    },
    Family {
        name: "poisson",
        response: Response::Count,
        links: COUNTS,
        density: ("poisson", "{mu}"),
        fused: Some((Link::Log, "poisson_log", "{eta}")),
        ..USUAL
    },
    Family {
        name: "negbinomial",
        response: Response::Count,
        links: COUNTS,
        parameters: &[DISPERSION],
        density: ("neg_binomial_2", "{mu}, {shape}"),
        fused: Some((Link::Log, "neg_binomial_2_log", "{eta}, {shape}")),
        ..USUAL
    },
    Family {
        name: "geometric",
        response: Response::Count,
        links: COUNTS,
        density: ("neg_binomial_2", "{mu}, 1"),
        fused: Some((Link::Log, "neg_binomial_2_log", "{eta}, 1")),
        ..USUAL
    },
    Family {
        name: "zero_inflated_poisson",
        response: Response::Count,
        links: COUNTS,
        parameters: &[SHARE],
        density: ("zero_inflated_poisson", "{mu}, {zi}"),
        mean: "(1 - {zi}) {*} {mu}",
        functions: stan::ZERO_INFLATED_POISSON,
        ..USUAL
    },
    Family {
        name: "zero_inflated_negbinomial",
        response: Response::Count,
        links: COUNTS,
        parameters: &[DISPERSION, SHARE],
        density: ("zero_inflated_negbinomial", "{mu}, {shape}, {zi}"),
        mean: "(1 - {zi}) {*} {mu}",
        functions: stan::ZERO_INFLATED_NEGBINOMIAL,
        ..USUAL
    },
    Family {
        name: "hurdle_poisson",
        response: Response::Count,
        links: COUNTS,
        parameters: &[HURDLE],
        density: ("hurdle_poisson", "{mu}, {hu}"),
        mean: "(1 - {hu}) {*} {mu} {/} -expm1(-{mu})",
        functions: stan::HURDLE_POISSON,
        ..USUAL
    },
    Family {
        name: "hurdle_negbinomial",
        response: Response::Count,
        links: COUNTS,
        parameters: &[DISPERSION, HURDLE],
        density: ("hurdle_negbinomial", "{mu}, {shape}, {hu}"),
        mean: "(1 - {hu}) {*} {mu} {/} (1 - exp({shape} {*} (log({shape}) - log({mu} + {shape}))))",
        functions: stan::HURDLE_NEGBINOMIAL,
        ..USUAL
    },
    Family {
        name: "hurdle_gamma",
        response: Response::NotNegative,
        links: LOG,
        parameters: &[SHAPE, HURDLE],
        density: ("hurdle_gamma", "{mu}, {shape}, {hu}"),
        mean: "(1 - {hu}) {*} {mu}",
        functions: stan::HURDLE_GAMMA,
        ..USUAL
    },
    Family {
        name: "hurdle_lognormal",
        response: Response::NotNegative,
        links: &[Link::Identity],
        parameters: &[
            Parameter {
                prior: "student_t(3, 0, 2.5)",
                ..SIGMA
            },
            HURDLE,
        ],
        density: ("hurdle_lognormal", "{mu}, {sigma}, {hu}"),
        mean: "(1 - {hu}) {*} exp({mu} + square({sigma}) / 2)",
        functions: stan::HURDLE_LOGNORMAL,
        ..USUAL
    },
    Family {
        name: "cumulative",
        response: Response::Ordinal,
        links: &[Link::Logit, Link::Probit],
        density: ("ordered_probit", "{eta}, {thresholds}"),
        fused: Some((Link::Logit, "ordered_logistic", "{eta}, {thresholds}")),
        ..USUAL
    },
    Family {
        name: "sratio",
        response: Response::Ordinal,
        links: LOGIT,
        density: ("sratio", "{eta}, {thresholds}"),
        functions: stan::SRATIO,
        ..USUAL
    },
    Family {
        name: "cratio",
        response: Response::Ordinal,
        links: LOGIT,
        density: ("cratio", "{eta}, {thresholds}"),
        functions: stan::CRATIO,
        ..USUAL
    },
    Family {
        name: "acat",
        response: Response::Ordinal,
        links: LOGIT,
        density: ("acat", "{eta}, {thresholds}"),
        functions: stan::ACAT,
        ..USUAL
    },
    Family {
        name: "categorical",
        response: Response::Nominal,
        links: LOGIT,
        density: ("categorical_logit", "{logits}"),
        ..USUAL
    },
    Family {
        name: "multinomial",
        response: Response::Counts,
        links: LOGIT,
        density: ("multinomial_logit", "{logits}"),
        ..USUAL
    },
    Family {
        name: "dirichlet",
        response: Response::Shares,
        links: LOGIT,
        parameters: &[PHI],
        density: ("dirichlet", "{phi} * softmax({logits})"),
        ..USUAL
    },
    Family {
        name: "multi_normal",
        response: Response::Several,
        links: &[Link::Identity],
        density: (
            "multi_normal_cholesky",
            "{means}, diag_pre_multiply(sigma, L_residual)",
        ),
        ..USUAL
    },
];
