#' The path of the command
#'
#' The functions look in the option `jensen.path`, the environment variable `JENSEN`, the folder to which
#' [install_jensen()] writes, and the search path, in this order.
#'
#' @return The path of the command `jensen`. If the command is not found, an error of class `jensen_error`.
#' @seealso [install_jensen()]
#' @export
#' @examples
#' try(jensen_path())
jensen_path <- function() {
  asked <- c(getOption("jensen.path"), Sys.getenv("JENSEN", NA))
  asked <- asked[!is.na(asked) & nzchar(asked)]
  if (length(asked)) {
    if (!is_command(asked[[1]])) {
      fail(sprintf("'%s' is not a command: set options(jensen.path = ) or JENSEN to the file of `jensen`", asked[[1]]))
    }
    return(normalizePath(asked[[1]]))
  }
  found <- Filter(is_command, c(installed_path(), unname(Sys.which("jensen"))))
  if (!length(found)) {
    fail("the command `jensen` is not installed: run install_jensen() with the path of a clone or of a binary")
  }
  found[[1]]
}

#' The version of the command
#'
#' @return A [numeric_version].
#' @export
#' @examples
#' if (jensen_is_installed()) jensen_version()
jensen_version <- function() {
  numeric_version(sub("^jensen +", "", trimws(run_jensen("--version")$stdout)))
}

#' @rdname jensen_path
#' @export
jensen_is_installed <- function() {
  tryCatch(nzchar(jensen_path()), jensen_error = function(e) FALSE)
}

#' Install the command
#'
#' Builds the command from a clone of Jensen's source with cargo, or copies an existing binary. The function itself
#' downloads nothing. Cargo downloads the crates of the build unless they are vendored.
#'
#' @param from The folder of the clone, or the file of a binary.
#' @param to The folder for the command. The default is a folder of the user in which [jensen_path()] finds the command.
#' @return The path of the command, invisibly.
#' @export
#' @examples
#' \dontrun{
#' install_jensen("~/src/jensen")
#' install_jensen("/usr/local/bin/jensen")
#' }
install_jensen <- function(from, to = dirname(installed_path())) {
  from <- path.expand(from)
  built <- if (dir.exists(from)) build_command(from) else from
  if (!is_command(built)) {
    fail(sprintf("'%s' is neither a clone of Jensen nor a command", from))
  }
  dir.create(to, recursive = TRUE, showWarnings = FALSE)
  target <- file.path(to, basename(installed_path()))
  # Delete the old file first, because a running binary cannot be overwritten.
  unlink(target)
  if (!file.copy(built, target)) {
    fail(sprintf("cannot write '%s'", target))
  }
  Sys.chmod(target, "755")
  invisible(normalizePath(target))
}

build_command <- function(clone) {
  cargo <- unname(Sys.which("cargo"))
  if (!file.exists(file.path(clone, "Cargo.toml"))) {
    fail(sprintf("'%s' has no Cargo.toml: it is no clone of Jensen", clone))
  }
  if (!nzchar(cargo)) {
    fail("cargo is not installed: see https://rustup.rs")
  }
  target <- file.path(tempdir(), "jensen-target")
  arguments <- c("build", "--release", "-p", "jensen-cli", "--target-dir", target)
  built <- processx::run(cargo, arguments, wd = clone, echo = TRUE, error_on_status = FALSE)
  if (built$status != 0) {
    fail("cargo could not build the command; its messages are above")
  }
  file.path(target, "release", basename(installed_path()))
}

installed_path <- function() {
  name <- if (.Platform$OS.type == "windows") "jensen.exe" else "jensen"
  file.path(tools::R_user_dir("jensen", "data"), "bin", name)
}

is_command <- function(path) {
  nzchar(path) && file.exists(path) && !dir.exists(path) && file.access(path, 1) == 0
}
