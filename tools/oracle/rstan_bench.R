# Time Stan's own gradient and variational fit on a model of the corpus.
#
#   Rscript rstan_bench.R grad MODEL_FOLDER OUT.json
#   Rscript rstan_bench.R vb MODEL_FOLDER OUT.json SEED [SEED ...]
#   Rscript rstan_bench.R check MODEL_FOLDER OUT.json
#
# `grad` times one gradient at the second point of oracle.json, `vb` runs the
# mean-field fit with its defaults from each seed, `check` compares values (all
# constants kept) and gradients with oracle.json.
#
# Needs rstan 2.21, jsonlite and python3; MODEL_FOLDER holds model.stan and
# data.json. Compiled models are kept in the folder named by RSTAN_CACHE.
suppressMessages({library(rstan); library(jsonlite)})
args <- commandArgs(trailingOnly = TRUE)
task <- args[1]; folder <- args[2]; out <- args[3]
here <- dirname(normalizePath(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE))))
name <- basename(folder)
cache <- Sys.getenv("RSTAN_CACHE", tempdir())

# Debian keeps Boost and Eigen outside the R packages that usually carry them.
if (!file.exists(rstan_options("boost_lib"))) rstan_options(boost_lib = "/usr/include")

old <- system2("python3", c(file.path(here, "old_syntax.py"), file.path(folder, "model.stan"),
                            if (task == "check") "--keep-constants"), stdout = TRUE)
code <- paste(old, collapse = "\n")
kept <- file.path(cache, paste0(name, if (task == "check") "-check", ".rds"))
started <- proc.time()[["elapsed"]]
model <- NULL
if (file.exists(kept)) {
  saved <- readRDS(kept)
  if (identical(saved@model_code[1], code)) model <- saved
}
if (is.null(model)) {
  model <- stan_model(model_code = code, model_name = name, save_dso = TRUE)
  saveRDS(model, kept)
}
compile_seconds <- proc.time()[["elapsed"]] - started

# fromJSON gives integer arrays where all numbers are whole, as Stan wants;
# arrays of length one must stay arrays.
json <- fromJSON(file.path(folder, "data.json"), simplifyVector = FALSE)
plain <- fromJSON(file.path(folder, "data.json"), simplifyVector = TRUE)
data <- lapply(names(plain), function(k) {
  v <- plain[[k]]
  if (is.list(json[[k]]) && length(json[[k]]) == 1 && is.null(dim(v))) array(v, 1) else v
})
names(data) <- names(plain)

fit <- suppressWarnings(sampling(model, data = data, chains = 0))
dim <- get_num_upars(fit)
oracle <- fromJSON(file.path(folder, "oracle.json"))
points <- if (length(oracle$points) > 0) matrix(oracle$points, ncol = dim) else matrix(0, 1, dim)

if (task == "grad") {
  q <- points[min(2, nrow(points)), ]
  g <- fit@.MISC$stan_fit_instance
  call <- function() g$grad_log_prob(q, TRUE)
  call()
  # The cost of an R call without work, which is subtracted from each time.
  empty <- function() g$num_pars_unconstrained()
  # Processor time depends less on other load.
  cpu <- function() sum(proc.time()[c("user.self", "sys.self")])
  once <- function(f, n) { t <- cpu(); for (i in seq_len(n)) f(); (cpu() - t) / n }
  n <- max(20, ceiling(0.2 / max(once(call, 1000), 1e-6)))
  grads <- replicate(11, once(call, n))
  floor <- median(replicate(5, once(empty, 20000)))
  lp <- apply(points, 1, function(z) tryCatch(log_prob(fit, z, adjust_transform = TRUE), error = function(e) NA))
  agree <- max(abs((lp - lp[1]) - (oracle$value - oracle$value[1])) / pmax(1, abs(oracle$value)), na.rm = TRUE)
  answer <- list(model = name, dim = dim, seconds_per_gradient = median(grads) - floor,
                 seconds_raw = median(grads), seconds_call = floor, compile_seconds = compile_seconds,
                 log_prob_constant_minus_oracle = mean(lp - oracle$value, na.rm = TRUE), max_relative_difference = agree)
} else if (task == "check") {
  relative <- function(a, b) max(abs(a - b)) / max(1, max(abs(b)))
  value <- gradient <- rep(NA, nrow(points))
  for (i in seq_len(nrow(points))) {
    g <- tryCatch(grad_log_prob(fit, points[i, ], adjust_transform = TRUE), error = function(e) NULL)
    if (is.null(g)) next
    value[i] <- relative(attr(g, "log_prob"), oracle$value[i])
    gradient[i] <- relative(as.vector(g), matrix(oracle$gradient, ncol = dim)[i, ])
  }
  answer <- list(model = name, dim = dim, points = sum(!is.na(value)),
                 value = max(value, na.rm = TRUE), gradient = max(gradient, na.rm = TRUE))
} else {
  # Stan's ADVI keeps all constants, but rstan's log_prob drops constants of
  # `~` statements. The oracle values give their sum, which is added.
  lp <- log_prob(fit, points[1, ], adjust_transform = TRUE)
  constant <- oracle$value[1] - lp
  parameters <- names(fit@par_dims)[names(fit@par_dims) %in% sub("[.].*", "", oracle$names)]
  runs <- lapply(as.integer(args[-(1:3)]), function(seed) {
    t <- proc.time()[["elapsed"]]
    text <- capture.output(
      v <- tryCatch(suppressWarnings(vb(model, data = data, algorithm = "meanfield", seed = seed,
                                        output_samples = 5000, pars = parameters, importance_resampling = FALSE)),
                    error = function(e) e))
    seconds <- proc.time()[["elapsed"]] - t
    if (inherits(v, "error")) return(list(seed = seed, error = conditionMessage(v)))
    rows <- grep("^Chain 1: +[0-9]+ +-?[0-9.]+", text, value = TRUE)
    elbo <- as.numeric(sub("^Chain 1: +[0-9]+ +(-?[0-9.e+]+).*", "\\1", tail(rows, 1)))
    # Back to the unconstrained space: the columns of each parameter run
    # through its first index fastest, as R's arrays do.
    draws <- as.matrix(v)
    relist <- function(row) {
      lapply(parameters, function(p) {
        dims <- fit@par_dims[[p]]
        x <- unname(row[sub("\\[.*", "", colnames(draws)) == p])
        if (length(dims) == 0) x else array(x, dims)
      })
    }
    z <- tryCatch(t(apply(draws, 1, function(row) unconstrain_pars(fit, setNames(relist(row), parameters)))),
                  error = function(e) NULL)
    reported <- list(seed = seed, seconds = seconds, elbo_reported = elbo,
                     converged = !any(grepl("has not converged|maximum number of iterations", text)))
    if (is.null(z)) return(reported)
    if (dim == 1) z <- t(z)
    m <- colMeans(z); s <- apply(z, 2, sd)
    logp <- apply(z, 1, function(q) log_prob(fit, q, adjust_transform = TRUE)) + constant
    logq <- sapply(seq_len(nrow(z)), function(i) sum(dnorm(z[i, ], m, s, log = TRUE)))
    w <- logp - logq
    c(reported, list(elbo = mean(w), elbo_se = sd(w) / sqrt(length(w))))
  })
  answer <- list(model = name, dim = dim, constant = constant, runs = runs)
}
write(toJSON(answer, auto_unbox = TRUE, digits = 12, na = "null"), out)
cat(toJSON(answer, auto_unbox = TRUE, digits = 6, na = "null"), "\n")
