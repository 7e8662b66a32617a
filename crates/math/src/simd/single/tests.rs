//! Tests that compare every SIMD level with scalar arithmetic.

use super::{F32x16, LANES32};
use crate::simd::Simd;

crate::simd_fn! {
    fn probe, probe_fn = <V>(x: &[f32; 16], y: &[f32; 16], out: &mut Vec<[f32; 16]>) {
        let (a, b) = (V::Single::from_array(*x), V::Single::from_array(*y));
        let (e, m) = a.abs().split_pow2();
        let unit = V::Single::splat(1.25);
        let one_if = |mask| V::Single::select(mask, V::Single::splat(1.0), V::Single::zero());
        let results = [
            a + b, a - b, a * b, a / b, -a, a.abs().sqrt(), a.min(b), a.max(b), a.abs(), a.round(),
            a.copysign(b), unit.scale_pow2(V::Single::splat(-140.0)), unit.scale_pow2(a.round().min(V::Single::splat(100.0))),
            e, m, one_if(a.lt(b)), one_if(a.le(b)), one_if(V::Single::eq(a, b)), V::Single::splat(a.sum()), V::Single::splat(a.largest()),
        ];
        out.extend(results.iter().map(|r| r.to_array()));
        // SAFETY: the arrays have sixteen elements.
        unsafe {
            let mut part = [9.0; 16];
            V::Single::load_part(x.as_ptr().add(3), 5).store_part(part.as_mut_ptr(), 4);
            out.push(part);
            for n in 0..=16 {
                let mut part = [7.0; 16];
                V::Single::load_part(x.as_ptr(), n).store(part.as_mut_ptr());
                out.push(part);
                let mut part = [7.0; 16];
                b.store_part(part.as_mut_ptr(), n);
                out.push(part);
            }
        }
    }
}

#[test]
fn levels_agree_with_scalar_arithmetic() {
    let x = [
        0.5, -1.5, 2.5, 3.25, -0.0, 1e-40, 7.0, -8.5, 9.5, 1e20, 11.0, -12.75, 13.5, 0.75, 1.5,
        -16.0,
    ];
    let y = [
        1.0, -1.5, -2.0, 3.0, 4.0, 5.0, -6.0, 7.0, 8.0, 9.0, -10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
    ];
    let mut expected = Vec::new();
    probe(Simd::Scalar, &x, &y, &mut expected);
    for i in 0..LANES32 {
        assert_eq!(expected[0][i], x[i] + y[i]);
        assert_eq!(expected[3][i], x[i] / y[i]);
        assert_eq!(expected[9][i], x[i].round_ties_even());
        if x[i] != 0.0 {
            let whole = expected[14][i] as f64 * 2f64.powi(expected[13][i] as i32);
            assert_eq!(whole, f64::from(x[i].abs()));
            assert!((0.75..1.5).contains(&expected[14][i]));
        }
    }
    assert_eq!(expected[19], [1e20; LANES32]);
    for simd in Simd::available() {
        let mut found = Vec::new();
        probe(simd, &x, &y, &mut found);
        for (which, (a, b)) in found.iter().zip(&expected).enumerate() {
            let bits = |r: &[f32; 16]| r.map(f32::to_bits);
            assert_eq!(bits(a), bits(b), "result {which} at level {simd}");
        }
    }
}
