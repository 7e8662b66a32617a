//! Densities of integers.

use crate::distributions::formulas::Domain::{
    Finite, NonNegative, Positive, PositiveByFormula, Unit,
};
use crate::distributions::formulas::{Density, Univariate};
use crate::functions::special;
use crate::symbolic::functions::elementwise::{lbeta, multiply_log};
use crate::symbolic::tape::E;
use crate::value::error::{FnError, FnResult};

/// Name and formula.
pub const TABLE: &[(&str, Univariate)] = &[
    ("bernoulli_lpmf", bernoulli),
    ("bernoulli_logit_lpmf", |d| {
        let [y, eta] = d.get();
        outcomes(d, 1.0)?;
        d.check(
            1,
            "Logit transformed probability parameter",
            crate::distributions::formulas::Domain::NotNan,
        )?;
        bernoulli_logit(d, y, eta);
        Ok(())
    }),
    ("binomial_lpmf", binomial),
    ("binomial_logit_lpmf", |d| {
        let [y, n, eta] = d.get();
        successes(d)?;
        d.check(2, "Probability parameter", Finite)?;
        binomial_logit(d, y, n, eta);
        Ok(())
    }),
    ("beta_binomial_lpmf", beta_binomial),
    ("poisson_lpmf", poisson),
    ("poisson_log_lpmf", |d| {
        let [y, eta] = d.get();
        d.check(0, "Random variable", NonNegative)?;
        d.check(
            1,
            "Log rate parameter",
            crate::distributions::formulas::Domain::NotNan,
        )?;
        poisson_log(d, y, eta);
        Ok(())
    }),
    ("neg_binomial_lpmf", neg_binomial),
    ("neg_binomial_2_lpmf", neg_binomial_2),
    ("neg_binomial_2_log_lpmf", |d| {
        let [y, eta, phi] = d.get();
        d.check(0, "Failures variable", NonNegative)?;
        d.check(1, "Log location parameter", Finite)?;
        d.check(2, "Precision parameter", Positive)?;
        log_coefficient(d, y, phi, 2);
        neg_binomial_2_log(d, y, eta, phi);
        Ok(())
    }),
    ("beta_neg_binomial_lpmf", |d| {
        d.check(0, "Failures variable", NonNegative)?;
        d.check(1, "Number of successes parameter", Positive)?;
        d.check(2, "First prior shape parameter", Positive)?;
        d.check(3, "Second prior shape parameter", Positive)?;
        let [n, r, a, b] = d.get();
        log_factorial(d, n);
        d.term(
            &[1, 2, 3],
            (n + r).lgamma() - r.lgamma() + lbeta(n + b, r + a) - lbeta(a, b),
        );
        Ok(())
    }),
    ("yule_simon_lpmf", |d| {
        d.check(1, "Shape parameter", Positive)?;
        let [n, alpha] = d.get();
        let bad = n.lt(d.num(1.0));
        d.outside(bad);
        let above = alpha + 1.0;
        d.term(&[], n.lgamma());
        d.term(&[1], alpha.log() + above.lgamma() - (n + above).lgamma());
        Ok(())
    }),
    ("geometric_lpmf", |d| {
        let [y, theta] = d.get();
        d.check(0, "Outcome", NonNegative)?;
        d.check(1, "Success Probability Parameter", Unit)?;
        d.term(&[1], theta.log() + multiply_log(y, 1.0 - theta));
        Ok(())
    }),
    ("discrete_range_lpmf", |d| {
        let [y, low, high] = d.get();
        let outside = y.lt(low) + high.lt(y);
        d.outside(outside);
        d.term(&[1, 2], -(high - low + 1.0).log());
        Ok(())
    }),
    ("hypergeometric_lpmf", |d| {
        let [n, draws, a, b] = d.get();
        let choose = crate::symbolic::functions::elementwise::lchoose;
        d.term(
            &[],
            choose(a, n) + choose(b, draws - n) - choose(a + b, draws),
        );
        Ok(())
    }),
];

/// The outcomes as known numbers: integers never depend on parameters.
fn known(d: &Density<'_>, i: usize) -> FnResult<Vec<f64>> {
    d.args[i].e.data().ok_or_else(|| {
        FnError::unsupported(format!(
            "{}: an integer argument that depends on parameters is not supported yet",
            d.name
        ))
    })
}

fn outcomes(d: &Density<'_>, most: f64) -> FnResult<Vec<f64>> {
    let y = known(d, 0)?;
    let visited = d.args[0].e.visited().unwrap_or_default();
    match visited.iter().find(|(_, y)| !(0.0..=most).contains(y)) {
        None => Ok(y),
        Some((_, bad)) => Err(FnError::domain(format!(
            "{}: n is {bad}, but must be in the interval [0, {most}]",
            d.name
        ))),
    }
}

fn successes(d: &Density<'_>) -> FnResult<(Vec<f64>, Vec<f64>)> {
    let (y, n) = (known(d, 0)?, known(d, 1)?);
    let at = |x: &[f64], i: usize| if x.len() == 1 { x[0] } else { x[i] };
    let taken = d.tape.comes_by();
    for i in 0..y.len().max(n.len()) {
        if taken.as_ref().is_some_and(|taken| at(taken, i) == 0.0) {
            continue;
        }
        let (y, n) = (at(&y, i), at(&n, i));
        if n < 0.0 {
            return Err(FnError::domain(format!(
                "{}: Population size parameter is {n}, but must be nonnegative!",
                d.name
            )));
        }
        if !(0.0..=n).contains(&y) {
            return Err(FnError::domain(format!(
                "{}: Successes variable is {y}, but must be in the interval [0, {n}]",
                d.name
            )));
        }
    }
    Ok((y, n))
}

fn bernoulli(d: &mut Density<'_>) -> FnResult<()> {
    let values = outcomes(d, 1.0)?;
    d.check(1, "Probability parameter", Unit)?;
    let [y, theta] = d.get();
    if let Some(eta) = theta.inv_logit_argument() {
        bernoulli_logit(d, y, eta);
        return Ok(());
    }
    if theta.len() == 1 && d.n > 1 {
        let ones = if y.len() == 1 {
            values[0] * d.n as f64
        } else {
            values.iter().sum()
        };
        let zeros = d.n as f64 - ones;
        d.n = 1;
        d.term(&[1], ones * theta.log() + zeros * theta.log1m());
        return Ok(());
    }
    // The probability of what was seen, exactly θ or 1 − θ: one logarithm.
    let p = (1.0 - y) + (2.0 * y - 1.0) * theta;
    d.term(&[1], p.log());
    Ok(())
}

/// −log(1 + exp(∓η))
pub fn bernoulli_logit<'g>(d: &mut Density<'g>, y: E<'g>, eta: E<'g>) {
    if eta.len() == 1
        && d.n > 1
        && let Some(values) = y.values()
    {
        let ones = if y.len() == 1 {
            values[0] * d.n as f64
        } else {
            values.iter().sum()
        };
        let zeros = d.n as f64 - ones;
        d.n = 1;
        d.term(&[1], -(ones * (-eta).log1p_exp() + zeros * eta.log1p_exp()));
        return;
    }
    d.term(&[1], -((1.0 - 2.0 * y) * eta).log1p_exp());
}

fn log_choose(d: &mut Density<'_>, y: &[f64], n: &[f64], records: bool) {
    let at = |x: &[f64], i: usize| if x.len() == 1 { x[0] } else { x[i] };
    let each: Vec<f64> = (0..y.len().max(n.len()))
        .map(|i| special::lchoose(at(n, i), at(y, i)))
        .collect();
    let constant = d.tape.known(&each, records);
    d.term(&[], constant);
}

fn binomial(d: &mut Density<'_>) -> FnResult<()> {
    let (known_y, known_n) = successes(d)?;
    d.check(2, "Probability parameter", Unit)?;
    let [y, n, theta] = d.get();
    if let Some(eta) = theta.inv_logit_argument() {
        binomial_logit(d, y, n, eta);
        return Ok(());
    }
    log_choose(d, &known_y, &known_n, y.is_record() || n.is_record());
    d.term(&[2], multiply_log(y, theta));
    let rest = n - y;
    let log1m = rest * theta.log1m();
    let zero = d.num(0.0);
    let safe = match rest.data() {
        // Where nothing failed, θ = 1 is fine.
        Some(values) if values.len() > 1 && values.contains(&0.0) => {
            rest.eq(zero).select(zero, log1m)
        }
        _ => log1m,
    };
    d.term(&[2], safe);
    Ok(())
}

/// y η − n log(1 + exp η) and the binomial coefficient.
pub fn binomial_logit<'g>(d: &mut Density<'g>, y: E<'g>, n: E<'g>, eta: E<'g>) {
    let records = y.is_record() || n.is_record();
    if let (Some(y), Some(n)) = (y.data(), n.data()) {
        log_choose(d, &y, &n, records);
    }
    d.term(&[2], y * eta);
    d.term(&[2], -(n * eta.log1p_exp()));
}

fn beta_binomial(d: &mut Density<'_>) -> FnResult<()> {
    let (known_y, known_n) = successes(d)?;
    d.check(2, "First prior sample size parameter", Positive)?;
    d.check(3, "Second prior sample size parameter", Positive)?;
    let [y, n, a, b] = d.get();
    log_choose(d, &known_y, &known_n, y.is_record() || n.is_record());
    d.term(&[2, 3], lbeta(y + a, n - y + b));
    d.term(&[2, 3], -lbeta(a, b));
    Ok(())
}

/// −log y!
pub fn log_factorial(d: &mut Density<'_>, y: E<'_>) {
    if let Some(values) = y.data() {
        let each: Vec<f64> = values.iter().map(|y| -special::lgamma(y + 1.0)).collect();
        let constant = d.tape.known(&each, y.is_record());
        d.term(&[], constant);
    }
}

fn poisson(d: &mut Density<'_>) -> FnResult<()> {
    known(d, 0)?;
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Rate parameter", NonNegative)?;
    let [y, lambda] = d.get();
    log_factorial(d, y);
    d.term(&[1], multiply_log(y, lambda));
    d.term(&[1], -lambda);
    Ok(())
}

/// y η − exp η − log y!
pub fn poisson_log<'g>(d: &mut Density<'g>, y: E<'g>, eta: E<'g>) {
    log_factorial(d, y);
    d.term(&[1], y * eta);
    d.term(&[1], -eta.exp());
}

/// log (y + φ − 1 choose y); as a whole a term of φ, argument `at`.
fn log_coefficient<'g>(d: &mut Density<'g>, y: E<'g>, phi: E<'g>, at: usize) {
    d.term(&[at], (y + phi).lgamma() - (y + 1.0).lgamma());
    d.term(&[at], -phi.lgamma());
}

fn neg_binomial(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Failures variable", NonNegative)?;
    d.check(1, "Shape parameter", Positive)?;
    d.check(2, "Inverse scale parameter", Positive)?;
    let [y, alpha, beta] = d.get();
    log_coefficient(d, y, alpha, 1);
    d.term(&[1, 2], -(alpha * beta.recip().log1p()));
    d.term(&[1, 2], -(y * beta.log1p()));
    Ok(())
}

fn neg_binomial_2(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Failures variable", NonNegative)?;
    d.check(1, "Location parameter", PositiveByFormula)?;
    d.check(2, "Precision parameter", Positive)?;
    let [y, mu, phi] = d.get();
    log_coefficient(d, y, phi, 2);
    d.term(&[1], multiply_log(y, mu));
    d.term(&[1, 2], -(phi * (mu / phi).log1p()));
    d.term(&[1, 2], -(y * (mu + phi).log()));
    Ok(())
}

/// The negative binomial with log mean η and precision φ, without the binomial coefficient.
pub fn neg_binomial_2_log<'g>(d: &mut Density<'g>, y: E<'g>, eta: E<'g>, phi: E<'g>) {
    let precision = d.args.len() - 1;
    let location: Vec<usize> = (1..precision).collect();
    let all: Vec<usize> = (1..=precision).collect();
    // log(μ + φ) = log φ + log(1 + exp(η − log φ))
    let log_phi = phi.log();
    let excess = (eta - log_phi).log1p_exp();
    d.term(&location, y * eta);
    d.term(&all, -((y + phi) * excess));
    d.term(&all, -(y * log_phi));
}
