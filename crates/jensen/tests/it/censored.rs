//! Tests of likelihoods with `event=COLUMN` and `until=COLUMN`, whose times may be censored.

use jensen::data::{Cells, Column, Table};
use jensen::latent::{LatentRequest, LatentSummary, fit_latent_in_memory};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::{digamma, trigamma};

use crate::common::alone;

fn fitted(
    likelihood: &str,
    prior: &str,
    columns: &[(&str, &[f64])],
) -> Result<LatentSummary, jensen::Error> {
    let columns = columns
        .iter()
        .map(|(name, values)| Column::new((*name).to_owned(), Cells::Numbers(values.to_vec())));
    let table = Table::new("times", columns.collect()).unwrap();
    let request = LatentRequest {
        likelihood: Some(likelihood.to_owned()),
        prior: Some(prior.to_owned()),
        response: Some("time".to_owned()),
        ..LatentRequest::default()
    };
    alone(|around| fit_latent_in_memory(request, &table, around, |done| done.summary))
}

/// Times whose logarithm has the slope 0.8 on x, observed until a random end.
fn study(n: usize) -> [Vec<f64>; 3] {
    let mut stream = Stream::new(5, Purpose::new("censored"), 0, 0);
    let (mut x, mut time, mut event) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let own_x = 2.0 * stream.uniform() - 1.0;
        let own = -(1.0 + 0.8 * own_x).exp() * stream.uniform().ln();
        let end = 6.0 * stream.uniform() + 0.01;
        x.push(own_x);
        time.push(own.min(end));
        event.push(f64::from(u8::from(own <= end)));
    }
    [x, time, event]
}

/// With a flat prior of the log mean η of exponential times, the mean of a time has an inverse gamma distribution whose
/// shape is the number of events d and whose scale is the sum T of all times. The mean of η is log T − ψ(d), and its
/// variance is ψ′(d).
#[test]
fn a_level_has_its_exact_posterior_in_any_unit() {
    let [_, time, event] = study(300);
    let events: f64 = event.iter().sum();
    assert!(events > 100.0 && events < 250.0);
    for unit in [1.0, 365.0, 1e-6] {
        let time: Vec<f64> = time.iter().map(|t| unit * t).collect();
        let total: f64 = time.iter().sum();
        let (mean, sd) = (total.ln() - digamma(events), trigamma(events).sqrt());
        let own = "intercept(variance=1e6)";
        let found = fitted(
            "exponential(event=seen)",
            own,
            &[("seen", &event), ("time", &time)],
        );
        let found = found.unwrap();
        assert!(found.judgement.trusted, "{:?}", found.judgement);
        let level = &found.parameters[0];
        assert!(
            (level.mean - mean).abs() < 0.01 * sd,
            "{} {mean}",
            level.mean
        );
        assert!((level.sd / sd - 1.0).abs() < 0.01, "{} {sd}", level.sd);
    }
}

/// Without the events, times of censored rows count as events, and the slope is too small.
#[test]
fn slopes_are_those_of_all_times() {
    let [x, time, event] = study(1000);
    let columns: [(&str, &[f64]); 3] = [("x", &x), ("seen", &event), ("time", &time)];
    let prior = "intercept() + fixed(x)";
    let slope = |likelihood: &str| {
        let found = fitted(likelihood, prior, &columns).unwrap();
        assert!(
            found.judgement.trusted,
            "{likelihood} {:?}",
            found.judgement
        );
        let row = found.parameters.iter().find(|p| p.name == "fixed[x]");
        row.map(|p| (p.mean, p.sd)).unwrap()
    };
    for name in ["exponential", "weibull"] {
        let (mean, sd) = slope(&format!("{name}(event=seen)"));
        assert!(
            (mean - 0.8).abs() < 3.0 * sd && sd < 0.15,
            "{name} {mean} ± {sd}"
        );
        let (ignoring, _) = slope(name);
        assert!(ignoring < mean - 2.0 * sd, "{name} {ignoring} {mean}");
    }
    // The logarithms of exponential times are not normal, so only the direction of the difference is known.
    let (mean, sd) = slope("lognormal(event=seen)");
    assert!((mean - 0.8).abs() < 0.25, "lognormal {mean} ± {sd}");
}

#[test]
fn an_event_is_0_or_1() {
    let columns: [(&str, &[f64]); 2] = [("seen", &[1.0, 2.0, 0.0]), ("time", &[1.0, 2.0, 3.0])];
    let error = fitted("weibull(event=seen)", "intercept()", &columns);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("the event in row 2 is 2, but must be 1 (observed) or 0"),
        "{error}"
    );
    let error = fitted("gamma(event=seen)", "intercept()", &columns);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("there is no `gamma(event=COLUMN)`"),
        "{error}"
    );
}

/// Right-censored times are intervals without an end, in an empty cell or as an infinite number.
#[test]
fn intervals_contain_censored_times() {
    let [x, time, event] = study(200);
    let ends = |none: f64| -> Vec<f64> {
        let each = time.iter().zip(&event);
        each.map(|(t, seen)| if *seen > 0.0 { *t } else { none })
            .collect()
    };
    for name in ["exponential", "weibull", "lognormal"] {
        let prior = "intercept() + fixed(x)";
        let columns: [(&str, &[f64]); 3] = [("x", &x), ("seen", &event), ("time", &time)];
        let expected = fitted(&format!("{name}(event=seen)"), prior, &columns).unwrap();
        for none in [f64::NAN, f64::INFINITY] {
            let columns: [(&str, &[f64]); 3] = [("x", &x), ("end", &ends(none)), ("time", &time)];
            let found = fitted(&format!("{name}(until=end)"), prior, &columns).unwrap();
            assert!(found.judgement.trusted, "{name} {:?}", found.judgement);
            assert!(
                (found.bound - expected.bound).abs() < 1e-4,
                "{name} {} {}",
                found.bound,
                expected.bound
            );
            for (own, other) in found.parameters.iter().zip(&expected.parameters) {
                assert!((own.mean - other.mean).abs() < 1e-3 * other.sd, "{name}");
                assert!((own.sd / other.sd - 1.0).abs() < 1e-3, "{name}");
            }
        }
    }
}

#[test]
fn ends_are_after_starts() {
    for (ends, message) in [
        (
            [1.0, 1.5, 3.0],
            "the end of the interval in row 2 is 1.5, but must be at least the response",
        ),
        (
            [-1.0, 2.0, 3.0],
            "the end of the interval in row 1 is -1, but must be at least the response",
        ),
    ] {
        let columns: [(&str, &[f64]); 2] = [("end", &ends), ("time", &[1.0, 2.0, 3.0])];
        let error = fitted("weibull(until=end)", "intercept()", &columns);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let columns: [(&str, &[f64]); 2] = [("end", &[1.0, 2.0]), ("time", &[-1.0, 1.0])];
    let error = fitted("lognormal(until=end)", "intercept()", &columns);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("needs a number of at least 0"), "{error}");
}
