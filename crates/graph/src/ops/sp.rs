pub fn inv_logit(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}
pub fn logit(x: f64) -> f64 {
    (x / (1.0 - x)).ln()
}
pub fn log1p_exp(x: f64) -> f64 {
    if x > 0.0 {
        x + (-x).exp().ln_1p()
    } else {
        x.exp().ln_1p()
    }
}
pub fn log1m_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 {
        (-x.exp_m1()).ln()
    } else {
        (-x.exp()).ln_1p()
    }
}
pub fn log_sum_exp2(x: f64, y: f64) -> f64 {
    if x == y {
        x + std::f64::consts::LN_2
    } else {
        let m = x.max(y);
        m + (-(x - y).abs()).exp().ln_1p()
    }
}
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}
pub fn digamma(x: f64) -> f64 {
    let (mut s, mut x) = (0.0, x);
    while x < 20.0 {
        s -= 1.0 / x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    s + x.ln()
        - 0.5 / x
        - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))))
}
pub fn trigamma(x: f64) -> f64 {
    super::elementwise::polygamma(1, x)
}
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}
pub fn log_normal_cdf(x: f64) -> f64 {
    if x > -30.0 {
        normal_cdf(x).ln()
    } else {
        let r = 1.0 / (x * x);
        -0.5 * x * x - (-x).ln() - 0.918_938_533_204_672_8
            + (1.0 - r * (1.0 - 3.0 * r * (1.0 - 5.0 * r))).ln()
    }
}
pub fn normal_quantile(p: f64) -> f64 {
    let mut x = 0.0;
    for _ in 0..60 {
        let f = normal_cdf(x) - p;
        let d = super::elementwise::INV_SQRT_2PI * (-0.5 * x * x).exp();
        x -= (f / d).clamp(-1.0, 1.0);
    }
    x
}
