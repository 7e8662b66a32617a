//! Writes the man pages of the command and of all its subcommands to a folder: `cargo run -p jensen-cli --example man
//! -- FOLDER`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    std::fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(jensen_cli::command(), Path::new(&folder))
}
