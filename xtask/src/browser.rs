//! Checks pages in a headless Chromium. The pages are the reports of real fits, and the playground.
//!
//! Chromium must be installed on the machine (CI, which is root, installs Debian's package `chromium`). Its driver and
//! the accessibility rules are installed from npm into `target/browser`, which also receives pictures of all pages.
//! `xtask/browser/look.mjs` defines the checks of a page.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::playground;
use crate::run::{self, Ended};

const LIMIT: Duration = Duration::from_secs(300);

const CHROMIUM: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Runs fits with the command and checks the pages that they write.
pub fn check(root: &Path) -> Result<Ended, String> {
    if !runs("node", "--version") || !runs("npm", "--version") {
        return Ok(Ended::Skipped("node and npm are not installed".into()));
    }
    let Some(chromium) = chromium() else {
        return Ok(Ended::Skipped(
            "no Chromium is installed (`apt-get install chromium`)".into(),
        ));
    };
    let desk = run::target(root)?.join("browser");
    if let Err(reason) = prepare(root, &desk) {
        return Ok(Ended::Skipped(reason));
    }
    let jensen = run::command_folder(root)?.join("jensen");
    let page = playground::page(root)?;
    let end = Instant::now() + LIMIT;
    let look = |script: &str, page: Option<&Path>| {
        let mut command = Command::new("node");
        command
            .arg(desk.join(script))
            .args([&jensen, &PathBuf::from(&chromium), &desk])
            .args(page);
        let child = command.spawn().map_err(|e| format!("node: {e}"))?;
        finished(child, end).map_err(|error| format!("{script}: {error}"))
    };
    look("reports.mjs", None)?;
    match page {
        Ok(page) => look("playground.mjs", Some(&page))?,
        Err(reason) => println!("playground: skipped, {reason}"),
    }
    Ok(Ended::Done)
}

/// Takes the pictures of the book from the same pages.
pub fn pictures(root: &Path) -> Result<Ended, String> {
    if let Ended::Skipped(reason) = check(root)? {
        return Ok(Ended::Skipped(reason));
    }
    let failed = |e: std::io::Error| format!("the book's pictures: {e}");
    let (from, to) = (
        run::target(root)?.join("browser/book"),
        root.join("docs/book/src/pictures"),
    );
    std::fs::create_dir_all(&to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)?.flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
    }
    Ok(Ended::Done)
}

fn finished(mut child: Child, end: Instant) -> Result<(), String> {
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err("something is wrong with the pages".into()),
            None if Instant::now() > end => {
                // This also ends the browsers that the process started.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it takes more than {} seconds", LIMIT.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn prepare(root: &Path, desk: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", desk.display());
    std::fs::create_dir_all(desk).map_err(failed)?;
    for entry in std::fs::read_dir(root.join("xtask/browser"))
        .map_err(failed)?
        .flatten()
    {
        std::fs::copy(entry.path(), desk.join(entry.file_name())).map_err(failed)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--silent"])
        .args(["--ignore-scripts", "--fetch-retries", "1"])
        .current_dir(desk);
    match npm.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("playwright-core and axe-core cannot be downloaded from npm".into()),
    }
}

/// Returns the browser. If it is missing and this machine is CI's, it is installed first.
fn chromium() -> Option<String> {
    let found = || CHROMIUM.iter().find(|name| runs(name, "--version"));
    if found().is_none() && std::env::var_os("CI").is_some() {
        run::apt_get(&["chromium"]);
    }
    let name = found()?;
    let paths = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&paths).map(|folder| folder.join(name));
    let path = candidates.find(|path| path.is_file())?;
    Some(path.to_string_lossy().into_owned())
}

fn runs(program: &str, flag: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(flag)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
