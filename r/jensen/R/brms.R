#' Fit a model of brms
#'
#' Writes the Stan program and its data with brms, fits them with the command, and returns a `brmsfit` with draws of the
#' posterior. It accepts the arguments of `brms::brm()`, and compiles no C++.
#'
#' If the approximation alone is not trusted, the command refines it to draws of the posterior (`refine = "auto"`). If
#' it is trusted, the command resamples the draws by their importance weights from ten times as many, so that functions
#' without weights see the posterior.
#'
#' @param formula,data,family,prior As for `brms::brm()`.
#' @param ... Other arguments of `brms::brm()`, such as `data2`, `stanvars`, `sample_prior`, `save_pars` and `knots`.
#'   The function ignores the arguments for chains and compilers (`chains`, `iter`, `cores`, `backend`, ...), with a
#'   message. All others are flags of `jensen fit` with `_` instead of `-`, such as `max_iters`.
#' @param draws The number of draws.
#' @param seed The seed: the same seed gives the same draws.
#' @param approximation The family of the approximation, as in the flag `--family` of the command.
#' @param refine,method,max_seconds,threads,init,out,progress As for `$fit()` of a [jensen_model].
#' @return A `brmsfit`. All its methods work, except methods for chains (`nuts_params()`) or compiled programs
#'   (`log_prob()`, `bridge_sampler()`). It also has the class `brmsfit_jensen`: printing it or its summary shows the
#'   verdict first, and `update()` fits again with the command. `$jensen` is a list with the verdict, `trusted`, `elbo`,
#'   `khat` and the `folder` of the fit. For a refined fit it also has `log_evidence` and `ess`, the smallest effective
#'   sample size. The log evidence is known only up to a constant if a prior is improper, such as brms's default priors
#'   of slopes.
#' @export
#' @examples
#' \donttest{
#' if (jensen_is_installed() && requireNamespace("brms", quietly = TRUE)) {
#'   fit <- brm_jensen(mpg ~ wt + (1 | cyl), data = mtcars, seed = 1)
#'   summary(fit)
#'   brms::conditional_effects(fit)
#' }
#' }
brm_jensen <- function(formula, data, family = stats::gaussian(), prior = NULL, ..., draws = 4000, seed = NULL,
                       refine = NULL, method = NULL, approximation = NULL, max_seconds = NULL, threads = NULL, init = NULL,
                       out = NULL, progress = interactive()) {
  need("brms", "brm_jensen()")
  need("rstan", "brm_jensen()")
  given <- split_arguments(list(...))
  # Built as a call of names, so that brms does not deparse the data.
  empty <- as.call(c(
    list(quote(brms::brm), formula = quote(formula), data = quote(data), family = quote(family), prior = quote(prior)),
    given$model,
    list(empty = TRUE, backend = "rstan", algorithm = "fullrank")
  ))
  model <- eval(empty, list(formula = formula, data = data, family = family, prior = prior), baseenv())
  attr(model$data, "data_name") <- data_name(substitute(data))
  flags <- c(given$flags, list(
    draws = draws, seed = seed, refine = refine, method = method, family = approximation, max_seconds = max_seconds,
    threads = threads, init = init
  ))
  complete(model, flags, out, progress)
}

# The name of the data in a summary: the expression, if it is short.
data_name <- function(expression) {
  text <- deparse(expression)
  if (length(text) == 1 && nchar(text) <= 50) text else "data"
}

# Arguments of brm_jensen() that are flags of the command, even if brm() has arguments of the same names.
OWN <- c("draws", "seed", "refine", "method", "approximation", "max_seconds", "threads", "init")

# Arguments of brm() that control chains and the compilation of programs.
CHAINS <- c("chains", "iter", "warmup", "thin", "cores", "control", "algorithm", "backend", "opencl", "future", "silent",
            "refresh", "save_model", "stan_model_args", "file", "file_refit", "empty", "rename", "fit", "inits")

# Splits `...` into arguments of brm() and flags of the command.
split_arguments <- function(dots) {
  ignored <- intersect(names(dots), CHAINS)
  # Functions of brms that refit a model set these, so they deserve no message.
  meaningless <- setdiff(ignored, c("refresh", "silent"))
  if (length(meaningless)) {
    message("There are no chains and no compiler: ignored ", paste0("`", meaningless, "`", collapse = ", "))
  }
  dots <- dots[setdiff(names(dots), ignored)]
  model <- names(dots) %in% names(formals(brms::brm))
  list(model = dots[model], flags = dots[!model])
}

# Fits the model of a brmsfit without draws, and adds draws, names and verdict.
complete <- function(model, flags, out, progress) {
  # `brms::threading()` is a list.
  if (is.list(flags$threads)) {
    flags$threads <- flags$threads$threads
  }
  program <- jensen_model(model$model)
  arguments <- utils::modifyList(list(importance_resample = resamples(flags)), flags)
  arguments <- c(list(data = brms::standata(model), out = out, progress = progress), arguments)
  fit <- do.call(program$fit, arguments)
  model$fit <- as_stanfit(fit, hidden_parameters(model))
  model <- brms::rename_pars(model)
  model$criteria <- list()
  model$jensen <- list(
    verdict = fit$verdict,
    trusted = fit$trusted,
    elbo = fit$elbo,
    khat = fit$khat,
    log_evidence = if (fit$refined) fit$log_evidence(),
    ess = if (fit$refined) fit$info$refinement$ess,
    folder = fit$folder,
    flags = flags
  )
  class(model) <- unique(c("brmsfit_jensen", class(model)))
  model
}

# Whether to resample the draws by their importance weights. Draws of a certain refinement have equal weights.
resamples <- function(flags) !identical(flags$refine, "always")

# Parameters that brms does not keep.
hidden_parameters <- function(model) {
  utils::getFromNamespace("exclude_pars", "brms")(model)
}

# Converts the draws to rstan's class, in which brms stores them: one chain without warm-up.
as_stanfit <- function(fit, hidden) {
  draws <- unclass(fit$draws())
  base <- sub("\\[.*$", "", colnames(draws))
  shown <- !base %in% c(hidden, "lp__", "lp_approx__")
  order <- c(which(shown), which(base == "lp__"))
  draws <- draws[, order, drop = FALSE]
  names <- colnames(draws)
  base <- base[order]
  parameters <- unique(base)
  dims <- stats::setNames(lapply(parameters, function(name) extents(names[base == name])), parameters)
  count <- nrow(draws)
  samples <- stats::setNames(lapply(seq_len(ncol(draws)), function(column) as.vector(draws[, column])), names)
  means <- vapply(samples, mean, 0)
  samples <- structure(samples, args = list(sampler_t = "jensen", chain_id = 1L), mean_pars = utils::head(means, -1),
                       mean_lp__ = utils::tail(means, 1))
  sim <- list(
    samples = list(samples), iter = count, thin = 1L, warmup = 0L, chains = 1L, n_save = count, warmup2 = 0L,
    permutation = list(seq_len(count)), pars_oi = parameters, dims_oi = dims, fnames_oi = names, n_flatnames = length(names)
  )
  kind <- if (fit$refined) "refined" else fit$info$family
  dso <- methods::new("cxxdso",
    sig = list(character(0)), dso_saved = FALSE, dso_filename = character(0), modulename = character(0),
    system = R.version$system, cxxflags = character(0), .CXXDSOMISC = new.env(parent = emptyenv())
  )
  program <- methods::new("stanmodel",
    model_name = "jensen", model_code = character(0), model_cpp = list(), dso = dso
  )
  methods::new("stanfit",
    model_name = "jensen", model_pars = parameters, par_dims = dims, mode = 0L, sim = sim, inits = list(),
    stan_args = list(list(chain_id = 1L, iter = count, warmup = 0L, thin = 1L, seed = fit$info$seed, method = "jensen",
                          algorithm = kind)),
    stanmodel = program, date = format(Sys.time(), "%a %b %d %X %Y"), .MISC = new.env(parent = emptyenv())
  )
}

# The extents of a variable from the names of its scalars. The last name has the largest indices.
extents <- function(names) {
  last <- names[[length(names)]]
  if (!endsWith(last, "]")) {
    return(integer(0))
  }
  as.integer(strsplit(sub("^.*\\[(.*)\\]$", "\\1", last), ",", fixed = TRUE)[[1]])
}

#' Update a model of brms
#'
#' Changes the formula, the data or other arguments of a fit of [brm_jensen()], and fits the model again.
#'
#' @param object A fit of [brm_jensen()].
#' @param formula.,newdata As for `update()` of a `brmsfit`.
#' @param ... Arguments of [brm_jensen()]. Other arguments keep their values.
#' @param out,progress As for [brm_jensen()].
#' @return A `brmsfit` with the verdict of the new fit.
#' @export
update.brmsfit_jensen <- function(object, formula., newdata = NULL, ..., out = NULL, progress = interactive()) {
  dots <- list(...)
  dots$recompile <- NULL
  own <- names(dots) %in% OWN
  given <- split_arguments(dots[!own])
  flags <- c(given$flags, dots[own])
  names(flags)[names(flags) == "approximation"] <- "family"
  # brms updates everything except the program, because it would compile a new program.
  class(object) <- setdiff(class(object), "brmsfit_jensen")
  arguments <- c(list(object = object, newdata = newdata, recompile = FALSE, testmode = TRUE), given$model)
  if (!missing(formula.)) {
    arguments$formula. <- formula.
  }
  model <- do.call(stats::update, arguments)
  code <- c(list(
    formula = model$formula, data = model$data, prior = model$prior, data2 = model$data2, stanvars = model$stanvars,
    sample_prior = attr(model$prior, "sample_prior"), save_model = NULL
  ), given$model[intersect(names(given$model), c("knots", "normalize", "drop_unused_levels"))])
  model$model <- do.call(brms::make_stancode, code)
  if (!is.null(newdata)) {
    attr(model$data, "data_name") <- data_name(substitute(newdata))
  }
  complete(model, utils::modifyList(object$jensen$flags, flags), out, progress)
}

#' @export
summary.brmsfit_jensen <- function(object, ...) {
  table <- NextMethod()
  table$jensen <- object$jensen[c("verdict", "ess")]
  class(table) <- c("brmssummary_jensen", class(table))
  table
}

#' @export
print.brmssummary_jensen <- function(x, ...) {
  cat("Verdict: ", x$jensen$verdict, "\n", sep = "")
  if (!is.null(x$jensen$ess)) {
    cat(sprintf("Refined: at least %.0f of %d draws are effective; the columns below assume independent draws\n",
                x$jensen$ess, x$iter))
  }
  NextMethod()
}

#' @export
print.brmsfit_jensen <- function(x, digits = 2, ...) {
  print(summary(x, ...), digits = digits)
  invisible(x)
}

#' @exportS3Method bayesplot::nuts_params
nuts_params.brmsfit_jensen <- function(object, ...) {
  fail("a variational fit has no sampler parameters: see the verdict in `$jensen`")
}
