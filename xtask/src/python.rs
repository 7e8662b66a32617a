//! Builds a wheel of the Python package, installs it into separate environments, and tests it there.
//!
//! If `JENSEN_BUILT` contains the path of a folder with a built extension module, the wheel contains this module.
//! Otherwise maturin builds the module in the same profile as `pip install .`.
//!
//! | check | environment | what is run |
//! | --- | --- | --- |
//! | `python` | `target/python` | types, and all tests with ArviZ 0.x |
//! | | `target/python-arviz1` | the tests of ArviZ 1, which needs a later Python |
//! | `bridges` | `target/python` | the tests with PyMC, NumPyro, nutpie and BlackJAX, which are large, and the gallery with PyMC |
//! | `distributed` | `target/python` | the tests of many processes, with real Ray and real MPI over loopback |
//! | `wheel` | `target/python` | nothing: it builds a wheel for other machines |

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{self, Ended};

/// Versions of Python, in order of preference. The stable ABI begins with version 3.10, and ArviZ 0.x supports at most
/// 3.11.
const VERSIONS: [&str; 4] = ["3.11", "3.10", "3.12", "3.13"];

const LATER: [&str; 2] = ["3.12", "3.13"];

const TOOLS: [&str; 1] = ["maturin>=1.9,<2"];

/// The version, which all crates share.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Time limit of a test run. When it passes, the check stops the run and reports the position at which it hangs. The
/// slowest run takes five minutes on an idle machine, and twice as long beside other work.
const LIMIT: Duration = Duration::from_secs(900);

/// Builds and installs the package, checks its types, and runs its tests. The check is skipped if there is no Python
/// interpreter, or if nothing can be downloaded.
pub fn check(root: &Path) -> Result<Ended, String> {
    let (main, wheel) = match prepared(root)? {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(Ended::Skipped(reason)),
    };
    if main.install(&[&format!("{wheel}[test]")]).is_err() {
        return Ok(Ended::Skipped(
            "the requirements of the tests cannot be downloaded".into(),
        ));
    }
    main.run(&["-m", "mypy"])?;
    main.test(&[])?;
    match arviz1(root, &wheel)? {
        Ended::Done => println!("ArviZ 1: in order"),
        Ended::Skipped(reason) => println!("ArviZ 1: skipped, {reason}"),
    }
    Ok(Ended::Done)
}

/// Runs the tests of code that reads models of PyMC and NumPyro, and of samplers that use Jensen's gradients.
pub fn bridges(root: &Path) -> Result<Ended, String> {
    let (main, wheel) = match prepared(root)? {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(Ended::Skipped(reason)),
    };
    if main
        .install(&[&format!("{wheel}[test,test-bridges]")])
        .is_err()
    {
        return Ok(Ended::Skipped(
            "PyMC and NumPyro cannot be downloaded".into(),
        ));
    }
    let tests = [
        "python/tests/test_bridges.py",
        "python/tests/test_samplers.py",
        "python/tests/test_book.py",
    ];
    main.test(&tests)?;
    Ok(Ended::Done)
}

/// Runs the tests of work by many processes. The packages that they need are large.
pub fn distributed(root: &Path) -> Result<Ended, String> {
    let (main, wheel) = match prepared(root)? {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(Ended::Skipped(reason)),
    };
    if main
        .install(&[&format!("{wheel}[test-distributed]")])
        .is_err()
    {
        return Ok(Ended::Skipped("Ray and MPI cannot be downloaded".into()));
    }
    // Ray once waited forever for a worker that a test had killed.
    let (tests, start) = (["python/tests/test_distributed.py"], Instant::now());
    if let Err(error) = main.test(&tests) {
        if start.elapsed() < LIMIT {
            return Err(error);
        }
        println!("stopped after {} s, and tried once more", LIMIT.as_secs());
        main.test(&tests)?;
    }
    Ok(Ended::Done)
}

/// Builds a wheel that other machines can install. It is linked against an old glibc by the zig from PyPI, so no C
/// compiler is necessary.
pub fn wheel(root: &Path) -> Result<Ended, String> {
    let Some(interpreter) = interpreter(&VERSIONS) else {
        return Ok(Ended::Skipped(
            "no Python from 3.10 on with venv is installed".into(),
        ));
    };
    let main = Environment::made(root, &interpreter, "target/python")?;
    if main.install(&[TOOLS[0], "ziglang"]).is_err() {
        return Ok(Ended::Skipped(
            "maturin and zig cannot be downloaded".into(),
        ));
    }
    let build = ["-m", "maturin", "build", "-q", "--zig", "--profile", "dist"];
    let output = [
        "--compatibility",
        "manylinux2014",
        "--out",
        "target/release-wheels",
    ];
    main.run(&[&build[..], &output].concat())?;
    println!("{}", newest(&root.join("target/release-wheels"))?);
    Ok(Ended::Done)
}

fn prepared(root: &Path) -> Result<Result<(Environment<'_>, String), String>, String> {
    let Some(interpreter) = interpreter(&VERSIONS) else {
        return Ok(Err("no Python from 3.10 on with venv is installed".into()));
    };
    let main = Environment::made(root, &interpreter, "target/python")?;
    let wheels = "target/wheels";
    if let Some(built) = run::given() {
        let module = built.join("libjensen_python.so");
        let module = module.to_string_lossy();
        main.run(&["xtask/python/pack.py", &module, wheels, VERSION])?;
    } else {
        if main.install(&TOOLS).is_err() {
            return Ok(Err("maturin cannot be downloaded".into()));
        }
        let build = ["build", "-q", "--out", wheels];
        main.run(&[&["-m", "maturin"][..], &build].concat())?;
    }
    let wheel = newest(&root.join(wheels))?;
    main.install(&["--force-reinstall", "--no-deps", &wheel])?;
    Ok(Ok((main, wheel)))
}

fn arviz1(root: &Path, wheel: &str) -> Result<Ended, String> {
    let Some(interpreter) = interpreter(&LATER) else {
        return Ok(Ended::Skipped("no Python from 3.12 on is installed".into()));
    };
    let later = Environment::made(root, &interpreter, "target/python-arviz1")?;
    let package = format!("{wheel}[test-arviz1]");
    if later.install(&[&package]).is_err() {
        return Ok(Ended::Skipped("it cannot be downloaded".into()));
    }
    later.install(&["--force-reinstall", "--no-deps", wheel])?;
    later.test(&["python/tests/test_arviz.py"])?;
    Ok(Ended::Done)
}

struct Environment<'a> {
    root: &'a Path,
    python: String,
}

impl<'a> Environment<'a> {
    fn made(root: &'a Path, interpreter: &str, folder: &str) -> Result<Self, String> {
        let python = root.join(folder).join("bin/python");
        if !python.exists() {
            start(root, interpreter, &["-m", "venv", folder])?;
        }
        Ok(Self {
            root,
            python: python.to_string_lossy().into_owned(),
        })
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        start(self.root, &self.python, arguments)
    }

    fn test(&self, files: &[&str]) -> Result<(), String> {
        // pytest keeps the standard error of a test until the test ends, so a hanging test would show nothing.
        let watched = format!(
            "import faulthandler, os, sys, pytest; \
             faulthandler.dump_traceback_later({}, exit=True, file=os.fdopen(os.dup(2), 'w')); \
             sys.exit(pytest.main(['-p', 'no:cacheprovider', *sys.argv[1:]]))",
            LIMIT.as_secs()
        );
        self.run(&[&["-c", &watched][..], files].concat())
    }

    fn install(&self, what: &[&str]) -> Result<(), String> {
        // Without a network, only the first of many waits is useful.
        let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
        let patience = ["--retries", "1", "--timeout", "20"];
        self.run(&[&pip[..], &patience, what].concat())
    }
}

fn interpreter(versions: &[&str]) -> Option<String> {
    let named = versions.iter().map(|version| format!("python{version}"));
    let kept = versions.iter().flat_map(|version| of_pyenv(version));
    let plain = std::iter::once("python3".to_owned());
    let oldest = versions.iter().map(|version| minor(version)).min()?;
    named
        .chain(kept)
        .chain(plain)
        .find(|name| serves(name, oldest))
}

fn minor(version: &str) -> u32 {
    let minor = version.split('.').nth(1);
    minor.and_then(|minor| minor.parse().ok()).unwrap_or(0)
}

/// Searches for pyenv's interpreters of a version, because pyenv's commands on the path support only one version.
fn of_pyenv(version: &str) -> Vec<String> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let folders = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let folders = folders.into_iter().flatten().filter_map(Result::ok);
    folders
        .filter(|folder| {
            let name = folder.file_name();
            name.to_string_lossy().starts_with(&format!("{version}."))
        })
        .map(|folder| folder.path().join("bin/python").display().to_string())
        .collect()
}

fn serves(name: &str, oldest: u32) -> bool {
    let script = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < (3, {oldest}))");
    let mut command = Command::new(name);
    command.args(["-c", &script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn newest(folder: &Path) -> Result<String, String> {
    let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let newest = files
        .filter_map(Result::ok)
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .max();
    newest
        .map(|(_, path)| path.to_string_lossy().into_owned())
        .ok_or_else(|| format!("no wheel in `{}`", folder.display()))
}

fn start(root: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    // The commands of an environment find each other on the path, as they do after activation.
    if let Some(own) = Path::new(program).parent().filter(|own| own.is_absolute()) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(own.to_owned()).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot run `{program}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {} failed", arguments.join(" ")))
    }
}
