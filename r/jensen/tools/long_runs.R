# Writes the programs and data of brms for the models of cases.R, which long_runs.py samples, or times brm() on the named models.
#
#   Rscript r/jensen/tools/long_runs.R FOLDER
#   Rscript r/jensen/tools/long_runs.R --brm NAME...
#
# The second form prints seconds of rstan's compilation and of four chains of 2 000 transitions, one after the other.

suppressPackageStartupMessages({
  library(brms)
  library(jensen)
})
tools <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]]))
source(file.path(tools, "cases.R"))
asked <- commandArgs(trailingOnly = TRUE)

if (asked[[1]] == "--brm") {
  options(mc.cores = 1)
  # Debian installs the headers of Boost outside of the package BH.
  if (!nzchar(system.file("include", package = "BH"))) rstan::rstan_options(boost_lib = "/usr/include")
  spent <- function(call) sum(system.time(call)[c("user.self", "sys.self", "user.child", "sys.child")])
  for (name in asked[-1]) {
    compiled <- NULL
    compiling <- spent(compiled <- suppressMessages(do.call(brm, c(brm_arguments(name), list(chains = 0)))))
    sampling <- spent(suppressWarnings(update(compiled, recompile = FALSE, chains = 4, iter = 2000, refresh = 0, seed = 1)))
    cat(sprintf("%-15s compiles %6.1f s, samples %6.1f s\n", name, compiling, sampling))
    flush(stdout())
  }
} else {
  dir.create(asked[[1]], showWarnings = FALSE, recursive = TRUE)
  for (name in names(models)) {
    arguments <- brm_arguments(name)
    writeLines(do.call(make_stancode, arguments), file.path(asked[[1]], paste0(name, ".stan")))
    data <- unclass(do.call(make_standata, arguments))
    writeLines(jensen:::stan_json(data), file.path(asked[[1]], paste0(name, ".json")))
  }
}
