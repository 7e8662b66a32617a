//! Builds the playground. It is one page with the checker, the fits and the reports of the library, compiled to
//! WebAssembly.
//!
//! The page needs no other files and can be opened directly from disk. Its sources are in `docs/playground`, and its
//! engine is the crate `jensen-playground`. The standard library for WebAssembly comes from the toolchain (`rustup
//! target add wasm32-unknown-unknown`). Otherwise it is compiled from the sources of a toolchain, which is either the
//! current one (`rustup component add rust-src`) or Debian's (packages `rustc-web` and `rust-web-src`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::run::{self, Ended};

const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler, which finds its own sources.
const DEBIAN: &str = "/usr/bin/rustc";

/// Vector instructions, which all recent browsers support.
const FEATURES: &str = "-Ctarget-feature=+simd128";
/// The stack is as deep as the stack of a thread.
const STACK: &str = "-Clink-arg=-zstack-size=8388608";

const EXAMPLES: [(&str, &str); 4] = [
    ("Eight schools", "1-schools"),
    ("A line through points (CSV)", "2-line"),
    ("Counts (CSV)", "3-counts"),
    ("Not to be trusted", "4-improper"),
];

/// Builds the page in the folder `target/playground`.
pub fn build(root: &Path) -> Result<Ended, String> {
    match page(root)? {
        Ok(page) => {
            println!("{}", page.display());
            Ok(Ended::Done)
        }
        Err(reason) => Ok(Ended::Skipped(reason)),
    }
}

/// Returns the path of the page that was built, or the reason why it cannot be built.
pub fn page(root: &Path) -> Result<Result<PathBuf, String>, String> {
    let Some(toolchain) = toolchain(root) else {
        return Ok(Err(format!(
            "no toolchain here compiles for {TARGET}: `rustup target add {TARGET}`, or Debian's rustc-web and rust-web-src"
        )));
    };
    let folder = run::target(root)?.join("playground");
    let built = folder.join("build");
    let built_in = built.to_string_lossy();
    let linker = toolchain.linker.display();
    let flags = format!("{FEATURES} -Clinker={linker} {STACK}");
    let mut variables = vec![
        ("RUSTFLAGS", flags.as_str()),
        ("CARGO_TARGET_DIR", &*built_in),
    ];
    let mut arguments = vec![
        "build",
        "--release",
        "-p",
        "jensen-playground",
        "--target",
        TARGET,
    ];
    if toolchain.from_sources {
        arguments.push("-Zbuild-std=std,panic_abort");
        variables.push(("RUSTC_BOOTSTRAP", "1"));
    }
    if let Some(rustc) = &toolchain.rustc {
        variables.push(("RUSTC", rustc));
    }
    run::cargo(root, &arguments, &variables)?;
    let engine = read(&built.join(TARGET).join("release/jensen_playground.wasm"))?;
    let html = assembled(&root.join("docs/playground"), &packed(&engine)?)?;
    let page = folder.join("index.html");
    fs::write(&page, html).map_err(|e| format!("{}: {e}", page.display()))?;
    Ok(Ok(page))
}

struct Toolchain {
    /// The compiler, if it is not the compiler of the current toolchain.
    rustc: Option<&'static str>,
    from_sources: bool,
    linker: PathBuf,
}

/// Returns the first toolchain that can build the page. CI installs Debian's.
fn toolchain(root: &Path) -> Option<Toolchain> {
    let own = printed(root, "rustc", "sysroot")?;
    let host = printed(root, "rustc", "host-tuple")?;
    // The linker must come from a rustup toolchain, because Debian's linkers are older than its newest compiler.
    let linker = own.join("lib/rustlib").join(host).join("bin/rust-lld");
    if !linker.is_file() {
        return None;
    }
    let found = |rustc, from_sources| Toolchain {
        rustc,
        from_sources,
        linker: linker.clone(),
    };
    if own.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Some(found(None, false));
    }
    if has_sources(&own) {
        return Some(found(None, true));
    }
    let debian = || printed(root, DEBIAN, "sysroot").is_some_and(|sysroot| has_sources(&sysroot));
    if !debian() && std::env::var_os("CI").is_some() {
        run::apt_get(&["rustc-web", "rust-web-src"]);
    }
    debian().then(|| found(Some(DEBIAN), true))
}

fn has_sources(sysroot: &Path) -> bool {
    sysroot
        .join("lib/rustlib/src/rust/library/Cargo.lock")
        .is_file()
}

fn printed(root: &Path, rustc: &str, what: &str) -> Option<PathBuf> {
    let mut command = Command::new(rustc);
    command.args(["--print", what]).current_dir(root);
    let output = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn packed(bytes: &[u8]) -> Result<String, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    Ok(STANDARD.encode(written.map_err(|e| e.to_string())?))
}

fn assembled(sources: &Path, engine: &str) -> Result<String, String> {
    let text = |name: &str| {
        let bytes = read(&sources.join(name))?;
        String::from_utf8(bytes).map_err(|e| format!("{name}: {e}"))
    };
    let mut examples = Vec::new();
    for (name, stem) in EXAMPLES {
        let [program, data] = ["stan", "data"].map(|kind| text(&format!("examples/{stem}.{kind}")));
        examples.push(json!({ "name": name, "program": program?, "data": data? }));
    }
    // The text of a script must not contain the end tag of the script.
    let examples = json!(examples).to_string().replace('<', "\\u003c");
    let mut html = text("index.html")?;
    for (slot, content) in [
        ("style.css", text("style.css")?),
        ("worker.js", text("worker.js")?),
        ("page.js", text("page.js")?),
        ("examples", examples),
        ("engine", engine.to_owned()),
    ] {
        let mark = format!("{{{{{slot}}}}}");
        if html.matches(&mark).count() != 1 {
            return Err(format!("index.html has no slot for {slot}"));
        }
        html = html.replace(&mark, &content);
    }
    Ok(html)
}
