# Fits models of brms with the command, runs the functions of brms on each fit, and compares the draws with long runs of NUTS.
#
#   JENSEN=path/to/jensen Rscript r/jensen/tools/models.R [NAME...]
#
# Prints a row a model: verdict, seconds, the largest distance of a mean from that of the long run in standard errors of the difference and
# in standard deviations, the ratio of standard deviations that is farthest from one, and which functions of brms failed. Exits with 1 where
# one did. long_runs.csv has the long runs; long_runs.R and long_runs.py say how they were made.

suppressPackageStartupMessages({
  library(brms)
  library(jensen)
})
tools <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]]))
source(file.path(tools, "cases.R"))
long <- utils::read.csv(file.path(tools, "long_runs.csv"))

# What brms does with a fit; `m` says what of the model.
uses <- list(
  summary = function(fit, m) capture.output(print(summary(fit))),
  conditional_effects = function(fit, m) conditional_effects(fit, categorical = isTRUE(m$categories), ndraws = 100),
  pp_check = function(fit, m) suppressMessages(pp_check(fit, ndraws = 10, resp = m$response)),
  loo = function(fit, m) suppressWarnings(loo(fit, resp = m$response)),
  predict = function(fit, m) predict(fit, resp = m$response, ndraws = 100),
  fitted = function(fit, m) fitted(fit, resp = m$response, ndraws = 100),
  hypothesis = function(fit, m) if (is.null(m$test)) NULL else hypothesis(fit, m$test, class = m$class),
  posterior_epred = function(fit, m) posterior_epred(fit, resp = m$response, ndraws = 10),
  bayes_R2 = function(fit, m) if (isTRUE(m$categories)) NULL else bayes_R2(fit, resp = m$response, ndraws = 100),
  as_draws = function(fit, m) as_draws_df(fit)
)

# Means and standard deviations of the draws beside those of the long run. The error of a mean of draws has two parts: the draws that were
# kept are finitely many, and so are those that they were chosen from (`mcse`).
distances <- function(fit, info, name) {
  draws <- jensen_load(fit$jensen$folder)$draws()
  theirs <- long[long$model == name & long$variable %in% colnames(draws) & long$sd > 0, ]
  ours <- draws[, theirs$variable, drop = FALSE]
  mean <- colMeans(ours)
  sd <- apply(ours, 2, stats::sd)
  rows <- match(theirs$variable, info$parameters$name)
  error <- sqrt(theirs$mcse^2 + info$parameters$mcse[rows]^2 + sd^2 / nrow(ours))
  ratio <- sd / theirs$sd
  list(
    count = nrow(theirs),
    errors = max(abs(mean - theirs$mean) / error),
    distance = max(abs(mean - theirs$mean) / theirs$sd),
    ratio = ratio[[which.max(abs(log(ratio)))]]
  )
}

asked <- commandArgs(trailingOnly = TRUE)
failures <- 0
seconds <- numeric()
cat(sprintf("%-15s %-8s %7s %7s %6s %6s %6s %6s  %s\n", "model", "verdict", "seconds", "fit", "means", "errors", "sds", "ratio",
            "functions of brms that failed"))
for (name in if (length(asked)) asked else names(models)) {
  m <- models[[name]]
  arguments <- brm_arguments(name)
  m$test <- if ("test" %in% names(m)) m$test else "x = 0"
  if (is.null(m$class)) m$class <- "b"
  begun <- proc.time()[["elapsed"]]
  fit <- tryCatch(suppressWarnings(do.call(brm_jensen, c(arguments, list(seed = 1, threads = 2)))), error = identity)
  took <- proc.time()[["elapsed"]] - begun
  if (inherits(fit, "error")) {
    failures <- failures + 1
    cat(sprintf("%-15s FAILED %s\n", name, conditionMessage(fit)))
    next
  }
  info <- jsonlite::fromJSON(file.path(fit$jensen$folder, "fit.json"))
  failed <- character()
  for (use in names(uses)) {
    used <- tryCatch({
      uses[[use]](fit, m)
      NULL
    }, error = identity)
    if (!is.null(used)) {
      failed <- c(failed, paste0(use, " (", strsplit(conditionMessage(used), "\n")[[1]][1], ")"))
    }
  }
  failures <- failures + length(failed)
  seconds <- c(seconds, took)
  far <- distances(fit, info, name)
  cat(sprintf("%-15s %-8s %7.1f %7.2f %6d %6.1f %6.3f %6.2f  %s\n", name, if (fit$jensen$trusted) "trusted" else "NOT", took,
              sum(unlist(info$seconds)), far$count, far$errors, far$distance, far$ratio,
              if (length(failed)) paste(failed, collapse = "; ") else "none"))
  if (!fit$jensen$trusted) cat("   ", gsub("\n", "\n    ", fit$jensen$verdict), "\n")
  flush(stdout())
}
cat(sprintf("%d models, %.1f s in the median, %.1f at most\n", length(seconds), stats::median(seconds), max(seconds)))
quit(status = as.integer(failures > 0))
