//! Tests that compare every operation on every SIMD level with plain Rust.

use super::{F64x8, Kernel, LANES, Simd, SimdError};

const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -2.5,
    2.5,
    3.0,
    0.75,
    0.7499999999999999,
    1.4999999999999998,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    2.225073858507201e-308,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
    4503599627370497.5,
];

struct AllOps {
    a: [f64; LANES],
    b: [f64; LANES],
}

impl Kernel for AllOps {
    type Output = Vec<[f64; LANES]>;

    #[inline(always)]
    fn run<V: F64x8>(self) -> Self::Output {
        let (a, b) = (V::from_array(self.a), V::from_array(self.b));
        let one = V::splat(1.0);
        let flag = |m: V::Mask| V::select(m, one, V::zero()).to_array();
        let sum = a.sum();
        vec![
            (a + b).to_array(),
            (a - b).to_array(),
            (a * b).to_array(),
            (a / b).to_array(),
            (-a).to_array(),
            a.sqrt().to_array(),
            a.min(b).to_array(),
            a.max(b).to_array(),
            a.abs().to_array(),
            a.floor().to_array(),
            a.round().to_array(),
            a.trunc().to_array(),
            a.copysign(b).to_array(),
            a.high_bits().to_array(),
            flag(a.lt(b)),
            flag(a.le(b)),
            flag(a.gt(b)),
            flag(a.ge(b)),
            flag(a.eq(b)),
            flag(a.is_nan()),
            flag(a.is_sign_negative()),
            flag(V::and(a.lt(b), a.lt(one))),
            flag(V::or(a.lt(b), a.lt(one))),
            flag(V::not(a.lt(b))),
            flag(V::mask_from_bits(V::mask_bits(a.lt(b)))),
            [f64::from(V::mask_bits(a.lt(b))); LANES],
            [f64::from(u8::from(V::any(a.lt(b)))); LANES],
            [f64::from(u8::from(V::all(a.lt(b)))); LANES],
            [sum; LANES],
        ]
    }
}

fn expected(a: [f64; LANES], b: [f64; LANES]) -> Vec<[f64; LANES]> {
    let zip = |f: &dyn Fn(f64, f64) -> f64| std::array::from_fn(|i| f(a[i], b[i]));
    let flag =
        |f: &dyn Fn(f64, f64) -> bool| std::array::from_fn(|i| f64::from(u8::from(f(a[i], b[i]))));
    let less = |i: usize| a[i] < b[i];
    vec![
        zip(&|x, y| x + y),
        zip(&|x, y| x - y),
        zip(&|x, y| x * y),
        zip(&|x, y| x / y),
        zip(&|x, _| -x),
        zip(&|x, _| x.sqrt()),
        zip(&|x, y| if x < y { x } else { y }),
        zip(&|x, y| if x > y { x } else { y }),
        zip(&|x, _| x.abs()),
        zip(&|x, _| x.floor()),
        zip(&|x, _| x.round_ties_even()),
        zip(&|x, _| x.trunc()),
        zip(&f64::copysign),
        zip(&|x, _| f64::from_bits(x.to_bits() & !0x07ff_ffff)),
        flag(&|x, y| x < y),
        flag(&|x, y| x <= y),
        flag(&|x, y| x > y),
        flag(&|x, y| x >= y),
        flag(&|x, y| x == y),
        flag(&|x, _| x.is_nan()),
        flag(&|x, _| x.is_sign_negative()),
        flag(&|x, y| x < y && x < 1.0),
        flag(&|x, y| x < y || x < 1.0),
        flag(&|x, y| !x.lt(&y)),
        flag(&|x, y| x < y),
        [(0..LANES)
            .map(|i| f64::from(u8::from(less(i))) * 2f64.powi(i as i32))
            .sum(); LANES],
        [f64::from(u8::from((0..LANES).any(less))); LANES],
        [f64::from(u8::from((0..LANES).all(less))); LANES],
        [((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); LANES],
    ]
}

#[test]
fn operations_agree_with_plain_rust() {
    for shift in 0..SPECIAL.len() {
        for start in [0, 8, 16] {
            let a = std::array::from_fn(|i| SPECIAL[start + i]);
            let b = std::array::from_fn(|i| SPECIAL[(start + i + shift) % SPECIAL.len()]);
            let want = expected(a, b);
            for simd in Simd::available() {
                for (op, (got, want)) in simd.run(AllOps { a, b }).iter().zip(&want).enumerate() {
                    for (g, w) in got.iter().zip(want) {
                        // The payload and the sign of a NaN are not specified.
                        let same = g.to_bits() == w.to_bits() || g.is_nan() && w.is_nan();
                        assert!(
                            same,
                            "{simd}: operation {op} on {a:?}, {b:?}: {got:?}, not {want:?}"
                        );
                    }
                }
            }
        }
    }
}

struct Fused([f64; LANES], [f64; LANES], [f64; LANES]);

impl Kernel for Fused {
    type Output = [[f64; LANES]; 3];

    #[inline(always)]
    fn run<V: F64x8>(self) -> Self::Output {
        let (a, b, c) = (
            V::from_array(self.0),
            V::from_array(self.1),
            V::from_array(self.2),
        );
        let (p, e) = a.mul_exact(b);
        [a.fma(b, c).to_array(), p.to_array(), e.to_array()]
    }
}

#[test]
fn multiply_add_is_fused_and_products_are_exact() {
    let a: [f64; LANES] = std::array::from_fn(|i| 1.0 + (i as f64 + 1.0) / 3.0);
    let b: [f64; LANES] = std::array::from_fn(|i| -1.0 / (i as f64 + 1.7));
    let c: [f64; LANES] = std::array::from_fn(|i| -(a[i] * b[i]));
    for simd in Simd::available() {
        let [fused, product, error] = simd.run(Fused(a, b, c));
        for i in 0..LANES {
            assert_eq!(product[i], a[i] * b[i]);
            assert_eq!(error[i], a[i].mul_add(b[i], -product[i]));
            if simd != Simd::Scalar {
                assert_eq!(fused[i], a[i].mul_add(b[i], c[i]));
            }
        }
    }
}

struct Exponents([f64; LANES], [f64; LANES]);

impl Kernel for Exponents {
    type Output = [[f64; LANES]; 3];

    #[inline(always)]
    fn run<V: F64x8>(self) -> Self::Output {
        let x = V::from_array(self.0);
        let (e, m) = x.split_pow2();
        [
            e.to_array(),
            m.to_array(),
            x.scale_pow2(V::from_array(self.1)).to_array(),
        ]
    }
}

struct Powers([f64; LANES]);

impl Kernel for Powers {
    type Output = [f64; LANES];

    #[inline(always)]
    fn run<V: F64x8>(self) -> Self::Output {
        V::from_array(self.0).pow2_of_sum().to_array()
    }
}

#[test]
fn exponents_split_and_scale() {
    let x = [
        1.0,
        0.7499999999999999,
        0.75,
        1.5,
        3e300,
        2.2250738585072014e-308,
        5e-324,
        1.1e-310,
    ];
    for simd in Simd::available() {
        let [e, m, _] = simd.run(Exponents(x, x));
        for i in 0..LANES {
            assert!((0.75..1.5).contains(&m[i]), "{simd}: {x:?} gave {m:?}");
            let half = (e[i] / 2.0).floor();
            assert_eq!(m[i] * half.exp2() * (e[i] - half).exp2(), x[i], "{simd}");
        }
    }
    let x = [
        0.0,
        -0.0,
        f64::INFINITY,
        -1.0,
        f64::NEG_INFINITY,
        f64::NAN,
        2.0,
        -5e-324,
    ];
    let inf = f64::INFINITY;
    for simd in Simd::available() {
        let [e, m, _] = simd.run(Exponents(x, [0.0; LANES]));
        assert_eq!(
            (&e[..3], &m[..3]),
            (&[-inf, -inf, inf][..], &[1.0; 3][..]),
            "{simd}"
        );
        assert!([3, 4, 5, 7].iter().all(|&i| m[i].is_nan()), "{simd}: {m:?}");
        assert_eq!((e[6], m[6]), (1.0, 1.0), "{simd}");
    }
    let n = [-1022.0, -1021.0, -52.0, -1.0, 0.0, 1.0, 1000.0, 1023.0];
    for simd in Simd::available() {
        let sums = n.map(|n| 6_755_399_441_055_744.0 + 1023.0 + n);
        assert_eq!(simd.run(Powers(sums)), n.map(f64::exp2), "{simd}");
    }
    let x = [1.3, 1.7, -1.1, 1.9, 1.0, 1.25, 1.5, f64::NAN];
    for n in [
        -2000.0, -1075.0, -1074.0, -1060.0, -1022.0, -1.0, 0.0, 1.0, 1023.0, 1024.0, 2000.0,
    ] {
        for simd in Simd::available() {
            let [_, _, scaled] = simd.run(Exponents(x, [n; LANES]));
            for i in 0..LANES {
                let want = libm::scalbn(x[i], n as i32);
                assert!(
                    scaled[i] == want || want.is_nan() && scaled[i].is_nan(),
                    "{simd}: {} * 2^{n}",
                    x[i]
                );
            }
        }
    }
}

#[test]
fn names_are_read_back() {
    for simd in Simd::available() {
        assert_eq!(simd.name().parse(), Ok(simd));
    }
    assert_eq!("auto".parse(), Ok(Simd::detect()));
    assert_eq!(Simd::available()[0], Simd::detect());
    let error = "sse9".parse::<Simd>().unwrap_err();
    assert_eq!(error, SimdError::Unknown("sse9".into()));
    assert!(error.to_string().contains("avx512"));
    let lacking = SimdError::Unavailable {
        wanted: "avx512",
        best: Simd::Scalar,
    };
    assert!(lacking.to_string().contains("no avx512") && lacking.to_string().contains("scalar"));
}
