//! Tests of TrustVI as published. Every step obeys its rules, and the method finds optima.

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Fit, Method, PaperTrustSettings, Settings, Subject, TrustSettings,
    fit,
};
use jensen_density::TwiceDifferentiable;
use jensen_run::{Budget, Control, Record};
use jensen_testkit::{CorrelatedGaussian, EightSchools, Scalar};

fn run(density: &impl TwiceDifferentiable, trust: TrustSettings) -> (Fit, Vec<Record>) {
    let settings = Settings {
        method: Method::PaperTrust(PaperTrustSettings::of(trust)),
        family: FamilyChoice::Only(FamilyKind::MeanField),
        ..Settings::default()
    };
    let clock = || 0.0;
    let mut records = Vec::new();
    let mut control = Control::new(Budget::iterations(10_000), &clock, &mut records);
    let fit = fit(density, &settings, &Subject::default(), &mut control).unwrap();
    (fit, records)
}

fn number(record: &Record, name: &str) -> f64 {
    record.fields[name].as_f64().unwrap()
}

fn follow(trust: &TrustSettings, records: &[Record]) -> [usize; 2] {
    let mut counts = [0, 0];
    for record in records {
        let (promised, radius) = (number(record, "predicted"), number(record, "radius"));
        let accepted = number(record, "accepted") == 1.0;
        counts[usize::from(accepted)] += 1;
        if accepted {
            let least = trust.eta * promised;
            assert!(number(record, "observed") >= least, "{record:?}");
            assert!(least >= trust.lambda * radius * radius, "{record:?}");
            let draws = number(record, "change_draws");
            assert!(draws >= number(record, "required_draws"), "{record:?}");
            assert!(draws >= 128.0);
        }
        assert!(number(record, "gradient_draws") >= 256.0);
    }
    for pair in records.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(|record| number(record, "radius"));
        let factor = match number(&pair[0], "accepted") == 1.0 {
            true => trust.gamma,
            false => 1.0 / trust.gamma,
        };
        assert_eq!(after, factor * before);
    }
    counts
}

#[test]
fn no_step_is_taken_that_the_algorithm_would_refuse() {
    let usual = TrustSettings::default();
    let strict = TrustSettings {
        eta: 0.5,
        lambda: 0.1,
        ..usual
    };
    let schools = Scalar(EightSchools { centred: false });
    let gaussian = CorrelatedGaussian::exchangeable(&[1.0, 4.0, 0.3], 0.5);
    let (mut refused, mut accepted) = (0, 0);
    for trust in [usual, strict] {
        for records in [run(&schools, trust).1, run(&gaussian, trust).1] {
            let [no, yes] = follow(&trust, &records);
            refused += no;
            accepted += yes;
        }
    }
    assert!(refused > 5 && accepted > 10, "{refused} {accepted}");
}

#[test]
fn it_finds_the_optimum_of_a_gaussian_from_the_origin() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 4.0, 0.3], 0.5);
    let (fit, records) = run(&density, TrustSettings::default());
    assert!(fit.converged(), "{}", fit.status);
    let short = density.mean_field_elbo() - fit.elbo();
    assert!(short < 0.02 + 4.0 * fit.elbo_se(), "{short}");
    // The run has no starts, so its first record is a step.
    assert!(records[0].fields.contains_key("radius"), "{:?}", records[0]);
}
