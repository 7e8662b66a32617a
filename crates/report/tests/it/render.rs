//! Tests that the page is valid HTML, loads no other files, escapes all texts, and accepts any numbers.

use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{
    Exhibit, Fact, Khat, Marginal, Parameter, Posterior, Report, Section, Stage, Tone, TracePoint,
    Verdict, Weights, render,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn parameter(name: &str, mean: f64, sd: f64) -> Parameter {
    let q = |z: f64| mean + z * sd;
    Parameter {
        name: name.into(),
        mean,
        sd,
        q05: q(-1.645),
        q50: mean,
        q95: q(1.645),
        mcse: Some(sd / 30.0),
    }
}

fn wave(n: usize, phase: f64) -> Vec<f64> {
    (0..n)
        .map(|i| (i as f64 * 0.7 + phase).sin() * 2.0 + phase)
        .collect()
}

fn stage(name: &str, count: u64) -> Stage {
    let point = |i: u64| TracePoint {
        iteration: i,
        seconds: i as f64,
        elbo: -100.0 / (i + 1) as f64,
        se: 0.1,
    };
    Stage {
        name: name.into(),
        points: (0..count).map(point).collect(),
    }
}

fn text(s: &str) -> String {
    s.to_owned()
}

fn parameters() -> Vec<Parameter> {
    vec![
        parameter("mu", 1.0, 0.5),
        parameter("x[1]", 0.0, 1.0),
        parameter("x[2]", -3.0, 1e-9),
    ]
}

fn marginal(name: &str, draws: Vec<f64>) -> Marginal {
    Marginal {
        name: name.into(),
        draws,
    }
}

fn exhibit() -> Exhibit {
    let curve = (1..=8).map(|k| (f64::from(k), 3.0 - 2.0 / f64::from(k)));
    let chart = Chart::new("Bound")
        .x(Axis::new("iteration"))
        .y(Axis::new("nats"))
        .series(Series::line("bound", curve));
    let table = ["1", "2"].map(|k| vec![k.to_owned(), format!("0.{k}")]);
    Exhibit {
        heading: "Course".into(),
        note: "The bound.".into(),
        figures: vec![(Figure::new("").panel(chart), "A caption".into())],
        table: (vec!["component".into(), "weight".into()], table.to_vec()),
    }
}

fn full() -> Report {
    let khat = Khat {
        value: 0.3,
        threshold: 0.67,
    };
    Report {
        title: "Schools".into(),
        subject: vec![
            (text("Model"), text("m.stan")),
            (text("data"), text("d.json")),
        ],
        verdict: Verdict {
            advice: vec!["go on".into()],
            ..Verdict::new(Tone::Good, "Converged", "done")
        },
        facts: vec![
            Fact::elbo(-12345.678, 0.05),
            Fact::khat(khat),
            Fact::new("Draws", "100", "of 200"),
        ],
        warnings: vec!["careful".into()],
        sections: vec![
            Section::Bound(vec![stage("mean-field", 30), stage("full-rank", 40)]),
            exhibit().into(),
            Section::Weights(Weights {
                refined: false,
                khat: Some(khat),
                log_weights: wave(100, 0.0),
            }),
            Section::Posterior(Posterior {
                parameters: parameters(),
                marginals: vec![
                    marginal("mu", wave(100, 1.0)),
                    marginal("x[1]", wave(100, 2.0)),
                    marginal("k", (0..100).map(|i| f64::from(i % 4)).collect()),
                ],
                ..Posterior::default()
            }),
        ],
        settings: vec![("seed".into(), "0".into())],
        timing: vec![("fit".into(), 1.0), ("draws".into(), 0.5)],
        footnote: "Bounds are in nats.".into(),
        version: "0.1.0".into(),
    }
}

fn with(section: Section) -> String {
    render(&Report {
        sections: vec![section],
        ..Report::default()
    })
}

/// Checks that all elements are closed in order. A name that is not escaped would violate this, and so would a mistake
/// in the markup.
fn check_tags(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let html = &html[html.find("</style>").unwrap() + "</style>".len()..];
    open.extend(["html", "head"]);
    let mut rest = 0;
    while let Some(at) = html[rest..].find('<').map(|i| i + rest) {
        let end = at
            + html[at..]
                .find('>')
                .unwrap_or_else(|| panic!("unclosed tag at {at}"));
        let tag = &html[at + 1..end];
        rest = end + 1;
        if tag.starts_with('!')
            || tag.ends_with('/')
            || tag.starts_with("meta")
            || tag.starts_with("input ")
        {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "at {at}"),
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// The script is the only active element of a page. It must not contain any name or text of the report.
const SCRIPT: &str = include_str!("../../src/script.js");

fn check_page(html: &str) {
    let script = format!("<script>{SCRIPT}</script></body></html>\n");
    let html = html.strip_suffix(&script).expect("one script, at the end");
    let html = &format!("{html}</body></html>\n");
    check_tags(html);
    for foreign in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<script", "<iframe", "<img",
        "onload",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    for attribute in [
        "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "d", "width", "height",
    ] {
        for part in html.split(&format!(" {attribute}=\"")).skip(1) {
            let value = part.split('"').next().unwrap();
            assert!(
                !value.contains("NaN") && !value.contains("inf"),
                "{attribute}={value}"
            );
        }
    }
}

#[test]
fn a_full_report_has_every_section_and_an_empty_one_none() {
    let html = render(&full());
    check_page(&html);
    let sections = [
        "The bound along the run",
        "Course",
        "Can the draws be trusted?",
        "Parameters",
        "Vectors and matrices",
        "Marginal distributions",
        "Correlations",
        "How it was made",
    ];
    let empty = render(&Report::default());
    check_page(&empty);
    for section in sections {
        assert!(html.contains(&format!("<h2>{section}</h2>")), "{section}");
        assert!(!empty.contains(&format!("<h2>{section}</h2>")), "{section}");
    }
    for text in [
        "−12\u{2009}345.678",
        "± 0.05 nats",
        "trusted to 0.67",
        "go on",
        "careful",
        "mean-field: ",
        "1.5 s",
        "m.stan",
        "of 200",
        "A caption",
        "<th scope=\"col\">component</th>",
        "<td>0.2</td>",
        "average weight",
        "x[1] and mu: ",
        "Jensen 0.1.0. Bounds are in nats.",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn names_and_texts_are_escaped_wherever_they_stand() {
    let evil = "<script>alert(\"x\")</script>'&\u{1}";
    let own = || evil.to_owned();
    let chart = Chart::new(evil)
        .x(Axis::new(evil))
        .series(Series::line(evil, [(0.0, 1.0), (1.0, 2.0)]));
    let mut bound = [stage(evil, 30), stage(evil, 40)];
    bound[1].points.truncate(5);
    let named = |i: usize| format!("{evil}[{i}]");
    let report = Report {
        title: own(),
        subject: vec![(own(), own())],
        verdict: Verdict {
            advice: vec![own()],
            ..Verdict::new(Tone::Fair, evil, evil)
        },
        facts: vec![Fact::new(evil, evil, evil)],
        warnings: vec![own()],
        sections: vec![
            Section::Bound(bound.to_vec()),
            Section::Exhibit(Exhibit {
                heading: own(),
                note: own(),
                figures: vec![(Figure::new(evil).panel(chart), own())],
                table: (vec![own()], vec![vec![own()]]),
            }),
            Section::Posterior(Posterior {
                parameters: (0..3).map(|i| parameter(&named(i), 0.0, 1.0)).collect(),
                marginals: (0..3)
                    .map(|i| marginal(&named(i), wave(50, i as f64)))
                    .collect(),
                ..Posterior::default()
            }),
        ],
        settings: vec![(own(), own())],
        timing: vec![(own(), 1.0)],
        footnote: own(),
        version: own(),
    };
    let html = render(&report);
    check_page(&html);
    let escaped = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;\u{fffd}";
    assert!(html.matches(escaped).count() > 30);
}

#[test]
fn the_verdict_has_its_colour_and_all_its_words() {
    for (tone, class) in [
        (Tone::Good, "verdict good"),
        (Tone::Fair, "verdict fair"),
        (Tone::Poor, "verdict poor"),
    ] {
        let html = render(&Report {
            verdict: Verdict {
                advice: vec!["Run on".into()],
                ..Verdict::new(tone, "In short", "At length")
            },
            ..Report::default()
        });
        for part in [class, "In short", "At length", "Run on"] {
            assert!(html.contains(part), "{part}");
        }
    }
}

#[test]
fn the_meaning_of_khat_follows_its_value() {
    let page = |value| {
        with(Section::Weights(Weights {
            refined: false,
            khat: Some(Khat {
                value,
                threshold: 0.67,
            }),
            log_weights: wave(100, 0.0),
        }))
    };
    assert!(page(0.2).contains("finite variance"));
    assert!(page(0.6).contains("a mean but no variance"));
    assert!(page(0.8).contains("errors are understated"));
    assert!(page(f64::INFINITY).contains("have no mean"));
    assert!(page(f64::NAN).contains("could not be estimated"));
    for khat in [0.2, 0.0, -0.5, 5.0, f64::INFINITY, f64::NAN] {
        check_page(&page(khat));
    }
}

#[test]
fn what_is_not_shown_is_counted() {
    let parameters: Vec<Parameter> = (0..620)
        .map(|i| parameter(&format!("x[{}]", i + 1), i as f64, 1.0))
        .collect();
    let marginals: Vec<Marginal> = parameters
        .iter()
        .map(|p| Marginal {
            name: p.name.clone(),
            draws: wave(50, p.mean),
        })
        .collect();
    let html = with(Section::Posterior(Posterior {
        parameters,
        marginals,
        ..Posterior::default()
    }));
    check_page(&html);
    assert!(
        html.contains(
            "120 further parameters are not shown here; they are in <code>fit.json</code>"
        )
    );
    assert!(
        html.contains(
            "596 further marginals are not shown here; they are in <code>draws.csv</code>"
        )
    );
    assert!(html.contains("The first 40 elements; 580 more are not shown."));
    assert!(html.contains("604 further parameters are not shown."));
    assert!(html.len() < 3_000_000, "{}", html.len());
}

#[test]
fn predictions_that_other_sections_speak_of_are_not_listed() {
    let page = |elsewhere: Vec<String>| {
        with(Section::Posterior(Posterior {
            parameters: vec![parameter("mu", 1.0, 0.5), parameter("y_rep[1]", 0.0, 1.0)],
            marginals: vec![
                marginal("mu", wave(50, 1.0)),
                marginal("y_rep[1]", wave(50, 2.0)),
            ],
            elsewhere,
        }))
    };
    assert!(page(Vec::new()).contains("y_rep[1]"));
    let html = page(vec!["y_rep".into()]);
    check_page(&html);
    assert!(html.contains("mu") && !html.contains("y_rep[1]"));
    assert!(html.contains("Figures of other sections show y_rep"));
}

#[test]
fn a_steep_start_does_not_flatten_the_rest_of_the_bound() {
    let mut course = stage("meanfield", 40);
    for (point, elbo) in course.points.iter_mut().zip([-1e9, -1e6]) {
        point.elbo = elbo;
    }
    let html = with(Section::Bound(vec![course.clone()]));
    check_page(&html);
    // The three estimates are the two changed points and the −33 that follows them. The estimate −25 is within ten
    // times the spread of the rest.
    assert!(html.contains("3 estimates at the start are below the figure"));
    assert!(!html.contains("10⁹"), "the axis does not reach them");
    course.points.drain(..20);
    assert!(!with(Section::Bound(vec![course])).contains("below the picture"));
}

#[test]
fn the_summary_to_copy_says_what_the_page_says() {
    let html = render(&full());
    let (_, rest) = html.split_once("<pre id=\"summary\" hidden>").unwrap();
    let (text, _) = rest.split_once("</pre>").unwrap();
    for part in [
        "Schools\n",
        "Converged",
        "- go on",
        "- careful",
        "ELBO: ",
        "x[1] ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn long_traces_are_thinned_and_keep_their_end() {
    let mut long = stage("s", 100_000);
    let html = with(Section::Bound(vec![long.clone()]));
    assert!(html.len() < 100_000, "{}", html.len());
    long.points.iter_mut().for_each(|p| p.elbo = f64::NAN);
    assert!(!with(Section::Bound(vec![long])).contains("The bound along the run"));
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>(),
        2 => -10.0..10.0,
        1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY), 1 => Just(f64::MAX),
        1 => Just(f64::MIN), 1 => Just(5e-324),
    ]
}

prop_compose! {
    fn any_report()(
        numbers in vec(any_number(), 8),
        draws in vec(vec(any_number(), 0..30), 0..5),
        log_weights in vec(any_number(), 0..20),
        points in vec((any::<u64>(), any_number(), any_number()), 0..12),
        names in vec(".{0,12}|x\\[[0-9]\\]", 5),
    ) -> Report {
        let points: Vec<TracePoint> = points
            .iter()
            .map(|(iteration, elbo, se)| TracePoint { iteration: *iteration, seconds: *se, elbo: *elbo, se: *se })
            .collect();
        let half = points.len() / 2;
        let marginals: Vec<Marginal> =
            draws.into_iter().zip(&names).map(|(draws, name)| Marginal { name: name.clone(), draws }).collect();
        let parameters = names
            .iter()
            .map(|name| Parameter {
                name: name.clone(), mean: numbers[0], sd: numbers[1], q05: numbers[2], q50: numbers[3], q95: numbers[4],
                mcse: Some(numbers[5]),
            })
            .collect();
        let khat = Khat { value: numbers[6], threshold: numbers[7] };
        Report {
            facts: vec![Fact::elbo(numbers[0], numbers[1]), Fact::khat(khat)],
            timing: vec![("a".into(), numbers[0]), ("b".into(), numbers[1])],
            sections: vec![
                Section::Bound(vec![
                    Stage { name: names[0].clone(), points: points[..half].to_vec() },
                    Stage { name: names[1].clone(), points: points[half..].to_vec() },
                ]),
                Section::Weights(Weights { khat: Some(khat), refined: false, log_weights }),
                Section::Posterior(Posterior { parameters, marginals, ..Posterior::default() }),
            ],
            ..Report::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_numbers_and_names_give_a_sound_page(report in any_report()) {
        check_page(&render(&report));
    }
}

#[test]
fn pages_are_as_kept() {
    let keep = |name, report: &Report| {
        jensen_testkit::golden(env!("CARGO_MANIFEST_DIR"), name, &render(report));
    };
    let khat = Khat {
        value: 0.3,
        threshold: 0.67,
    };
    let named = Report {
        sections: vec![
            Section::Bound(vec![stage("mean-field", 6)]),
            Section::Weights(Weights {
                refined: false,
                khat: Some(khat),
                log_weights: wave(20, 0.0),
            }),
            Section::Posterior(Posterior {
                parameters: parameters(),
                marginals: vec![marginal("mu", wave(20, 1.0))],
                ..Posterior::default()
            }),
        ],
        ..full()
    };
    keep("fit.html", &named);
    let sheet = Report {
        title: "Two components".into(),
        subject: vec![("Data".into(), "points.csv".into())],
        verdict: Verdict::new(Tone::Good, "Converged", "Nothing speaks against it."),
        facts: vec![Fact::new("ELBO", "−3.20", "nats")],
        warnings: vec!["read <this>".into()],
        sections: vec![exhibit().into()],
        settings: vec![("seed".into(), "0".into())],
        timing: vec![("fit".into(), 1.5)],
        ..full()
    };
    keep("sheet.html", &sheet);
}
