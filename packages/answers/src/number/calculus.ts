// Integrals and limits by their values near the end, with an error that says how far they can be trusted.

import type { Complex } from './complex.ts';
import * as complex from './complex.ts';
import * as real from './real.ts';

type Curve = (x: Complex) => Complex;

/** How near: 2^-80. What is as smooth as answers are differs from its limit by about as much. */
const nearness = 80;
/** The two ways towards the limit have to agree so far. */
const neededBits = 64;

const dyadic = (exponent: number): Complex => complex.fromReal({ mantissa: 1n, exponent, error: Number.NEGATIVE_INFINITY });

export function limitOf(at: Curve, where: Complex | 'infinity' | '-infinity'): Complex {
  const near = (bits: number, sign: 1n | -1n): Complex => {
    const step = complex.times(dyadic(typeof where === 'string' ? bits : -bits), complex.fromInteger(sign));
    return at(typeof where === 'string' ? step : complex.plus(where, step));
  };
  const sign = where === '-infinity' ? -1n : 1n;
  const [a, b] = typeof where === 'string' ? [near(nearness, sign), near(nearness + 1, sign)] : [near(nearness, 1n), near(nearness, -1n)];
  return agreed(a, b);
}

function agreed(a: Complex, b: Complex): Complex {
  const gap = complex.sizeOf(complex.minus(a, b));
  if (gap > Math.max(complex.sizeOf(a), 0) - neededBits) throw new real.NoValue('no limit');
  const error = Math.max(gap, Math.max(complex.sizeOf(a), 0) - nearness) + 4;
  return withErrors(b, error);
}

const withErrors = ({ re, im }: Complex, error: number): Complex => ({
  re: real.withError(re, error),
  im: im.mantissa === 0n ? im : real.withError(im, error),
});

/** Tanh-sinh quadrature, to about 20 digits for what is smooth between the ends. */
export function integralOf(at: Curve, from: Complex, to: Complex): Complex {
  const half = complex.over(complex.minus(to, from), complex.two);
  const middle = complex.over(complex.plus(to, from), complex.two);
  const value = (node: Complex, weight: Complex): Complex => complex.times(weight, at(complex.plus(middle, complex.times(half, node))));
  const sums = nodes().reduce(
    ([fine, coarse], { node, weight, isCoarse }) => {
      const one = value(node, weight);
      return [complex.plus(fine, one), isCoarse ? complex.plus(coarse, one) : coarse] as const;
    },
    [complex.zero, complex.zero] as readonly [Complex, Complex],
  );
  const [fine, coarse] = sums.map((sum) => complex.times(half, sum)) as [Complex, Complex];
  const step = dyadic(-stepBits);
  const [best, other] = [complex.times(fine, step), complex.times(complex.times(coarse, step), complex.two)];
  const size = Math.max(complex.sizeOf(best), 0);
  const gap = complex.sizeOf(complex.minus(best, other)) - size;
  if (gap > -neededBits / 2) throw new real.NoValue('the integral does not converge');
  // Half the step has twice the digits.
  return withErrors(best, size + Math.max(2 * gap + 8, 4 - nearness));
}

const stepBits = 4;
const reach = 4.25;

function nodes(): readonly { readonly node: Complex; readonly weight: Complex; readonly isCoarse: boolean }[] {
  const halfPi = complex.over(complex.pi, complex.two);
  return Array.from({ length: 2 * reach * 2 ** stepBits + 1 }, (_, index) => {
    const t = complex.fromReal(real.fromDouble(index / 2 ** stepBits - reach));
    const [size, isCoarse] = [complex.exp(t), index % 2 === 0];
    const [sinh, cosh] = [complex.minus, complex.plus].map((join) =>
      complex.over(join(size, complex.over(complex.one, size)), complex.two),
    ) as [Complex, Complex];
    const inner = complex.exp(complex.times(halfPi, sinh));
    const [up, down] = [inner, complex.over(complex.one, inner)];
    const coshInner = complex.over(complex.plus(up, down), complex.two);
    const node = complex.over(complex.minus(up, down), complex.plus(up, down));
    return { node, weight: complex.over(complex.times(halfPi, cosh), complex.times(coshInner, coshInner)), isCoarse };
  });
}
