"""The corpus: every model, the data file it reads and the variables it needs.

Source files are named relative to the data root: ARM and BUGS are the data of
Gelman and Hill (2006) and of the BUGS examples, volumes 1 to 3, as collected by
Stan's example models; posteriordb is the posterior database of that name.
A source of "simulated" names a function of simulate.py instead.
"""

MODELS = {
    "eight_schools_noncentred": ("posteriordb/eight_schools", "J y sigma"),
    "kidscore_interaction": ("posteriordb/kidiq", "N kid_score mom_hs mom_iq"),
    "radon_group_noncentred": ("ARM/Ch.12/radon", "N J county u x y"),
    "ar_k": ("posteriordb/arK", "K T y"),
    "gauss_mix_ordered": ("posteriordb/low_dim_gauss_mix", "N y"),
    "hmm_gaussian": ("posteriordb/hmm_example", "K N y"),
    "dogs_logistic": ("ARM/Ch.24/dogs", "n_dogs n_trials y"),
    "garch_1_1": ("posteriordb/garch", "T y sigma1"),
    "gp_regression": ("posteriordb/gp_pois_regr", "N x y"),
    "irt_2pl": ("simulated", "irt_2pl"),
    "wells_logit": ("ARM/Ch.5/wells", "N switched dist arsenic educ"),
    "roaches_negbin": ("ARM/Ch.8/roaches", "N y roach1 treatment senior exposure2"),
    "earnings_height": ("posteriordb/earnings", "N earn height"),
    "logearn_interaction": ("posteriordb/earnings", "N earn height male"),
    "mesquite_logs": ("posteriordb/mesquite",
                      "N weight diam1 diam2 canopy_height total_height density group"),
    "diamonds_glm": ("posteriordb/diamonds", "N Y K X"),
    "nes_vote_logit": ("ARM/Ch.5/nes1992_vote", "N income vote"),
    "nes_party_linear": ("posteriordb/nes1972",
                         "N age_discrete educ1 gender income partyid7 race_adj real_ideo"),
    "epil_poisson": ("BUGS/vol1/epil/epil", "N T y Trt V4 log_Base4 log_Age BT log_Age_bar Trt_bar "
                     "BT_bar V4_bar log_Base4_bar"),
    "roaches_poisson": ("ARM/Ch.8/roaches", "N y roach1 treatment senior exposure2"),
    "seeds_binomial": ("BUGS/vol1/seeds/seeds", "I n N x1 x2"),
    "surgical_hierarchical": ("BUGS/vol1/surgical/surgical", "N r n"),
    "beetles_logit": ("BUGS/vol2/beetles/beetles_logit", "N n r x"),
    "beetles_probit": ("BUGS/vol2/beetles/beetles_probit", "N n r x"),
    "beetles_cloglog": ("BUGS/vol2/beetles/beetles_cloglog", "N n r x"),
    "eight_schools_student": ("posteriordb/eight_schools", "J y sigma"),
    "radon_pooled": ("ARM/Ch.12/radon", "N x y"),
    "radon_intercept_centred": ("ARM/Ch.12/radon", "N J county x y"),
    "radon_slope_correlated": ("ARM/Ch.12/radon", "N J county x y"),
    "pilots_crossed": ("ARM/Ch.13/pilots", "N n_groups n_scenarios group_id scenario_id y"),
    "rats_growth": ("BUGS/vol1/rats/rats", "N T x y xbar"),
    "birats_inv_wishart": ("BUGS/vol2/birats/birats", "N T x y S"),
    "birats_lkj": ("BUGS/vol2/birats/birats", "N T x y"),
    "dyes_variance_components": ("BUGS/vol1/dyes/dyes", "BATCHES SAMPLES y"),
    "pump_gamma_poisson": ("BUGS/vol1/pump/pump", "N x t"),
    "oxford_strata": ("BUGS/vol1/oxford/oxford", "K n0 n1 r0 r1 year"),
}
