"""Small tables typed in from the literature."""


def dippers():
    """European dippers ringed 1981 to 1986 in eastern France, both sexes: releases of
    each year and the year they were first seen again (Lebreton, Burnham, Clobert
    and Anderson 1992, Ecological Monographs 62:67-118; data of G. Marzolin). The
    flood of 1983 marks the second and third interval."""
    return {
        "n_release": 6,
        "released": [22, 60, 78, 80, 88, 98],
        "first_recapture": [
            [11, 2, 0, 0, 0, 0],
            [0, 24, 1, 0, 0, 0],
            [0, 0, 34, 2, 0, 0],
            [0, 0, 0, 45, 1, 2],
            [0, 0, 0, 0, 51, 0],
            [0, 0, 0, 0, 0, 52],
        ],
        "flood": [0, 1, 1, 0, 0, 0],
    }


def boarding_school():
    """Boys confined to bed by influenza in a boarding school of 763 boys, 22 January to
    4 February 1978 (British Medical Journal, 4 March 1978, page 587)."""
    return {
        "days": 14,
        "boys": 763,
        "in_bed": [3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4],
    }
