//! Tests of a user-defined family. It must be fitted, checked, refined, stored and resumed in the same way as the
//! families of Jensen.

use std::sync::Arc;

use jensen::Approximation;
use jensen::blackbox::RefineWhen;
use jensen::family::{FamilyName, Smoothness, check_family};
use jensen::prelude::*;
use jensen::run::Checkpoint;

#[allow(dead_code, reason = "its `main` is for readers")]
#[path = "../../examples/student_t.rs"]
mod student_t;

use student_t::{StudentT, regression};

const STUDENT_T: StudentT = StudentT { dim: 2, freedom: 4 };

/// The same family without its second-order maps. If `pull` is not 1, the derivative with respect to the scales is
/// wrong.
#[derive(Debug)]
struct FirstOrder {
    pull: f64,
}

impl Family for FirstOrder {
    fn name(&self) -> FamilyName {
        FamilyName::own("first_order")
    }
    fn dim(&self) -> usize {
        STUDENT_T.dim
    }
    fn noise_dim(&self) -> usize {
        STUDENT_T.noise_dim()
    }
    fn parameters(&self) -> usize {
        STUDENT_T.parameters()
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        STUDENT_T.diagonal(mean, log_sd)
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>) {
        STUDENT_T.transform(omega, noise, z);
    }
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        STUDENT_T.pull(omega, noise, grad, out);
        out[2..].iter_mut().for_each(|x| *x *= self.pull);
    }
    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        STUDENT_T.log_density_at(omega, z, out);
    }
    fn score(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: LanesMut<'_>) {
        STUDENT_T.score(omega, noise, z, out);
    }
}

fn fitted(family: impl Into<FamilyChoice>) -> Fitted {
    fit(&regression().0, &Options::default().family(family)).unwrap()
}

#[test]
fn a_student_t_posterior_is_trusted_of_its_own_family_alone() {
    let (_, log_evidence) = regression();
    assert_eq!(STUDENT_T.smoothness(), Smoothness::Twice);
    let student = fitted(STUDENT_T);
    let stochastic = fitted(FirstOrder { pull: 1.0 });
    for own in [&student, &stochastic] {
        assert!(own.trusted(), "{:?}", own.warnings());
        let evaluation = &own.fit.best().evaluation;
        assert!(evaluation.khat < 0.5, "{evaluation:?}");
        let errors = [evaluation.elbo, evaluation.importance_bound];
        for estimate in errors {
            assert!((estimate.mean - log_evidence).abs() < 0.01, "{estimate:?}");
        }
        // The slope by least squares is (−0.3 + 2.1 + 0.4 + 1.6 − 0.8 + 3.2)/6, with a standard error of 0.013.
        let slope = own.parameter("slope").unwrap();
        assert!((slope.mean - 1.0333).abs() < 0.05, "{slope:?}");
        assert_eq!(own.draws("slope").unwrap().len(), 1000);
    }
    assert_eq!(student.fit.best().family.to_string(), "student_t=4");

    let normal = fitted(FamilyKind::FullRank);
    assert!(!normal.trusted());
    let evaluation = &normal.fit.best().evaluation;
    assert!(!evaluation.is_good(&normal.fit.policy), "{evaluation:?}");
}

#[test]
fn a_wrong_map_is_found() {
    check_family(&STUDENT_T).unwrap();
    check_family(&FirstOrder { pull: 1.0 }).unwrap();
    let fault = check_family(&FirstOrder { pull: -1.0 }).unwrap_err();
    assert_eq!((fault.map, fault.index), ("pull", 2));
    let text = fault.to_string();
    assert!(text.contains("`first_order`: pull is"), "{text}");
}

#[test]
fn its_refinement_has_the_evidence_and_the_density_of_the_family() {
    let (problem, log_evidence) = regression();
    let options = Options::default().refine(RefineWhen::Always);
    let fitted = fit(&problem, &options.family(STUDENT_T)).unwrap();
    assert!(fitted.trusted(), "{:?}", fitted.warnings());
    let refined = fitted.fit.refined.as_ref().unwrap();
    let found = refined.log_evidence;
    let error = (found.mean - log_evidence).abs();
    assert!(error < 0.02 + 4.0 * found.standard_error, "{found:?}");
    let mut log_q = vec![0.0; refined.draws.count];
    STUDENT_T.log_density_at(
        fitted.approximation().omega(),
        refined.draws.lanes(),
        &mut log_q,
    );
    assert_eq!(refined.draws.log_q, log_q);
}

#[test]
fn a_stored_approximation_is_read_with_its_family_alone() {
    let fitted = fitted(STUDENT_T);
    let bytes = fitted.encode_approximation();
    let (read, _) = Approximation::decode_as(&bytes, Arc::new(STUDENT_T)).unwrap();
    assert_eq!(read.omega(), fitted.approximation().omega());
    let error = Approximation::decode(&bytes).unwrap_err().to_string();
    assert!(
        error.contains("`student_t=4`, which Jensen does not have"),
        "{error}"
    );
    let other = StudentT {
        freedom: 5,
        ..STUDENT_T
    };
    let error = Approximation::decode_as(&bytes, Arc::new(other))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`student_t=4`, not to `student_t=5`"),
        "{error}"
    );
}

fn run(
    family: impl Into<FamilyChoice>,
    iterations: u64,
    resume: Option<&[u8]>,
) -> (Result<Fitted, Error>, Vec<u8>) {
    let (clock, mut silent, mut store) = (|| 0.0, Silent, Vec::<Vec<u8>>::new());
    let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
    control.store = Some(&mut store);
    control.resume = resume.map(|bytes| Checkpoint::decode(bytes).unwrap());
    control.force_resume = true;
    let fitted = fit_with(&regression().0, &Options::default().family(family), control);
    (fitted, store.pop().unwrap_or_default())
}

#[test]
fn a_fit_is_resumed_with_its_family_alone() {
    let (whole, _) = run(STUDENT_T, 10_000, None);
    let stopped = run(STUDENT_T, 8, None).1;
    let (resumed, _) = run(STUDENT_T, 10_000, Some(&stopped));
    let omega = |fitted: Result<Fitted, Error>| fitted.unwrap().approximation().omega().to_vec();
    assert_eq!(omega(resumed), omega(whole));
    for other in [
        FamilyKind::MeanField.into(),
        FamilyChoice::from(FirstOrder { pull: 1.0 }),
    ] {
        let error = run(other, 10_000, Some(&stopped))
            .0
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("resume with the family of the checkpoint"),
            "{error}"
        );
    }
}

#[test]
fn a_family_of_another_dimension_is_refused() {
    let options = Options::default().family(StudentT { dim: 3, freedom: 4 });
    let error = fit(&regression().0, &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "the family `student_t=4` has 3 coordinates, but the model has 2"
    );
}
