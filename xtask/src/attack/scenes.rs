//! Small runs of every command. This module writes the data for them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Dice, run, words};

/// A run of a command, together with later commands that use its folder.
pub struct Scene {
    /// The name of the scene in reports.
    pub name: &'static str,
    /// The command, such as `topics fit`.
    pub verb: &'static str,
    /// The arguments of the command, except the folder.
    pub given: String,
    /// How a stopped run is resumed.
    pub again: Again,
    /// Commands that use the folder. In their arguments, `DIR` stands for the folder and `OUT` for a file.
    pub uses: Vec<String>,
}

/// How a stopped run is resumed.
#[derive(Clone, Copy)]
pub enum Again {
    /// By the same command with the additional flag `--resume`.
    Resume,
    /// By `topics fit --resume`, whichever command began the run.
    Topics,
    /// By the same command line.
    Same,
}

impl Scene {
    /// Returns the command line of a run that starts afresh.
    pub fn fit(&self, folder: &Path) -> Vec<String> {
        let line = format!("{} {} {} --out", self.verb, self.given, self.manner());
        let mut line = words(&line);
        line.push(folder.display().to_string());
        line
    }

    /// Returns the command line that resumes a stopped run.
    pub fn resume(&self, folder: &Path) -> Vec<String> {
        let verb = match self.again {
            Again::Resume => self.verb,
            Again::Topics => "topics fit",
            Again::Same => return self.fit(folder),
        };
        let folder_of = if self.is_of_points() { " --out" } else { "" };
        let mut line = words(&format!("{verb} {} --resume{folder_of}", self.manner()));
        line.push(folder.display().to_string());
        line
    }

    /// Returns whether the command is one for points. Such commands choose when to write checkpoints, and a resumed run
    /// takes its folder from `--out`.
    fn is_of_points(&self) -> bool {
        ["mixture", "factors", "hmm", "factor-analysis"]
            .iter()
            .any(|verb| self.verb.starts_with(verb))
    }

    fn manner(&self) -> &'static str {
        if let Again::Same = self.again {
            "-q"
        } else if self.is_of_points() {
            "--threads 1 -q"
        } else {
            "--checkpoint-every 0.02 --threads 1 -q"
        }
    }

    /// Returns the command lines of the commands that use a folder and write to a file.
    pub fn uses(&self, folder: &Path, out: &Path) -> Vec<Vec<String>> {
        let replaced = |word: &str| match word {
            "DIR" => folder.display().to_string(),
            "OUT" => out.display().to_string(),
            word => word.to_owned(),
        };
        let lines = self.uses.iter();
        lines
            .map(|line| line.split_whitespace().map(replaced).collect())
            .collect()
    }
}

/// Returns all scenes, after writing their data to `desk`.
pub fn all(root: &Path, jensen: &Path, desk: &Path) -> Result<Vec<Scene>, String> {
    let mut scenes = fits(root);
    scenes.extend(of_many(root, desk)?);
    scenes.extend(of_tables(desk)?);
    scenes.extend(of_documents(jensen, desk)?);
    scenes.extend(of_pictures(desk)?);
    Ok(scenes)
}

fn written(desk: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let path = desk.join(name);
    fs::write(&path, bytes).map_err(|e| format!("`{}`: {e}", path.display()))?;
    Ok(path)
}

fn fits(root: &Path) -> Vec<Scene> {
    let files = |name: &str| {
        let path = |file: &str| root.join("models").join(name).join(file);
        let (program, data) = (path("model.stan"), path("data.json"));
        format!("{} {}", program.display(), data.display())
    };
    let schools = files("eight_schools_noncentred");
    let draws = "draws DIR --draws 20 --seed 3 --out OUT".to_owned();
    let fit = |name, files: &str, flags: &str| Scene {
        name,
        verb: "fit",
        given: format!("{files} --seed 3 --draws 100 {flags}"),
        again: Again::Resume,
        uses: vec![draws.clone()],
    };
    let mut scenes = vec![
        fit("fit", &schools, ""),
        fit("fit advi", &schools, "--method advi --advi-iters 300"),
        fit("fit trust", &schools, "--method trust --family meanfield"),
        fit(
            "fit bbvi",
            &schools,
            "--method bbvi --max-iters 300 --family lowrank=2",
        ),
        fit("fit refine", &schools, "--refine always"),
        fit("fit sparse", &schools, "--family sparse --refine none"),
        fit("fit mixture", &schools, "--family mixture=2 --refine none"),
        fit("fit flow", &schools, "--family flow=2 --max-iters 200"),
        fit(
            "fit records",
            &files("kidscore_momhs"),
            "--exchangeable N --batch 50 --estimator joint --max-iters 2000",
        ),
    ];
    let program = schools.split(' ').next().unwrap_or_default();
    scenes[0].uses.push("compare DIR DIR".to_owned());
    scenes[0]
        .uses
        .push(format!("generate {program} DIR --seed 3 --out OUT"));
    scenes
}

fn of_many(root: &Path, desk: &Path) -> Result<Vec<Scene>, String> {
    let schools = root.join("models/eight_schools_noncentred");
    let (program, data) = (schools.join("model.stan"), schools.join("data.json"));
    let slope = "data { int N; vector[N] x; vector[N] y; } parameters { real a; }
                 model { a ~ normal(0, 1); y ~ normal(a * x, 1); }\n";
    let simulator = "data { int N; vector[N] x; } generated quantities { real a = normal_rng(0, 1);
                     array[N] real y = normal_rng(a * x, 1); }\n";
    let slope = written(desk, "slope.stan", slope.as_bytes())?;
    let simulator = written(desk, "simulator.stan", simulator.as_bytes())?;
    let rows = written(desk, "rows.json", br#"{"N": 3, "x": [1, 2, 3]}"#)?;
    let scene = |name, verb, given| Scene {
        name,
        verb,
        given,
        again: Again::Same,
        uses: Vec::new(),
    };
    Ok(vec![
        scene(
            "fit-many",
            "fit-many",
            format!(
                "{} {} --seeds 1..6 --workers 2",
                program.display(),
                data.display()
            ),
        ),
        scene(
            "calibrate",
            "fit",
            format!(
                "{} {} --calibrate 30 --simulator {} --seed 3",
                slope.display(),
                rows.display(),
                simulator.display()
            ),
        ),
    ])
}

fn of_tables(desk: &Path) -> Result<Vec<Scene>, String> {
    let plane = written(desk, "plane.csv", plane().as_bytes())?;
    let bits = written(desk, "bits.csv", bits().as_bytes())?;
    let (plane, bits) = (plane.display(), bits.display());
    let scene = |name, verb, given, uses| Scene {
        name,
        verb,
        given,
        again: Again::Resume,
        uses,
    };
    Ok(vec![
        scene(
            "mixture",
            "mixture fit",
            format!("{plane} -k 3 --seed 6"),
            vec![format!("mixture predict DIR {plane}")],
        ),
        scene(
            "mixture of some",
            "mixture fit",
            format!("{plane} -k 1..4 --starts 2 --seed 6"),
            Vec::new(),
        ),
        scene(
            "factors",
            "factors fit",
            format!("{bits} -k 2 --noise-variance 0.1 --seed 6"),
            Vec::new(),
        ),
        scene(
            "hmm",
            "hmm fit",
            format!("{plane} -k 3 --seed 6"),
            vec![format!("hmm predict DIR {plane} --out OUT")],
        ),
        scene(
            "factor-analysis",
            "factor-analysis fit",
            format!("{bits} -k 1 --seed 6"),
            Vec::new(),
        ),
        scene(
            "latent",
            "latent fit",
            format!("--likelihood gaussian --prior gp(matern32,on=x) --data {plane} --restarts 2"),
            vec![format!("latent predict DIR --at {plane} --out OUT")],
        ),
    ])
}

/// Returns scenes that fit topics to a corpus in one file and in shards, by both methods of inference, and to later
/// documents.
fn of_documents(jensen: &Path, desk: &Path) -> Result<Vec<Scene>, String> {
    let text = written(desk, "text.jsonl", documents().as_bytes())?;
    let text = text.display();
    let done = |line: &str, out: &Path| {
        let mut words = words(&format!("{line} -q --out"));
        words.push(out.display().to_string());
        match run(jensen, &words)? {
            ended if matches!(ended.code, Some(0 | 4)) => Ok(()),
            ended => Err(format!("{line}: {}", ended.message)),
        }
    };
    let scene = |name, flags: &str, inference| {
        let corpus = desk.join(name);
        done(
            &format!("topics build {text} --heldout 0.1 --min-df 1 --max-df 1.0 {flags}"),
            &corpus,
        )?;
        Ok::<_, String>(Scene {
            name,
            verb: "topics fit",
            given: format!(
                "{} -k 4 --batch 10 --passes 3 --seed 2 --inference {inference}",
                corpus.display()
            ),
            again: Again::Resume,
            uses: vec![
                "topics show DIR --json".to_owned(),
                "topics evaluate DIR --json".to_owned(),
                format!("topics predict DIR {text}"),
            ],
        })
    };
    let mut scenes = vec![
        scene("topics", "", "mean-field")?,
        scene("topics-collapsed", "", "cvb0")?,
        scene("topics-of-shards", "--shards 3", "mean-field")?,
    ];
    let (corpus, fitted) = (desk.join("topics"), desk.join("topics-to-update"));
    let fit = format!(
        "topics fit {} -k 4 --batch 10 --passes 3 --seed 2",
        corpus.display()
    );
    done(&fit, &fitted)?;
    scenes.push(Scene {
        name: "topics update",
        verb: "topics update",
        given: format!("{} {text} --batch 10 --passes 2", fitted.display()),
        again: Again::Topics,
        uses: vec!["topics show DIR --json".to_owned()],
    });
    Ok(scenes)
}

fn of_pictures(desk: &Path) -> Result<Vec<Scene>, String> {
    let images = written(desk, "images-idx3", &images())?;
    let scene = |name, flags: &str| Scene {
        name,
        verb: "vae fit",
        given: format!(
            "{} --latent 2 --batch 20 --seed 2 {flags}",
            images.display()
        ),
        again: Again::Resume,
        uses: vec![
            "vae sample DIR --count 3 --out OUT".to_owned(),
            format!("vae encode DIR {} --out OUT", images.display()),
        ],
    };
    Ok(vec![
        scene("vae", "--hidden 8 --epochs 6"),
        scene("vae full", "--hidden 4 --epochs 4 --full-vb"),
    ])
}

fn plane() -> String {
    let mut text = "x,y\n".to_owned();
    for i in 0..60 {
        let (cx, cy) = [(-4.0, 0.0), (4.0, 1.0), (0.0, 6.0)][i % 3];
        let angle = i as f64 * 2.4;
        let radius = 0.1 * ((i / 3) % 9) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},{}",
            cx + radius * angle.cos(),
            cy + radius * angle.sin()
        );
    }
    text
}

fn bits() -> String {
    let mut text = "a,b,c,d\n".to_owned();
    for i in 0..40 {
        let (p, q) = (f64::from(i % 2), f64::from(i / 2 % 2));
        let noise = 0.01 * f64::from(i % 7);
        let _ = writeln!(text, "{},{},{},{}", p + noise, p, q - noise, q);
    }
    text
}

/// Returns pictures of six by six pixels, each of which shows a bar, in the IDX format.
fn images() -> Vec<u8> {
    const COUNT: u8 = 60;
    let mut dice = Dice(5);
    let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, 6, 0, 0, 0, 6];
    for _ in 0..COUNT {
        let (position, lying) = (dice.below(6), dice.below(2) == 0);
        for k in 0..36 {
            let on = if lying {
                k / 6 == position
            } else {
                k % 6 == position
            };
            bytes.push(if on { 240 } else { dice.below(20) as u8 });
        }
    }
    bytes
}

fn documents() -> String {
    const WORDS: [[&str; 6]; 2] = [
        ["river", "water", "fish", "stream", "bridge", "flood"],
        ["proof", "lemma", "number", "theorem", "field", "prime"],
    ];
    let mut dice = Dice(9);
    let mut text = String::new();
    for i in 0..80 {
        let words: Vec<&str> = (0..25).map(|_| WORDS[i % 2][dice.below(6)]).collect();
        let _ = writeln!(text, "{{\"text\": \"{}\"}}", words.join(" "));
    }
    text
}
