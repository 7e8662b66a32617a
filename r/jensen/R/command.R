# Runs the command as a process.

# Exit codes of the command that come with results.
DONE <- 0L
UNTRUSTED <- 4L

# Seconds that an interrupted run may take to write its results.
PATIENCE <- 60

# Runs the command and returns its output. With `progress`, one line of the console shows the current step of `--verbose`.
# Exit codes without results are errors.
run_jensen <- function(arguments, progress = FALSE, folder = NULL, accept = c(DONE, UNTRUSTED)) {
  command <- jensen_path()
  if (progress) {
    arguments <- c(arguments, "--verbose")
  }
  out <- tempfile("jensen-out-")
  on.exit(unlink(out), add = TRUE)
  process <- processx::process$new(command, arguments, stdout = out, stderr = "|", encoding = "UTF-8")
  on.exit(if (process$is_alive()) process$kill(), add = TRUE)
  said <- character()
  listen <- function() {
    lines <- process$read_error_lines()
    step <- grepl(STEP, lines)
    if (progress && any(step)) {
      show_step(utils::tail(lines[step], 1))
    }
    said <<- c(said, lines[!step])
  }
  tryCatch(
    while (process$is_alive()) {
      process$poll_io(200)
      listen()
    },
    interrupt = function(condition) interrupted(process, folder)
  )
  while (process$is_incomplete_error()) {
    process$poll_io(200)
    listen()
  }
  if (progress) {
    show_step("")
  }
  status <- process$get_exit_status()
  message <- paste(said, collapse = "\n")
  if (!status %in% accept) {
    fail(message, exit = status)
  }
  text <- paste(readLines(out, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  list(stdout = text, stderr = message, exit = status)
}

# A step in the output of `--verbose`.
STEP <- "^\\[ *[0-9.]+ s\\] "

show_step <- function(line) {
  width <- max(getOption("width") - 1, 20)
  cat("\r", formatC(substr(line, 1, width), width = -width), "\r", sep = "")
  utils::flush.console()
}

# Ends a run that the user interrupted. The command writes results and a checkpoint first.
interrupted <- function(process, folder) {
  process$interrupt()
  process$wait(timeout = 1000 * PATIENCE)
  again <- if (is.null(folder)) "" else sprintf("; jensen_resume(\"%s\") continues it", folder)
  fail(paste0("interrupted", again), class = "jensen_interrupted", folder = folder)
}

# Raises an error of class `jensen_error`.
fail <- function(message, class = NULL, ...) {
  message <- sub("^error: ", "", message)
  stop(structure(
    class = c(class, "jensen_error", "error", "condition"),
    list(message = message, call = NULL, ...)
  ))
}

# Shows messages of the command that are no errors.
remark <- function(text) {
  if (nzchar(text)) {
    message(text)
  }
}

# Warns that a result is not to be trusted.
distrust <- function(verdict) {
  warning(structure(
    class = c("jensen_trust_warning", "warning", "condition"),
    list(message = verdict, call = NULL)
  ))
}

# Raises an error if a suggested package is not installed.
need <- function(package, what) {
  if (!requireNamespace(package, quietly = TRUE)) {
    fail(sprintf("%s needs the package %s: install.packages(\"%s\")", what, package, package))
  }
}

# Converts named arguments to flags of the command: `a_b` becomes `--a-b`. TRUE gives a flag without a value. NULL, NA and
# FALSE give none.
flags_of <- function(arguments) {
  if (length(arguments) && (is.null(names(arguments)) || !all(nzchar(names(arguments))))) {
    fail("flags of the command must be named arguments, such as max_iters = 1000")
  }
  flags <- Map(flag_of, names(arguments), arguments)
  as.character(unlist(flags, use.names = FALSE))
}

flag_of <- function(name, value) {
  flag <- paste0("--", gsub("_", "-", name, fixed = TRUE))
  if (is.null(value) || identical(value, FALSE) || (length(value) == 1 && is.atomic(value) && is.na(value))) {
    return(character())
  }
  if (isTRUE(value)) {
    return(flag)
  }
  if (name %in% LISTS) {
    return(c(flag, paste(value, collapse = ",")))
  }
  if (is.list(value)) {
    file <- tempfile(paste0("jensen-", name, "-"), fileext = ".json")
    writeLines(if (name == "init") stan_json(value) else jsonlite::toJSON(value, auto_unbox = TRUE), file)
    return(c(flag, file))
  }
  as.vector(rbind(flag, number_text(value)))
}

# Flags whose values are joined by commas.
LISTS <- c("save", "covariance_of")

# Formats numbers with all their digits. Other values stay unchanged.
number_text <- function(x) {
  if (!is.numeric(x)) {
    return(path.expand(as.character(x)))
  }
  short <- formatC(as.numeric(x), digits = 15, width = 1, format = "g")
  differs <- which(is.finite(x) & as.numeric(short) != x)
  short[differs] <- formatC(as.numeric(x[differs]), digits = 17, width = 1, format = "g")
  short
}
