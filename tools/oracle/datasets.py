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
}
