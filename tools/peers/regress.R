# Writes data sets with one formula each, and the programs of brms with Jensen's default priors.
#
#   Rscript tools/peers/regress.R FOLDER
#
# For each case, the script writes NAME.csv and the program and data of brms (NAME.stan, NAME.json). cases.json has Jensen's formulas and
# family, the brms names of the compared parameters, and maximum-likelihood estimates. `tools/peers/regress.py FOLDER` reads the files.
# Needs R with brms 2.18, lme4, MASS, nlme, survival, ordinal and metadat.
suppressMessages({
  library(brms); library(lme4); library(MASS); library(survival); library(jsonlite)
})
out <- commandArgs(trailingOnly = TRUE)[1]
dir.create(out, showWarnings = FALSE, recursive = TRUE)

# The default priors of Jensen for a formula of brms. `location` and `unit` are the location and scale of the predictor, and `scale` is the
# standard deviation of the response.
usual <- function(formula, data, family, location, unit, scale, own, ...) {
  rows <- get_prior(formula, data, family, ...)
  standata <- make_standata(formula, data, family, ...)
  sds <- function(x) { s <- sd(x); if (is.na(s) || s == 0) 1 else s }
  column <- function(dpar, coef) {
    x <- standata[[if (nzchar(dpar)) paste0("X_", dpar) else "X"]]
    sds(if (coef %in% colnames(x)) x[, coef] else standata$Xs)
  }
  made <- empty_prior()
  for (at in seq_len(nrow(rows))) {
    r <- rows[at, ]
    of_mean <- !nzchar(r$dpar)
    u <- if (of_mean) unit else 1
    key <- if (nzchar(r$coef)) paste(r$class, r$coef) else r$class
    if (!is.null(own[[key]])) {
      text <- own[[key]]
    } else if (r$class == "Intercept") {
      if (nzchar(r$coef)) next
      ordinal <- inherits(family, "brmsfamily") && family$family %in% c("cumulative", "sratio", "cratio", "acat")
      text <- if (of_mean && ordinal) "student_t(3, 0, 2.5)"
        else if (of_mean) sprintf("normal(%.10g, %.10g)", location, 2.5 * u)
        else sprintf("student_t(3, %.10g, 2.5)", if (r$dpar == "sigma") log(scale) else 0)
    } else if (r$class == "b" && nzchar(r$coef)) {
      text <- if (startsWith(r$coef, "mo")) sprintf("normal(0, %.10g)", 2.5 * u)
        else if (startsWith(r$coef, "me")) sprintf("normal(0, %.10g)", 2.5 * u / sd(data[[own$measured]]))
        else sprintf("normal(0, %.10g)", 2.5 * u / column(r$dpar, r$coef))
    } else if (r$class == "sd" && nzchar(r$coef)) {
      z <- if (r$coef == "Intercept") 1 else { v <- eval(parse(text = r$coef), data); sds(as.numeric(v)) }
      text <- sprintf("student_t(3, 0, %.10g)", 2.5 * u / z)
    } else if (r$class == "sds" && nzchar(r$coef)) {
      z <- standata[[if (of_mean) "Zs_1_1" else paste0("Zs_", r$dpar, "_1_1")]]
      text <- sprintf("student_t(3, 0, %.10g)", 2.5 * u / sqrt(mean(rowSums(z^2))))
    } else if (r$class == "meanme") {
      text <- sprintf("normal(%.10g, %.10g)", mean(data[[own$measured]]), 2.5 * sd(data[[own$measured]]))
    } else if (r$class == "sdme") {
      text <- sprintf("exponential(%.10g)", 1 / sd(data[[own$measured]]))
    } else if (r$class == "sdcar") {
      text <- "student_t(3, 0, 2.5)"
    } else if (r$class == "sigma") {
      text <- if (family$family == "lognormal") "student_t(3, 0, 2.5)" else sprintf("exponential(%.10g)", 1 / scale)
    } else if (r$class == "shape" && family$family %in% c("negbinomial", "zero_inflated_negbinomial", "hurdle_negbinomial")) {
      text <- "inv_gamma(0.4, 0.3)"
    } else if (r$class %in% c("zi", "hu")) {
      text <- "beta(1, 1)"
    } else if (r$class == "nu") {
      text <- "gamma(2, 0.1)"
    } else if (r$class %in% c("shape", "phi")) {
      text <- "gamma(0.01, 0.01)"
    } else next
    made <- made + set_prior(text, class = r$class, coef = r$coef, group = r$group, dpar = r$dpar)
  }
  made
}

cases <- list()
# A case: `names` maps Jensen's variables to variables of brms, and `ml` has estimates and standard errors by Jensen's names.
add <- function(name, data, formula, family, jensen, jensen_family, names, location, unit = 1, scale = 1, ml = NULL, witness = "", own = list(),
                source = "made up", prior = NULL, used = data, asked = NULL, ...) {
  set.seed(1)
  priors <- if (is.null(prior)) usual(formula, used, family, location, unit, scale, own, ...) else prior
  writeLines(make_stancode(formula, used, family, prior = priors, ...), file.path(out, paste0(name, ".stan")))
  standata <- make_standata(formula, used, family, prior = priors, ...)
  standata <- lapply(unclass(standata), function(x) { attributes(x) <- attributes(x)[c("dim")]; x })
  write_json(standata, file.path(out, paste0(name, ".json")), auto_unbox = TRUE, digits = NA)
  write.csv(data, file.path(out, paste0(name, ".csv")), row.names = FALSE, quote = FALSE)
  cases[[length(cases) + 1]] <<- list(
    name = unbox(name), formulas = jensen, family = unbox(jensen_family), priors = as.character(asked), names = lapply(names, function(x) if (length(x) == 1) unbox(x) else x), source = unbox(source),
    witness = unbox(witness), ml = if (length(ml)) lapply(ml, function(x) unname(as.numeric(x))) else setNames(list(), character())
  )
}
pair <- function(table, row) table[row, 1:2]

# Public data.
d <- lme4::sleepstudy
m <- lmer(Reaction ~ Days + (Days | Subject), d)
add("sleepstudy", d, Reaction ~ Days + (Days | Subject), gaussian(), "Reaction ~ Days + (Days | Subject)", "gaussian",
    list(Intercept = "b_Intercept", b = "b", sd_Subject = "sd_1", cor_Subject = "cor_1", sigma = "sigma"),
    mean(d$Reaction), sd(d$Reaction), sd(d$Reaction), list("b[Days]" = pair(coef(summary(m)), "Days")), "lmer",
    source = "Belenky et al. 2003 (lme4)")

d <- lme4::cbpp
d$period <- as.integer(d$period)
m <- glmer(cbind(incidence, size - incidence) ~ factor(period) + (1 | herd), d, binomial)
add("cbpp", d, incidence | trials(size) ~ factor(period) + (1 | herd), binomial(), "incidence | trials(size) ~ factor(period) + (1 | herd)",
    "binomial", list(Intercept = "b_Intercept", b = "b", sd_herd = "sd_1"),
    qlogis((sum(d$incidence) + 0.5) / (sum(d$size) + 1)),
    ml = list("b[factor(period)2]" = pair(coef(summary(m)), "factor(period)2")), witness = "glmer", source = "Lesnoff et al. 2004 (lme4)")

d <- lme4::grouseticks[, c("TICKS", "YEAR", "HEIGHT", "BROOD", "LOCATION")]
d$YEAR <- as.integer(as.character(d$YEAR))
m <- glmer(TICKS ~ factor(YEAR) + scale(HEIGHT) + (1 | BROOD) + (1 | LOCATION), d, poisson)
add("grouseticks", d, TICKS ~ factor(YEAR) + scale(HEIGHT) + (1 | BROOD) + (1 | LOCATION), poisson(),
    "TICKS ~ factor(YEAR) + scale(HEIGHT) + (1 | BROOD) + (1 | LOCATION)", "poisson",
    list(Intercept = "b_Intercept", b = "b", sd_BROOD = "sd_1", sd_LOCATION = "sd_2"), log(mean(d$TICKS)),
    ml = list("b[scale(HEIGHT)]" = pair(coef(summary(m)), "scale(HEIGHT)")), witness = "glmer", source = "Elston et al. 2001 (lme4)")

d <- lme4::cake[, c("replicate", "recipe", "temp", "angle")]
m <- lmer(angle ~ recipe * temp + (1 | recipe:replicate), d)
add("cake", d, angle ~ recipe * temp + (1 | recipe:replicate), gaussian(), "angle ~ recipe * temp + (1 | recipe:replicate)", "gaussian",
    list(Intercept = "b_Intercept", b = "b", "sd_recipe_replicate" = "sd_1", sigma = "sigma"), mean(d$angle), sd(d$angle), sd(d$angle),
    list("b[temp]" = pair(coef(summary(m)), "temp")), "lmer", source = "Cochran and Cox 1957 (lme4)")

d <- lme4::Dyestuff
m <- lmer(Yield ~ 1 + (1 | Batch), d)
add("dyestuff", d, Yield ~ 1 + (1 | Batch), gaussian(), "Yield ~ 1 + (1 | Batch)", "gaussian",
    list(Intercept = "b_Intercept", sd_Batch = "sd_1", sigma = "sigma"), mean(d$Yield), sd(d$Yield), sd(d$Yield),
    list(Intercept = pair(coef(summary(m)), "(Intercept)")), "lmer", source = "Davies and Goldsmith 1972 (lme4)")

d <- lme4::Penicillin
m <- lmer(diameter ~ 1 + (1 | plate) + (1 | sample), d)
add("penicillin", d, diameter ~ 1 + (1 | plate) + (1 | sample), gaussian(), "diameter ~ 1 + (1 | plate) + (1 | sample)", "gaussian",
    list(Intercept = "b_Intercept", sd_plate = "sd_1", sd_sample = "sd_2", sigma = "sigma"), mean(d$diameter), sd(d$diameter), sd(d$diameter),
    list(Intercept = pair(coef(summary(m)), "(Intercept)")), "lmer", source = "Davies and Goldsmith 1972 (lme4)")

d <- airquality[, c("Ozone", "Solar.R", "Wind", "Temp")]
used <- na.omit(d)
m <- lm(log(Ozone) ~ Solar.R + Wind + Temp, used)
add("airquality", d, log(Ozone) ~ Solar.R + Wind + Temp, student(), "log(Ozone) ~ Solar.R + Wind + Temp", "student",
    list(Intercept = "b_Intercept", b = "b", sigma = "sigma", nu = "nu"), mean(log(used$Ozone)), sd(log(used$Ozone)), sd(log(used$Ozone)),
    list("b[Wind]" = pair(coef(summary(m)), "Wind")), "lm", source = "Chambers et al. 1983 (datasets)", used = used)

d <- MASS::quine
m <- glm.nb(Days ~ Eth + Sex + Age + Lrn, d)
add("quine", d, Days ~ Eth + Sex + Age + Lrn, negbinomial(), "Days ~ Eth + Sex + Age + Lrn", "negbinomial",
    list(Intercept = "b_Intercept", b = "b", shape = "shape"), log(mean(d$Days)), ml = list("b[EthN]" = pair(coef(summary(m)), "EthN")),
    witness = "glm.nb", source = "Aitkin 1978 (MASS)")

d <- MASS::birthwt[, c("low", "age", "lwt", "race", "smoke", "ht")]
m <- glm(low ~ age + lwt + factor(race) + smoke + ht, binomial, d)
add("birthwt", d, low ~ age + lwt + factor(race) + smoke + ht, bernoulli(), "low ~ age + lwt + factor(race) + smoke + ht", "bernoulli",
    list(Intercept = "b_Intercept", b = "b"), qlogis(mean(d$low)), ml = list("b[smoke]" = pair(coef(summary(m)), "smoke")), witness = "glm",
    source = "Hosmer and Lemeshow 1989 (MASS)")

d <- survival::lung[, c("time", "status", "age", "sex")]
d$cens <- ifelse(d$status == 2, "none", "right")
d$status <- NULL
m <- survreg(Surv(time, cens == "none") ~ age + sex, d)
add("lung", d, time | cens(cens) ~ age + sex, weibull(), "time | cens(cens) ~ age + sex", "weibull",
    list(Intercept = "b_Intercept", b = "b", shape = "shape"), log(mean(d$time)), ml = list("b[sex]" = pair(summary(m)$table, "sex")),
    witness = "survreg", source = "Loprinzi et al. 1994 (survival)")

d <- MASS::epil[, c("y", "trt", "lbase", "lage", "V4", "subject")]
m <- glmer(y ~ lbase * trt + lage + V4 + (1 | subject), d, poisson)
add("epilepsy", d, y ~ lbase * trt + lage + V4 + (1 | subject), poisson(), "y ~ lbase * trt + lage + V4 + (1 | subject)", "poisson",
    list(Intercept = "b_Intercept", b = "b", sd_subject = "sd_1"), log(mean(d$y)), ml = list("b[lbase]" = pair(coef(summary(m)), "lbase")),
    witness = "glmer", source = "Thall and Vail 1990 (MASS)")

d <- ordinal::wine[, c("rating", "temp", "contact", "judge")]
d$rating <- as.integer(d$rating)
m <- ordinal::clmm(factor(rating) ~ temp + contact + (1 | judge), data = d)
add("wine", d, rating ~ temp + contact + (1 | judge), cumulative(), "rating ~ temp + contact + (1 | judge)", "cumulative",
    list(thresholds = "b_Intercept", b = "b", sd_judge = "sd_1"), 0, ml = list("b[tempwarm]" = pair(coef(summary(m)), "tempwarm")),
    witness = "clmm", source = "Randall 1989 (ordinal)")

d <- MASS::mcycle[!duplicated(MASS::mcycle$times), ]
m <- mgcv::gam(accel ~ s(times, bs = "cr"), data = d, method = "REML")
add("mcycle", d, bf(accel ~ s(times, bs = "cr"), sigma ~ times), gaussian(), c("accel ~ s(times)", "sigma ~ times"), "gaussian",
    list(Intercept = "b_Intercept", Intercept_sigma = "b_sigma_Intercept", b_sigma = "b_sigma"), mean(d$accel), sd(d$accel), sd(d$accel),
    list(Intercept = c(coef(m)[1], sqrt(vcov(m)[1, 1]))), "gam", source = "Silverman 1985 (MASS)")

bcg <- metafor::escalc("RR", ai = tpos, bi = tneg, ci = cpos, di = cneg, data = metadat::dat.bcg)
d <- data.frame(trial = bcg$trial, latitude = bcg$ablat, effect = round(as.numeric(bcg$yi), 4), error = round(sqrt(bcg$vi), 4))
m <- metafor::rma(effect, sei = error, mods = ~ latitude, data = d)
add("bcg", d, effect | se(error) ~ latitude + (1 | trial), gaussian(), "effect | se(error) ~ latitude + (1 | trial)", "gaussian",
    list(Intercept = "b_Intercept", b = "b", sd_trial = "sd_1"), mean(d$effect), sd(d$effect), sd(d$effect),
    list("b[latitude]" = c(m$beta[2], m$se[2])), "rma", source = "Colditz et al. 1994 (metadat)")

# Simulated data.
set.seed(20)
n <- 400
g <- sample(1:25, n, TRUE)
u <- matrix(rnorm(50), 25) %*% chol(matrix(c(0.36, -0.18, -0.18, 0.25), 2))
d <- data.frame(district = g, urban = rbinom(n, 1, 0.4), age = round(runif(n, -14, 14)))
d$use <- rbinom(n, 1, pnorm(-0.3 + u[g, 1] + (0.5 + u[g, 2]) * d$urban - 0.002 * d$age^2))
m <- glmer(use ~ urban + age + I(age^2) + (urban | district), d, binomial("probit"), control = glmerControl(optimizer = "bobyqa"))
add("contraception", d, use ~ urban + age + I(age^2) + (urban | district), bernoulli("probit"), "use ~ urban + age + I(age^2) + (urban | district)",
    "bernoulli(probit)", list(Intercept = "b_Intercept", b = "b", sd_district = "sd_1", cor_district = "cor_1"), qlogis(mean(d$use)) / 1.702,
    ml = list("b[urban]" = pair(coef(summary(m)), "urban")), witness = "glmer")

n <- 250
d <- data.frame(child = rpois(n, 0.7), camper = rbinom(n, 1, 0.6), persons = sample(1:4, n, TRUE))
d$fish <- ifelse(runif(n) < plogis(-1 + 0.9 * d$child), 0, rpois(n, exp(-0.8 + 0.7 * d$persons + 0.6 * d$camper - 0.6 * d$child)))
m <- pscl::zeroinfl(fish ~ persons + camper + child | child, d)
add("fish", d, bf(fish ~ persons + camper + child, zi ~ child), zero_inflated_poisson(), c("fish ~ persons + camper + child", "zi ~ child"),
    "zero_inflated_poisson", list(Intercept = "b_Intercept", b = "b", Intercept_zi = "b_zi_Intercept", b_zi = "b_zi"), log(mean(d$fish)),
    ml = list("b[persons]" = pair(coef(summary(m))$count, "persons")), witness = "zeroinfl")

n <- 180
d <- data.frame(batch = rep(letters[1:12], each = 15), temp = round(runif(n, 200, 450)), density = round(rnorm(n), 2))
mu <- plogis(-3.2 + 0.008 * d$temp + 0.3 * d$density + rnorm(12, 0, 0.4)[as.integer(factor(d$batch))])
phi <- exp(3 + 0.4 * d$density)
d$yield <- round(pmin(pmax(rbeta(n, mu * phi, (1 - mu) * phi), 0.001), 0.999), 4)
m <- glmmTMB::glmmTMB(yield ~ temp + density + (1 | batch), d, glmmTMB::beta_family(), dispformula = ~density)
add("yield", d, bf(yield ~ temp + density + (1 | batch), phi ~ density), Beta(), c("yield ~ temp + density + (1 | batch)", "phi ~ density"), "beta",
    list(Intercept = "b_Intercept", b = "b", sd_batch = "sd_1", Intercept_phi = "b_phi_Intercept", b_phi = "b_phi"), qlogis(mean(d$yield)),
    ml = list("b[temp]" = pair(coef(summary(m))$cond, "temp")), witness = "glmmTMB")

n <- 160
d <- data.frame(age = round(runif(n, 18, 80)), kind = sample(c("car", "home", "life"), n, TRUE))
d$claim <- round(ifelse(runif(n) < plogis(0.4 - 0.02 * d$age), 0, rgamma(n, 2.2, 2.2 / exp(6 + 0.01 * d$age + 0.4 * (d$kind == "home")))), 1)
m <- glm(claim ~ age + kind, Gamma("log"), d, subset = claim > 0)
add("claims", d, bf(claim ~ age + kind, hu ~ age), hurdle_gamma(), c("claim ~ age + kind", "hu ~ age"), "hurdle_gamma",
    list(Intercept = "b_Intercept", b = "b", Intercept_hu = "b_hu_Intercept", b_hu = "b_hu", shape = "shape"), log(mean(d$claim)),
    ml = list("b[age]" = pair(coef(summary(m)), "age")), witness = "glm")

n <- 240
d <- data.frame(income = sample(1:5, n, TRUE, c(0.2, 0.3, 0.2, 0.2, 0.1)), age = round(runif(n, 20, 70)), city = rep(1:8, each = 30))
d$life <- round(50 + c(0, 12, 15, 16, 24)[d$income] - 0.1 * d$age + rnorm(8, 0, 5)[d$city] + rnorm(n, 0, 8), 1)
m <- lmer(life ~ factor(income) + age + (1 | city), d)
add("income", d, life ~ mo(income) + age + (1 | city), gaussian(), "life ~ mo(income) + age + (1 | city)", "gaussian",
    list(Intercept = "b_Intercept", b = "b", bmo = "bsp", sd_city = "sd_1", sigma = "sigma"), mean(d$life), sd(d$life), sd(d$life),
    list("b[age]" = pair(coef(summary(m)), "age")), "lmer")

n <- 300
d <- data.frame(length = round(rnorm(n, 2.5, 0.6), 2), lake = sample(c("george", "hancock", "oklawaha"), n, TRUE))
logits <- cbind(fish = 0, invertebrate = 3 - 1.3 * d$length + 0.6 * (d$lake == "george"), other = -1 + 0.3 * d$length)
d$food <- apply(logits, 1, function(l) sample(colnames(logits), 1, prob = exp(l)))
m <- summary(nnet::multinom(food ~ length + lake, d, trace = FALSE))
add("alligators", d, food ~ length + lake, categorical(), "food ~ length + lake", "categorical",
    list(Intercept_invertebrate = "b_muinvertebrate_Intercept", b_invertebrate = "b_muinvertebrate", Intercept_other = "b_muother_Intercept",
         b_other = "b_muother"),
    0, ml = list("b_invertebrate[length]" = c(m$coefficients["invertebrate", "length"], m$standard.errors["invertebrate", "length"])),
    witness = "multinom", own = list(Intercept = "student_t(3, 0, 2.5)"))

# Several memberships, measurements, missing values, time, maps, shrinkage.
n <- 250
d <- data.frame(first = sample(1:15, n, TRUE), second = sample(1:15, n, TRUE), hours = round(rnorm(n), 2))
d$w1 <- round(runif(n, 0.2, 0.8), 2)
d$w2 <- 1 - d$w1
u <- rnorm(15, 0, 0.9)
d$mark <- round(6 + 0.5 * d$hours + d$w1 * u[d$first] + d$w2 * u[d$second] + rnorm(n, 0, 0.8), 2)
m <- lm(mark ~ hours, d)
add("pupils", d, mark ~ hours + (1 | mm(first, second, weights = cbind(w1, w2))), gaussian(),
    "mark ~ hours + (1 | mm(first, second, weights = cbind(w1, w2)))", "gaussian",
    list(Intercept = "b_Intercept", b = "b", sd_mm_first_second_weights_cbind_w1_w2 = "sd_1", sigma = "sigma"), mean(d$mark), sd(d$mark), sd(d$mark),
    list("b[hours]" = pair(coef(summary(m)), "hours")), "lm")

n <- 120
truth <- rnorm(n)
d <- data.frame(error = round(runif(n, 0.3, 0.6), 2), age = round(rnorm(n), 2))
d$dose <- round(truth + rnorm(n, 0, d$error), 3)
d$response <- round(1 + 0.8 * truth + 0.3 * d$age + rnorm(n, 0, 0.6), 3)
m <- lm(response ~ dose + age, d)
add("doses", d, response ~ me(dose, error) + age, gaussian(), "response ~ me(dose, error) + age", "gaussian",
    list(Intercept = "b_Intercept", b = "b", bsp = "bsp", meanme_dose = "meanme_1", sdme_dose = "sdme_1", sigma = "sigma"), mean(d$response),
    sd(d$response), sd(d$response), list("b[age]" = pair(coef(summary(m)), "age")), "lm", own = list(measured = "dose"))

d <- airquality[, c("Ozone", "Solar.R", "Wind", "Temp")]
d <- d[!is.na(d$Ozone), ]
d$ozone <- round(as.numeric(scale(log(d$Ozone))), 4)
d$sun <- round(as.numeric(scale(d$Solar.R)), 4)
d$wind <- round(as.numeric(scale(d$Wind)), 4)
d$temp <- round(as.numeric(scale(d$Temp)), 4)
d <- d[, c("ozone", "sun", "wind", "temp")]
s <- function(x) sd(x, na.rm = TRUE)
p <- set_prior(sprintf("normal(%.10g, %.10g)", mean(d$ozone), 2.5 * s(d$ozone)), "Intercept", resp = "ozone") +
  set_prior(sprintf("normal(%.10g, %.10g)", mean(d$sun, na.rm = TRUE), 2.5 * s(d$sun)), "Intercept", resp = "sun") +
  set_prior(sprintf("normal(0, %.10g)", 2.5 * s(d$ozone) / s(d$wind)), "b", "wind", resp = "ozone") +
  set_prior(sprintf("normal(0, %.10g)", 2.5 * s(d$ozone) / s(d$sun)), "b", "misun", resp = "ozone") +
  set_prior(sprintf("normal(0, %.10g)", 2.5 * s(d$sun) / s(d$temp)), "b", "temp", resp = "sun") +
  set_prior(sprintf("normal(0, %.10g)", 2.5 * s(d$sun) / s(d$wind)), "b", "wind", resp = "sun") +
  set_prior(sprintf("exponential(%.10g)", 1 / s(d$ozone)), "sigma", resp = "ozone") +
  set_prior(sprintf("exponential(%.10g)", 1 / s(d$sun)), "sigma", resp = "sun")
m <- lm(ozone ~ wind + sun, d)
add("ozone", d, bf(ozone ~ wind + mi(sun)) + bf(sun | mi() ~ wind + temp) + set_rescor(FALSE), gaussian(),
    c("ozone ~ wind + mi(sun)", "sun | mi() ~ wind + temp"), "gaussian",
    list(Intercept = "b_ozone_Intercept", b = "b_ozone", bsp = "bsp_ozone", sigma = "sigma_ozone", Intercept_sun = "b_sun_Intercept", b_sun = "b_sun",
         sigma_sun = "sigma_sun"),
    0, ml = list("b[wind]" = pair(coef(summary(m)), "wind")), witness = "lm", prior = p, source = "Chambers et al. 1983 (datasets)")

d <- data.frame(year = as.integer(time(LakeHuron)), level = as.numeric(LakeHuron))
m <- nlme::gls(level ~ year, d, correlation = nlme::corAR1(form = ~year), method = "ML")
add("huron", d, level ~ year + ar(year, p = 1), gaussian(), "level ~ year + ar(year, p = 1)", "gaussian",
    list(Intercept = "b_Intercept", b = "b", ar = "ar", sigma = "sigma"), mean(d$level), sd(d$level), sd(d$level),
    list("b[year]" = pair(summary(m)$tTable, "year")), "gls", source = "Brockwell and Davis 1991 (datasets)")

side <- c(7, 8)
cell <- expand.grid(row = 1:side[1], column = 1:side[2])
W <- 1 * (as.matrix(dist(cell, "manhattan")) == 1)
n <- nrow(cell)
dimnames(W) <- list(1:n, 1:n)
edges <- which(W == 1 & upper.tri(W), arr.ind = TRUE)
write.table(edges, file.path(out, "map.graph"), row.names = FALSE, col.names = FALSE)
Q <- diag(rowSums(W)) - W
field <- as.numeric(with(eigen(Q), vectors[, -n] %*% (rnorm(n - 1) / sqrt(values[-n]))))
d <- data.frame(region = 1:n, poor = round(rnorm(n), 2), expected = round(runif(n, 5, 60), 1))
d$cases <- rpois(n, d$expected * exp(0.3 * d$poor + 0.4 * field + rnorm(n, 0, 0.15)))
m <- glm(cases ~ poor + offset(log(expected)), quasipoisson, d)
mapped <- function(type) paste0("cases ~ poor + offset(log(expected)) + car(\"map.graph\", gr = region, type = \"", type, "\")")
location <- log(mean(d$cases)) - mean(log(d$expected))
ml <- list("b[poor]" = pair(coef(summary(m)), "poor"))
add("map_bym2", d, cases ~ poor + offset(log(expected)) + car(W, gr = region, type = "bym2"), poisson(), mapped("bym2"), "poisson",
    list(Intercept = "b_Intercept", b = "b", sdcar = "sdcar", rhocar = "rhocar"), location, ml = ml, witness = "glm", data2 = list(W = W))
add("map_icar", d, cases ~ poor + offset(log(expected)) + car(W, gr = region, type = "icar"), poisson(), mapped("icar"), "poisson",
    list(Intercept = "b_Intercept", b = "b", sdcar = "sdcar"), location, ml = ml, witness = "glm", data2 = list(W = W))
add("map_escar", d, cases ~ poor + offset(log(expected)) + car(W, gr = region, type = "escar"), poisson(), mapped("escar"), "poisson",
    list(Intercept = "b_Intercept", b = "b", sdcar = "sdcar", car = "car"), location, ml = ml, witness = "glm", data2 = list(W = W))

n <- 80
d <- as.data.frame(matrix(rnorm(n * 12), n))
names(d) <- paste0("g", 1:12)
d <- as.data.frame(scale(d))
d$y <- as.numeric(scale(d$g1 - 0.7 * d$g4 + rnorm(n)))
d <- round(d[, c("y", paste0("g", 1:12))], 4)
m <- lm(y ~ ., d)
add("genes", d, y ~ g1 + g2 + g3 + g4 + g5 + g6 + g7 + g8 + g9 + g10 + g11 + g12, gaussian(), "y ~ .", "gaussian",
    list(Intercept = "b_Intercept", b = "b", sigma = "sigma"), 0, ml = list("b[g4]" = pair(coef(summary(m)), "g4")), witness = "lm",
    prior = set_prior(horseshoe(1), class = "b") + set_prior(sprintf("normal(%.10g, %.10g)", mean(d$y), 2.5 * sd(d$y)), class = "Intercept") +
      set_prior(sprintf("exponential(%.10g)", 1 / sd(d$y)), class = "sigma"), asked = "b ~ horseshoe(1)")

# Kinds of groups, effects correlated over parameters, counts and shares of categories.
n <- 240
g <- rep(1:24, each = 10)
d <- data.frame(person = paste0("p", 100 + g), sex = ifelse(g <= 12, "f", "m"), x = round(rnorm(n), 2))
d$y <- round(1 + 0.5 * d$x + rnorm(24, 0, ifelse(1:24 <= 12, 0.4, 1.5))[g] + rnorm(n, 0, 0.7), 3)
m <- lmer(y ~ x + (1 | person), d)
add("kinds", d, y ~ x + (1 | gr(person, by = sex)), gaussian(), "y ~ x + (1 | gr(person, by = sex))", "gaussian",
    list(Intercept = "b_Intercept", b = "b", sd_person_f = "sd_1[1,1]", sd_person_m = "sd_1[1,2]", sigma = "sigma"), mean(d$y), sd(d$y), sd(d$y),
    list("b[x]" = pair(coef(summary(m)), "x")), "lmer")

n <- 400
g <- rep(1:40, each = 10)
u <- matrix(rnorm(80), 40) %*% chol(matrix(c(0.5, 0.15, 0.15, 0.1), 2))
d <- data.frame(item = paste0("i", 100 + g), x = round(rnorm(n), 2))
d$y <- round(2 + 0.6 * d$x + u[g, 1] + rnorm(n, 0, exp(-0.3 + u[g, 2])), 3)
m <- lmer(y ~ x + (1 | item), d)
add("locations", d, bf(y ~ x + (1 | p | item), sigma ~ (1 | p | item)), gaussian(), c("y ~ x + (1 |p| item)", "sigma ~ (1 |p| item)"), "gaussian",
    list(Intercept = "b_Intercept", b = "b", sd_item = "sd_1[1]", sd_sigma_item = "sd_1[2]", cor_p = "cor_1", Intercept_sigma = "b_sigma_Intercept"),
    mean(d$y), sd(d$y), sd(d$y), list("b[x]" = pair(coef(summary(m)), "x")), "lmer")

n <- 120
d <- data.frame(x = round(rnorm(n), 2))
counts <- t(sapply(d$x, function(x) rmultinom(1, 12, exp(c(0, 0.4 + 0.6 * x, -0.5 - 0.3 * x)))))
d$red <- counts[, 1]
d$green <- counts[, 2]
d$blue <- counts[, 3]
used <- data.frame(x = d$x, n = rowSums(counts))
used$y <- with(d, cbind(red, green, blue))
m <- summary(nnet::multinom(used$y ~ x, d, trace = FALSE))
add("colours", d, y | trials(n) ~ x, multinomial(), "cbind(red, green, blue) ~ x", "multinomial",
    list(Intercept_green = "b_mugreen_Intercept", b_green = "b_mugreen", Intercept_blue = "b_mublue_Intercept", b_blue = "b_mublue"), 0,
    ml = list("b_green[x]" = c(m$coefficients["green", "x"], m$standard.errors["green", "x"])), witness = "multinom",
    own = list(Intercept = "student_t(3, 0, 2.5)"), used = used)

n <- 120
d <- data.frame(depth = round(rnorm(n), 2))
shares <- t(sapply(d$depth, function(x) { a <- exp(c(0, 0.5 - 0.5 * x, -0.3 + 0.2 * x)); rgamma(3, 15 * a / sum(a)) }))
shares <- round(shares / rowSums(shares), 4)
d$sand <- shares[, 1]
d$silt <- shares[, 2]
d$clay <- 1 - d$sand - d$silt
used <- data.frame(depth = d$depth)
used$y <- with(d, cbind(sand, silt, clay))
add("soils", d, y ~ depth, dirichlet(), "cbind(sand, silt, clay) ~ depth", "dirichlet",
    list(Intercept_silt = "b_musilt_Intercept", b_silt = "b_musilt", Intercept_clay = "b_muclay_Intercept", b_clay = "b_muclay", phi = "phi"), 0,
    witness = "none", own = list(Intercept = "student_t(3, 0, 2.5)"), used = used)

# Several responses, proportional hazards, decisions, mixtures.
set.seed(53)
n <- 200
g <- rep(1:20, each = 10)
u <- matrix(rnorm(40), 20) %*% chol(matrix(c(0.6, 0.3, 0.3, 0.4), 2))
e <- matrix(rnorm(2 * n), n) %*% chol(matrix(c(1, -0.4, -0.4, 0.5), 2))
d <- data.frame(nest = paste0("n", 100 + g), x = round(rnorm(n), 2))
d$tarsus <- round(10 + 0.5 * d$x + u[g, 1] + e[, 1], 3)
d$back <- round(2 - 0.3 * d$x + u[g, 2] + e[, 2], 3)
of <- function(y, resp) {
  s <- sd(y)
  set_prior(sprintf("normal(%.10g, %.10g)", mean(y), 2.5 * s), "Intercept", resp = resp) +
    set_prior(sprintf("normal(0, %.10g)", 2.5 * s / sd(d$x)), "b", "x", resp = resp) +
    set_prior(sprintf("student_t(3, 0, %.10g)", 2.5 * s), "sd", "Intercept", group = "nest", resp = resp) +
    set_prior(sprintf("exponential(%.10g)", 1 / s), "sigma", resp = resp)
}
m <- lmer(tarsus ~ x + (1 | nest), d)
add("chicks", d, bf(mvbind(tarsus, back) ~ x + (1 | p | nest)) + set_rescor(TRUE), gaussian(), "mvbind(tarsus, back) ~ x + (1 |p| nest)", "gaussian",
    list(Intercept_tarsus = "b_tarsus_Intercept", b_tarsus = "b_tarsus", Intercept_back = "b_back_Intercept", b_back = "b_back",
         sd_tarsus_nest = "sd_1[1]", sd_back_nest = "sd_1[2]", cor_p = "cor_1", sigma = c("sigma_tarsus", "sigma_back"), cor_residual = "rescor"),
    0, ml = list("b_tarsus[x]" = pair(coef(summary(m)), "x")), witness = "lmer", prior = of(d$tarsus, "tarsus") + of(d$back, "back"))

d <- survival::lung[, c("time", "status", "age", "sex")]
d$cens <- ifelse(d$status == 2, "none", "right")
d$status <- NULL
m <- survival::coxph(Surv(time, cens == "none") ~ age + sex, d)
add("lung_cox", d, time | cens(cens) ~ age + sex, cox(), "time | cens(cens) ~ age + sex", "cox",
    list(Intercept = "b_Intercept", b = "b", sbhaz = "sbhaz"), 0,
    ml = list("b[sex]" = c(coef(m)["sex"], sqrt(vcov(m)["sex", "sex"]))), witness = "coxph", source = "Loprinzi et al. 1994 (survival)")

n <- 300
d <- data.frame(x = round(rnorm(n), 2))
second <- rbinom(n, 1, 0.35)
d$y <- round(ifelse(second == 1, 4 - 0.5 * d$x + rnorm(n, 0, 0.7), 0.5 + 0.8 * d$x + rnorm(n, 0, 1)), 3)
of <- function(dpar) {
  set_prior(sprintf("normal(%.10g, %.10g)", mean(d$y), 2.5 * sd(d$y)), "Intercept", dpar = dpar) +
    set_prior(sprintf("normal(0, %.10g)", 2.5 * sd(d$y) / sd(d$x)), "b", "x", dpar = dpar)
}
add("fish_sizes", d, y ~ x, mixture(gaussian(), gaussian()), "y ~ x", "mixture(gaussian, gaussian)",
    list(Intercept_1 = "b_mu1_Intercept", b_1 = "b_mu1", Intercept_2 = "b_mu2_Intercept", b_2 = "b_mu2", sigma1 = "sigma1", sigma2 = "sigma2",
         theta2 = "theta2"), 0, witness = "none",
    prior = of("mu1") + of("mu2") + set_prior(sprintf("exponential(%.10g)", 1 / sd(d$y)), "sigma1") +
      set_prior(sprintf("exponential(%.10g)", 1 / sd(d$y)), "sigma2"))

n <- 100
d <- data.frame(hard = rep(0:1, length.out = n), rt = 0, choice = "")
for (at in seq_len(n)) {
  path <- 0.55 * 1.5 + cumsum(rnorm(20000, (1.6 - 0.9 * d$hard[at]) * 1e-3, sqrt(1e-3)))
  end <- which(path <= 0 | path >= 1.5)[1]
  d$rt[at] <- round(0.25 + end * 1e-3, 3)
  d$choice[at] <- if (path[end] > 0) "upper" else "lower"
}
used <- data.frame(hard = d$hard, rt = d$rt, choice = as.integer(d$choice == "upper"))
add("decisions", d, rt | dec(choice) ~ hard, wiener(), "rt | dec(choice) ~ hard", "wiener",
    list(Intercept = "b_Intercept", b = "b", bs = "bs", ndt = "ndt", bias = "bias"), 0, witness = "none", used = used)

write_json(cases, file.path(out, "cases.json"), pretty = TRUE, digits = NA)
