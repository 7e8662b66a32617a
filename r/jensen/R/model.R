#' A Stan program
#'
#' @param stan The file of a program, or its code. Code of brms (`brms::stancode()`, `brms::make_stancode()`) is used
#'   unchanged. A program that declares all its arrays in the syntax before Stan 2.33 (`real x[N]`) is read in that
#'   syntax.
#' @param include Folders to search for the files of `#include`.
#' @return An object of class `jensen_model` with
#'
#' * `$check(data = NULL)`: parses and type-checks the program, and compiles it with data if they are given. Returns
#'   `TRUE` invisibly. An error of class `jensen_error` has the diagnostics.
#' * `$fit(data = NULL, ...)`: fits the program, see below.
#' * `$calibrate(simulator, data = NULL, count = 200, out = NULL, ...)`: fits `count` data sets from the generated
#'   quantities of the program `simulator`, and tests whether the ranks of the simulated parameters among the draws are
#'   uniform. Returns a list with `calibrated`, `ranks`, `info` (the tests) and `folder`.
#' * `$code()`: the text of the program.
#' * `$file`, `$include`.
#'
#' @section Fitting:
#' `$fit(data = NULL, seed = NULL, draws = NULL, method = NULL, family = NULL, refine = NULL, init = NULL, threads = NULL,
#' max_seconds = NULL, out = NULL, progress = interactive(), ...)` returns a [jensen_fit].
#'
#' * `data` is a list of values (scalars, vectors, matrices, arrays, factors, logical values, data frames, lists of
#'   values of one shape), `brms::standata()`, or a file that the command reads. A number counts as an array of length
#'   one if the program declares an array, and an array of length one as a number if the program declares a number.
#' * `init` is `0`, `"random"`, or a list with values of parameters.
#' * `out` is a folder for the results. The default is a temporary folder of the session.
#' * `...` are the other flags of `jensen fit` with `_` instead of `-`, such as `max_iters = 1000` or
#'   `importance_resample = TRUE`. `coords` may be a list.
#'
#' A fit that is not trusted gives a warning. If you interrupt a fit (Esc, Ctrl-C), [jensen_resume()] can continue it
#' from its folder.
#' @export
#' @examples
#' if (jensen_is_installed()) {
#'   model <- jensen_model("
#'     data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
#'     parameters { real<lower=0, upper=1> theta; }
#'     model { theta ~ beta(1, 1); y ~ bernoulli(theta); }")
#'   fit <- model$fit(list(N = 10, y = c(0, 1, 0, 0, 0, 0, 0, 0, 0, 1)), seed = 1)
#'   fit
#' }
jensen_model <- function(stan, include = NULL) {
  file <- program_file(stan)
  include <- as.character(include)
  folders <- as.vector(rbind(rep("--include", length(include)), path.expand(include)))
  dims <- NULL
  data_file <- function(data) {
    if (is.null(dims)) {
      shown <- run_jensen(c("show", file, "--stage", "ast", folders))
      dims <<- declared_dims(shown$stdout)
    }
    written_data(data, dims)
  }
  model <- list(
    file = file,
    include = include,
    code = function() paste(readLines(file, warn = FALSE, encoding = "UTF-8"), collapse = "\n"),
    check = function(data = NULL) {
      given <- if (!is.null(data)) c("--data", data_file(data))
      said <- run_jensen(c("check", file, given, folders))
      remark(said$stderr)
      remark(said$stdout)
      invisible(TRUE)
    },
    fit = function(data = NULL, seed = NULL, draws = NULL, method = NULL, family = NULL, refine = NULL, init = NULL,
                   threads = NULL, max_seconds = NULL, out = NULL, progress = interactive(), ...) {
      flags <- list(seed = seed, draws = draws, method = method, family = family, refine = refine, init = init,
                    threads = threads, max_seconds = max_seconds, ...)
      given <- if (!is.null(data)) c("--data", data_file(data))
      fit_in_folder(c("fit", file, given, folders, flags_of(flags)), out, progress)
    },
    calibrate = function(simulator, data = NULL, count = 200, out = NULL, progress = interactive(), ...) {
      given <- if (!is.null(data)) c("--data", data_file(data))
      folder <- if (is.null(out)) tempfile("jensen-calibration-") else path.expand(out)
      flags <- flags_of(list(calibrate = count, simulator = program_file(simulator), ...))
      said <- run_jensen(c("fit", file, given, folders, flags, "--out", folder), progress, folder)
      list(
        calibrated = said$exit == DONE,
        info = jsonlite::fromJSON(file.path(folder, "calibration.json")),
        ranks = utils::read.csv(file.path(folder, "ranks.csv"), check.names = FALSE),
        folder = folder
      )
    }
  )
  structure(model, class = "jensen_model")
}

#' @export
print.jensen_model <- function(x, ...) {
  cat(x$code(), "\n", sep = "")
  invisible(x)
}

# The file of a program. Code is written to a temporary file.
program_file <- function(stan) {
  if (!is.character(stan) || !length(stan) || anyNA(stan)) {
    fail("a program must be the name of its file, or its code")
  }
  code <- paste(as.character(stan), collapse = "\n")
  if (!grepl("[{\n]", code)) {
    if (!file.exists(code)) {
      fail(sprintf("there is no file '%s'", code))
    }
    return(normalizePath(code))
  }
  file <- file.path(tempfile("jensen-"), "model.stan")
  dir.create(dirname(file))
  writeLines(enc2utf8(code), file, useBytes = TRUE)
  file
}

# The file of the data. Values are written to a temporary file.
written_data <- function(data, dims) {
  if (is.character(data) && length(data) == 1) {
    if (!file.exists(data)) {
      fail(sprintf("there is no file '%s'", data))
    }
    return(normalizePath(data))
  }
  file <- tempfile("jensen-data-", fileext = ".json")
  writeLines(stan_json(unclass(data), dims), file)
  file
}

# Runs a command that fits into a folder, and reads the result.
fit_in_folder <- function(arguments, out, progress) {
  folder <- if (is.null(out)) tempfile("jensen-fit-") else path.expand(out)
  judged(c(arguments, "--out", folder), folder, progress)
}

# Fits, shows the command's remarks, and warns if the result is not trusted.
judged <- function(arguments, folder, progress) {
  said <- run_jensen(arguments, progress, folder)
  remark(said$stderr)
  fit <- new_fit(folder)
  if (!fit$trusted) {
    distrust(fit$verdict)
  }
  fit
}

#' Fits in folders
#'
#' `jensen_load()` reads the fit in a folder. `jensen_resume()` continues a fit that was interrupted or that used up its
#' budget, and gives the result of an uninterrupted fit.
#'
#' @param folder The folder of a fit.
#' @param progress Whether to show progress.
#' @param ... Flags of `jensen fit`, such as `max_iters`, which override the stored ones.
#' @return A [jensen_fit].
#' @export
#' @examples
#' \dontrun{
#' fit <- jensen_load("results")
#' fit <- jensen_resume("results", max_seconds = 600)
#' }
jensen_load <- function(folder) {
  new_fit(path.expand(folder))
}

#' @rdname jensen_load
#' @export
jensen_resume <- function(folder, progress = interactive(), ...) {
  folder <- path.expand(folder)
  judged(c("fit", "--resume", folder, flags_of(list(...))), folder, progress)
}
