//! Comparisons of TrustVI with another method over many programs (sections 5.1 and 5.2 of the paper).

use jensen::report::figure::{Axis, Chart, Figure, Series};

use crate::contest::{Method, Path};
use crate::context::Context;
use crate::corpus::{CORPUS, Entry};
use crate::failure::Failure;
use crate::given::{self, Given};
use crate::race::races;
use crate::results::{Ours, What};

/// At the quick scale, every program of the corpus with a number divisible by this is included.
const QUICK_EVERY: usize = 8;

/// The tolerance for comparing final ELBOs, in nats. Two final ELBOs that differ by less are treated as equal.
const EQUAL: f64 = 1.0;

/// The methods, programs and seeds of a comparison.
struct Subject {
    own: Method,
    other: Method,
    /// The step between the included programs of the corpus. If the value is n, every n-th program is included. Of the
    /// programs that the user supplies, all are included.
    every: usize,
    seeds: u64,
    /// The beginning of the names of the rows.
    prefix: String,
    /// The end of the names of the figures.
    suffix: String,
}

impl Subject {
    /// Returns a comparison of Jensen's TrustVI with a method. At the scale of the paper, there are five seeds for every
    /// program, as in the paper. At the quick scale, there is one seed for each of a few programs.
    fn usual(context: &Context<'_>, other: Method) -> Self {
        let given = context.models().is_some();
        Self {
            own: Method::Trust,
            other,
            every: context.pick(QUICK_EVERY, 1),
            seeds: context.pick(1, 5),
            prefix: if given { "given programs: " } else { "" }.to_owned(),
            suffix: if given { "-given" } else { "" }.to_owned(),
        }
    }

    fn named(mut self, prefix: &str, suffix: &str) -> Self {
        self.prefix += prefix;
        self.suffix += suffix;
        self
    }

    fn what(&self, what: impl std::fmt::Display, unit: &str) -> What {
        What::new(format!("{}{what}", self.prefix), unit)
    }
}

/// Compares TrustVI with ADVI (section 5.1).
pub fn against_advi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject::usual(context, Method::Advi);
    advi(context, &subject)
}

/// Compares TrustVI with ADVI at a tighter tolerance. There is one seed at both scales, because ADVI makes up to twenty
/// times as many iterations as at Stan's tolerance.
pub fn against_tight_advi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject {
        seeds: 1,
        ..Subject::usual(context, Method::TightAdvi)
    };
    advi(context, &subject.named("tolerance 1e-4: ", "-tight"))
}

/// Compares the algorithm as printed with ADVI.
pub fn printed_against_advi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject {
        own: Method::PaperTrust,
        ..Subject::usual(context, Method::Advi)
    };
    advi(context, &subject.named("as printed: ", "-printed"))
}

/// Compares TrustVI with HFSGVI (section 5.2).
pub fn against_hfsgvi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject::usual(context, Method::Hfsgvi);
    hfsgvi(context, &subject)
}

/// Makes both comparisons of the paper over all programs with one seed.
pub fn once(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = |context: &Context<'_>, other| {
        let subject = Subject {
            every: 1,
            seeds: 1,
            ..Subject::usual(context, other)
        };
        subject.named("one seed: ", "-once")
    };
    let against = subject(context, Method::Advi);
    advi(context, &against)?;
    let against = subject(context, Method::Hfsgvi);
    hfsgvi(context, &against)
}

fn advi(context: &mut Context<'_>, subject: &Subject) -> Result<(), Failure> {
    let pairs = corpus(context, subject)?;
    outcomes(context, subject, &pairs, [0.69, 0.28, 0.03])?;
    let ended = pairs.iter().filter(|pair| pair.other.converged).count();
    let share = subject.what("ADVI ends by its rule, in its median run", "share");
    context.row(share, |_| {
        Ok(Ours::share(ended, pairs.len()).seeds(subject.seeds))
    })?;
    let slow = runtimes(&pairs);
    let what = "models on which ADVI takes at least five iterations";
    context.row(subject.what(what, "models").paper(137.0), |_| {
        Ok(Ours::value(slow.len() as f64).seeds(subject.seeds))
    })?;
    let faster = slow.iter().filter(|r| r.ratio() > 1.0).count();
    let share = subject
        .what("TrustVI faster than ADVI, of these", "share")
        .paper(136.0 / 137.0);
    context.row(share, |_| {
        Ok(Ours::share(faster, slow.len()).seeds(subject.seeds))
    })?;
    for (name, share, paper) in [
        ("oracle calls of ADVI for one of TrustVI: median", 0.5, 12.0),
        (
            "oracle calls of ADVI for one of TrustVI: upper quartile",
            0.75,
            36.0,
        ),
    ] {
        let note = "the paper says at least as many";
        context.row(subject.what(name, "ratio").paper(paper), |_| {
            Ok(quantile(&slow, share, Runtime::ratio)
                .seeds(subject.seeds)
                .note(note))
        })?;
    }
    let lower = subject.what(
        "oracle calls of ADVI for one of TrustVI: lower quartile",
        "ratio",
    );
    context.row(lower, |_| {
        Ok(quantile(&slow, 0.25, Runtime::ratio).seeds(subject.seeds))
    })?;
    let seconds = subject.what("seconds of ADVI for one of TrustVI: median", "ratio");
    context.row(seconds, |_| {
        Ok(quantile(&slow, 0.5, |r| r.seconds).seeds(subject.seeds))
    })?;
    scatter(context, subject, &slow)
}

fn hfsgvi(context: &mut Context<'_>, subject: &Subject) -> Result<(), Failure> {
    let all = corpus(context, subject)?;
    let (failed, pairs): (Vec<_>, Vec<_>) = all.into_iter().partition(|pair| pair.overflowed);
    let count = failed.len() + pairs.len();
    let what = subject
        .what("HFSGVI fails by overflow", "share")
        .paper(23.0 / 183.0);
    let names: Vec<&str> = failed.iter().map(|pair| pair.name.as_str()).collect();
    context.row(what, |_| {
        let share = Ours::share(failed.len(), count).seeds(subject.seeds);
        Ok(share.note(names.join(", ")))
    })?;
    outcomes(context, subject, &pairs, [0.67, 0.32, 0.01])?;
    let slow = runtimes(&pairs);
    let faster = slow.iter().filter(|r| r.ratio() > 1.0).count();
    let share = subject
        .what("TrustVI faster than HFSGVI", "share")
        .paper(61.0 / 115.0);
    let note = format!(
        "of {} models on which HFSGVI takes at least five iterations",
        slow.len()
    );
    context.row(share, |_| {
        let share = Ours::share(faster, slow.len()).seeds(subject.seeds);
        Ok(share.note(note))
    })?;
    let median = subject.what("oracle calls of HFSGVI for one of TrustVI: median", "ratio");
    context.row(median, |_| {
        Ok(quantile(&slow, 0.5, Runtime::ratio).seeds(subject.seeds))
    })?;
    scatter(context, subject, &slow)
}

struct Pair {
    name: String,
    dim: usize,
    other: Path,
    trust: Path,
    /// Whether most of the other method's runs overflowed.
    overflowed: bool,
}

/// Runs both methods of a comparison on the programs of the corpus or on those that the user supplies.
fn corpus(context: &mut Context<'_>, subject: &Subject) -> Result<Vec<Pair>, Failure> {
    let (own, other, seeds) = (subject.own, subject.other, subject.seeds);
    let given = match context.models() {
        Some(folder) => Some(given::programs(context, &folder)?),
        None => None,
    };
    if given.is_none() && CORPUS.is_empty() {
        // This call fails, and its error message describes how to obtain the corpus.
        Entry::named("kidscore_interaction")?;
    }
    let (mut solving, mut plain): (Vec<&Entry>, Vec<&Entry>) = (Vec::new(), Vec::new());
    for entry in given.as_ref().map_or(CORPUS, |given| &given.usable) {
        if entry.solves()? {
            solving.push(entry);
        } else {
            plain.push(entry);
        }
    }
    let every = if given.is_some() { 1 } else { subject.every };
    let programs: Vec<&Entry> = plain.iter().step_by(every).copied().collect();
    context.say(format!("{} programs, {seeds} seeds", programs.len()));
    let left = |what: &str| subject.what(format!("{what}, against {}", other.name()), "nats");
    if programs.len() < plain.len() {
        let others = plain.len() - programs.len();
        let note = format!("{others} programs; use --scale paper");
        context.not_run(left("the other programs"), note)?;
    }
    // The programs that solve equations are excluded. On one of them, the other methods take a quarter of an hour, and
    // the paper uses no such programs.
    let names: Vec<&str> = solving.iter().map(|entry| entry.name.as_ref()).collect();
    let note = format!("left out: {}", names.join(", "));
    context.not_run(left("programs with solvers"), note)?;
    for (name, why) in given.iter().flat_map(|Given { refused, .. }| refused) {
        context.not_run(left(name), why)?;
    }
    let races = races(context, &programs, &[other, own], seeds)?;
    let mut pairs = Vec::new();
    for (entry, race) in programs.iter().zip(races) {
        for method in [other, own] {
            let what = format!("{}: final bound of {}", entry.name, method.name());
            context.row(subject.what(what, "nats"), |_| Ok(race.summary(method)))?;
        }
        let runs = race.of(other);
        let overflowed = 2 * runs.iter().filter(|p| p.overflowed).count() > runs.len();
        pairs.push(Pair {
            name: entry.name.to_string(),
            dim: race.dim,
            other: race.median(other).clone(),
            trust: race.median(own).clone(),
            overflowed,
        });
    }
    Ok(pairs)
}

/// Writes three fractions of the models: those with equal final ELBOs, those with a higher ELBO of TrustVI, and those
/// with a higher ELBO of the other method.
fn outcomes(
    context: &mut Context<'_>,
    subject: &Subject,
    pairs: &[Pair],
    paper: [f64; 3],
) -> Result<(), Failure> {
    let gain = |pair: &Pair| match (pair.trust.bound, pair.other.bound) {
        (Some(trust), Some(other)) => trust - other,
        (trust, other) => {
            f64::from(u8::from(trust.is_some())) - f64::from(u8::from(other.is_some()))
        }
    };
    let names = |keep: &dyn Fn(f64) -> bool| -> Vec<&str> {
        let kept = pairs.iter().filter(|pair| keep(gain(pair)));
        kept.map(|pair| pair.name.as_str()).collect()
    };
    let equal = names(&|g| g.abs() < EQUAL);
    let better = names(&|g| g >= EQUAL);
    let worse = names(&|g| g <= -EQUAL);
    let groups = [("equal", equal), ("better", better), ("worse", worse)];
    for ((word, group), paper) in groups.into_iter().zip(paper) {
        let other = subject.other.name();
        let what = format!("final bound of TrustVI against {other}'s: {word}");
        context.row(subject.what(what, "share").paper(paper), |_| {
            let listed = if word == "equal" {
                String::new()
            } else {
                group.join(", ")
            };
            let note = format!("{} of {} models; {listed}", group.len(), pairs.len());
            let share = Ours::share(group.len(), pairs.len()).seeds(subject.seeds);
            Ok(share.note(note.trim_end_matches("; ")))
        })?;
    }
    Ok(())
}

/// The numbers of oracle calls that both methods need on one of the models that [`runtimes`] selects.
struct Runtime {
    dim: usize,
    other: f64,
    trust: f64,
    seconds: f64,
}

impl Runtime {
    fn ratio(&self) -> f64 {
        self.other / self.trust
    }
}

/// Returns the runtimes on those models for which the other method needs at least five iterations to reach the
/// threshold.
fn runtimes(pairs: &[Pair]) -> Vec<Runtime> {
    pairs
        .iter()
        .filter_map(|pair| {
            let threshold = pair.other.end().min(pair.trust.end()) - 1.0;
            let (other, trust) = (
                pair.other.reaches(threshold)?,
                pair.trust.reaches(threshold)?,
            );
            let counts = other.iteration >= 5;
            // If the starting point is above the threshold, a method needs no oracle calls. If a method needs no calls,
            // one call is counted.
            let floor = |calls: f64| calls.max(1.0);
            counts.then(|| Runtime {
                dim: pair.dim,
                other: floor(other.calls),
                trust: floor(trust.calls),
                seconds: other.seconds / trust.seconds.max(1e-6),
            })
        })
        .collect()
}

fn quantile(runtimes: &[Runtime], share: f64, figure: impl Fn(&Runtime) -> f64) -> Ours {
    let figures: Vec<f64> = runtimes.iter().map(figure).collect();
    Ours::quantile(&figures, share)
}

fn scatter(
    context: &mut Context<'_>,
    subject: &Subject,
    runtimes: &[Runtime],
) -> Result<(), Failure> {
    let points = |keep: &dyn Fn(&Runtime) -> bool| -> Vec<(f64, f64)> {
        let kept = runtimes.iter().filter(|r| keep(r));
        kept.map(|r| (r.trust, r.other)).collect()
    };
    let ends = runtimes.iter().flat_map(|r| [r.trust, r.other]);
    let (least, most) = ends.fold((1.0f64, 10.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let line = |factor: f64| [(least, least * factor), (most, most * factor)];
    let range = |label: String| Axis::new(label).log().range(least * 0.8, most * 1.25);
    let chart = Chart::new("Oracle calls to the threshold")
        .sized(480.0, 420.0)
        .x(range("TrustVI".into()))
        .y(range(subject.other.name().into()))
        .series(Series::scatter("up to 50 dimensions", points(&|r| r.dim <= 50)).colour(0))
        .series(Series::scatter("more", points(&|r| r.dim > 50)).colour(1))
        .series(Series::line("equal", line(1.0)).colour(6).width(1.0))
        .series(
            Series::line("12 times as many", line(12.0))
                .colour(6)
                .width(1.0)
                .dashed(),
        );
    let other = subject.other.name().to_lowercase();
    let name = format!("corpus-{other}{}", subject.suffix);
    context.figure(&name, &Figure::new("").panel(chart))
}
