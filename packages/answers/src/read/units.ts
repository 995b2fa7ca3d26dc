// Units of measurement: their dimension and factor to SI, with prefixes, products, quotients and powers.

/** Exponents of metre, kilogram, second, ampere, kelvin, mole and candela, and the factor to the SI unit. */
interface Unit {
  readonly factor: number;
  readonly dimension: readonly number[];
}

const none: Unit = { factor: 1, dimension: [0, 0, 0, 0, 0, 0, 0] };
const base = (index: number, factor = 1): Unit => ({ factor, dimension: none.dimension.map((_, at) => (at === index ? 1 : 0)) });
const scaled = (unit: Unit, factor: number): Unit => ({ ...unit, factor: unit.factor * factor });

function combine(a: Unit, b: Unit, power: number): Unit {
  return { factor: a.factor * b.factor ** power, dimension: a.dimension.map((one, at) => one + power * (b.dimension[at] ?? 0)) };
}

const [metre, kilogram, second, ampere, kelvin, mole] = [base(0), base(1), base(2), base(3), base(4), base(5)];
const newton = combine(combine(kilogram, metre, 1), second, -2);
const joule = combine(newton, metre, 1);
const watt = combine(joule, second, -1);
const coulomb = combine(ampere, second, 1);
const volt = combine(watt, ampere, -1);
const litre = scaled(combine(combine(metre, metre, 1), metre, 1), 1e-3);
const gram = scaled(kilogram, 1e-3);
const pascal = combine(newton, metre, -2);

const [hertz, ohm, speed] = [combine(none, second, -1), combine(volt, ampere, -1), combine(metre, second, -1)];

/** By all of its names, the unit that is this many of another. */
const named = (unit: Unit, sizes: Readonly<Record<string, number>>): Readonly<Record<string, Unit>> =>
  Object.fromEntries(Object.entries(sizes).flatMap(([names, size]) => names.split(' ').map((name) => [name, scaled(unit, size)])));

/** These take prefixes. */
const metric: Readonly<Record<string, Unit>> = {
  ...{ m: metre, g: gram, s: second, A: ampere, K: kelvin, mol: mole, N: newton, W: watt, C: coulomb, V: volt, L: litre, l: litre },
  ...{ metre, meter: metre, gram, second, litre, liter: litre, joule, watt, volt, newton, pascal, mole, kelvin, ampere, hertz },
  ...named(joule, { J: 1, eV: 1.602176634e-19, cal: 4.184, Wh: 3600 }),
  ...{ F: combine(coulomb, volt, -1), T: combine(combine(kilogram, ampere, -1), second, -2), Wb: combine(volt, second, 1) },
  ...{
    M: scaled(combine(mole, metre, -3), 1e3),
    S: combine(none, ohm, -1),
    ...named(hertz, { Bq: 1, Ci: 3.7e10 }),
    ...named(coulomb, { Ah: 3600 }),
  },
  ...{ H: combine(combine(volt, second, 1), ampere, -1), Ω: ohm, ohm, Hz: hertz, ...named(pascal, { Pa: 1, bar: 1e5 }) },
};

const prefixes: Readonly<Record<string, number>> = {
  ...{ k: 1e3, M: 1e6, G: 1e9, T: 1e12, c: 1e-2, d: 1e-1, m: 1e-3, µ: 1e-6, μ: 1e-6, u: 1e-6, n: 1e-9, p: 1e-12, f: 1e-15 },
  ...{ kilo: 1e3, mega: 1e6, giga: 1e9, centi: 1e-2, milli: 1e-3, micro: 1e-6, nano: 1e-9, pico: 1e-12 },
};

/** Only as they are. */
const plain: Readonly<Record<string, Unit>> = {
  ...named(second, { sec: 1, 'min minute': 60, 'h hr hour': 3600, day: 86_400, week: 604_800, month: 2_629_800, 'year yr': 31_557_600 }),
  ...named(metre, {
    'in inch': 0.0254,
    'ft foot feet': 0.3048,
    'yd yard': 0.9144,
    'mi mile': 1609.344,
    Å: 1e-10,
    ly: 9.4607304725808e15,
    'AU au': 1.495978707e11,
    'pc parsec': 3.0856775815e16,
  }),
  ...named(kilogram, { 'lb pound': 0.45359237, oz: 0.028349523125, ton: 1000, 'u amu': 1.6605390666e-27 }),
  ...named(pascal, { atm: 101_325, mmHg: 133.322387415, torr: 133.322368421, psi: 6894.757293 }),
  ...named(none, { 'rad radian': 1, '° degree deg': Math.PI / 180, 'percent %': 0.01 }),
  ...named(speed, { mph: 0.44704, kph: 1 / 3.6, knot: 0.514444444 }),
  ...named(kelvin, { '°C celsius': 1, '°F fahrenheit': 5 / 9 }),
  ...{
    rpm: scaled(hertz, 1 / 60),
    ...named(watt, { hp: 745.69987 }),
    ...named(joule, { erg: 1e-7, BTU: 1055.056 }),
    dyn: scaled(newton, 1e-5),
  },
  ...named(none, { ppm: 1e-6, ppb: 1e-9 }),
  ...{ gallon: scaled(litre, 3.785411784), gal: scaled(litre, 3.785411784), ...named(combine(metre, metre, 1), { 'hectare ha': 1e4 }) },
};

const maxLength = 60;

/** Reads `m/s^2`, `kg m^2 s^{-1}`, `J/(mol·K)`, `\text{cm}^2`, `square feet`. Undefined if a part is not known. */
export function parseUnit(text: string): Unit | undefined {
  if (text.length > maxLength) return undefined;
  const clean = text
    .replace(/\s+/g, ' ')
    .replace(/\\(?:text|mathrm|mbox|textrm|rm|operatorname)|\\[,;!]|\\ |[{}~$]/g, ' ')
    .replace(/\\(?:cdot|times)|[·⋅*]/g, ' ')
    .replace(/\\(?:mu|micro)\s*/g, 'µ')
    .replace(/\\Omega|Ω/g, 'Ω')
    .replace(/\^?\s?\\circ\s{0,3}(?=[CF])/g, '°')
    .replace(/℃/g, '°C')
    .replace(/℉/g, '°F')
    .replace(/°\s(?=[CF]\b)/g, '°')
    .replace(/\^? ?\\circ|\\degree/g, '°')
    .replace(/(?<=[a-zA-Z])°(?=[CF]\b)/g, ' °')
    .replace(/\\%/g, '%')
    .replace(/²/g, '^2')
    .replace(/³/g, '^3')
    .replace(/[⁻−]/g, '-')
    .replace(/¹/g, '1')
    .replace(/\b(?:square|sq\.?)\s+([a-z]+)/gi, '$1^2')
    .replace(/\bcubic\s+([a-z]+)/gi, '$1^3')
    .replace(/\bper\b/g, '/')
    .replace(/ ?\^ ?/g, '^')
    .trim();
  return clean === '' ? undefined : readProduct(clean);
}

function readProduct(text: string): Unit | undefined {
  let unit = none;
  let sign = 1;
  let isGroup = false;
  for (const part of text.match(/[/()]|[^\s/()]+/g) ?? []) {
    if (part === '/') sign = -1;
    else if (part === '(') isGroup = true;
    else if (part === ')') [isGroup, sign] = [false, 1];
    else {
      const [, name = '', power = '1'] = /^([^\d^-]+)\^?\(?(-?\d)?\)?$/.exec(part) ?? [];
      const found = name === '1' ? none : findUnit(name);
      if (found === undefined) return undefined;
      unit = combine(unit, found, sign * Number(power));
      if (!isGroup) sign = 1;
    }
  }
  return unit;
}

function findUnit(name: string): Unit | undefined {
  const exact = lookUp(name) ?? lookUp(name.replace(/\.$/, ''));
  if (exact !== undefined || name.length < 3) return exact;
  const lower = name.toLowerCase();
  return lookUp(lower) ?? lookUp(lower.replace(/(?:es|s)$/, '')) ?? lookUp(lower.replace(/s$/, ''));
}

function lookUp(name: string): Unit | undefined {
  if (Object.hasOwn(plain, name)) return plain[name];
  if (Object.hasOwn(metric, name)) return metric[name];
  for (const [prefix, factor] of Object.entries(prefixes)) {
    const rest = name.slice(prefix.length);
    if (name.startsWith(prefix) && Object.hasOwn(metric, rest)) return scaled(metric[rest] ?? none, factor);
  }
  return undefined;
}

export function hasSameDimension(a: Unit, b: Unit): boolean {
  return a.dimension.every((one, at) => one === b.dimension[at]);
}
