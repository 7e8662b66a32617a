# Fits models of brms with the command, runs the functions of brms on each fit, and compares the draws with long runs of NUTS.
#
#   JENSEN=path/to/jensen Rscript r/jensen/tools/models.R [NAME...]
#
# The script prints one row per model: verdict, seconds, the largest distance of a mean from the long run in standard errors of the difference
# and in standard deviations, the ratio of standard deviations farthest from one with its variable, and the functions of brms that failed. It
# exits with 1 if a function failed. long_runs.R and long_runs.py make the long runs in long_runs.csv.

suppressPackageStartupMessages({
  library(brms)
  library(jensen)
})
tools <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]]))
source(file.path(tools, "cases.R"))
long <- utils::read.csv(file.path(tools, "long_runs.csv"))

# Uses of a fit by brms. `m` describes the model.
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

# Compares means and standard deviations of the draws with the long run, for all scalars that both have and that are no constants. The error
# of a mean has two parts: the number of kept draws is finite, and draws of a refined fit are dependent (`mcse`).
distances <- function(fit, info, name) {
  draws <- jensen_load(fit$jensen$folder)$draws()
  own <- info$parameters
  known <- own$name[!is.na(own$mean) & !is.na(own$sd)]
  theirs <- long[long$model == name & long$variable %in% known & long$sd > 1e-10, ]
  ours <- draws[, theirs$variable, drop = FALSE]
  mean <- colMeans(ours)
  sd <- apply(ours, 2, stats::sd)
  mcse <- if (!is.null(fit$jensen$ess)) own$mcse[match(theirs$variable, own$name)] else 0
  error <- sqrt(theirs$mcse^2 + mcse^2 + sd^2 / nrow(ours))
  ratio <- sd / theirs$sd
  list(
    count = nrow(theirs),
    errors = max(abs(mean - theirs$mean) / error),
    distance = max(abs(mean - theirs$mean) / theirs$sd),
    ratio = ratio[[which.max(abs(log(ratio)))]],
    variable = theirs$variable[[which.max(abs(log(ratio)))]]
  )
}

asked <- commandArgs(trailingOnly = TRUE)
failures <- 0
seconds <- numeric()
cat(sprintf("%-15s %-8s %7s %7s %6s %6s %6s %6s %-15s  %s\n", "model", "verdict", "seconds", "fit", "means", "errors", "sds", "ratio", "of",
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
  cat(sprintf("%-15s %-8s %7.1f %7.2f %6d %6.1f %6.3f %6.2f %-15s  %s\n", name, if (fit$jensen$trusted) "trusted" else "NOT", took,
              sum(unlist(info$seconds)), far$count, far$errors, far$distance, far$ratio, far$variable,
              if (length(failed)) paste(failed, collapse = "; ") else "none"))
  if (!fit$jensen$trusted) cat("   ", gsub("\n", "\n    ", fit$jensen$verdict), "\n")
  flush(stdout())
}
cat(sprintf("%d models, %.1f s in the median, %.1f at most\n", length(seconds), stats::median(seconds), max(seconds)))
quit(status = as.integer(failures > 0))
