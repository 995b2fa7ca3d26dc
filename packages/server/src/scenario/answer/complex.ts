// Complex numbers in double precision, as far as the functions of short answers need them.

export interface Complex {
  readonly re: number;
  readonly im: number;
}

export const zero: Complex = { re: 0, im: 0 };
export const one: Complex = { re: 1, im: 0 };
export const imaginary: Complex = { re: 0, im: 1 };

export const fromReal = (re: number): Complex => ({ re, im: 0 });
export const plus = (a: Complex, b: Complex): Complex => ({ re: a.re + b.re, im: a.im + b.im });
export const minus = (a: Complex, b: Complex): Complex => ({ re: a.re - b.re, im: a.im - b.im });

export function times(a: Complex, b: Complex): Complex {
  if (a.im === 0 && b.im === 0) return fromReal(a.re * b.re);
  return { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
}

export function over(a: Complex, b: Complex): Complex {
  if (a.im === 0 && b.im === 0) return fromReal(a.re / b.re);
  const size = b.re * b.re + b.im * b.im;
  return { re: (a.re * b.re + a.im * b.im) / size, im: (a.im * b.re - a.re * b.im) / size };
}

export const sizeOf = ({ re, im }: Complex): number => Math.hypot(re, im);

export function exp({ re, im }: Complex): Complex {
  const size = Math.exp(re);
  return im === 0 ? fromReal(size) : { re: size * Math.cos(im), im: size * Math.sin(im) };
}

/** The principal value. */
export const log = (a: Complex): Complex => ({ re: Math.log(sizeOf(a)), im: Math.atan2(a.im, a.re) });

export function toPower(base: Complex, exponent: Complex): Complex {
  if (sizeOf(exponent) === 0) return one;
  if (sizeOf(base) === 0) return exponent.re > 0 ? zero : fromReal(Number.NaN);
  if (base.im === 0 && exponent.im === 0 && (base.re > 0 || Number.isInteger(exponent.re))) return fromReal(base.re ** exponent.re);
  return exp(times(exponent, log(base)));
}

export const sqrt = (a: Complex): Complex => (a.im === 0 && a.re >= 0 ? fromReal(Math.sqrt(a.re)) : toPower(a, fromReal(0.5)));

export function sin(a: Complex): Complex {
  return a.im === 0 ? fromReal(Math.sin(a.re)) : { re: Math.sin(a.re) * Math.cosh(a.im), im: Math.cos(a.re) * Math.sinh(a.im) };
}

export function cos(a: Complex): Complex {
  return a.im === 0 ? fromReal(Math.cos(a.re)) : { re: Math.cos(a.re) * Math.cosh(a.im), im: -Math.sin(a.re) * Math.sinh(a.im) };
}

/** Real arguments within the domain only. */
export const ofReal =
  (compute: (x: number) => number) =>
  (a: Complex): Complex =>
    fromReal(Math.abs(a.im) < 1e-12 ? compute(a.re) : Number.NaN);
