// Chemical formulas in one spelling: ions, isotopes, hydrates and equations of reactions. Case counts, since CO is not Co.

const elements =
  /^(?:A[cglmrstu]|B[aehikr]?|C[adefl-orsu]?|D[bsy]?|E[rsu]|F[elmr]?|G[ade]|H[efgos]?|I[nr]?|Kr?|L[airuv]|M[cdgnot]|N[abdehiop]?|O[gs]?|P[abdmortu]?|R[abe-hnu]|S[bcegimnr]?|T[abceh-ms]?|U|V|W|Xe|Yb?|Z[nr])/;
const maxLength = 300;

const names: Readonly<Record<string, string>> = {
  ...{ hydrogen: 'H', helium: 'He', lithium: 'Li', carbon: 'C', nitrogen: 'N', oxygen: 'O', phosphorus: 'P', potassium: 'K', cobalt: 'Co' },
  ...{ strontium: 'Sr', iodine: 'I', cesium: 'Cs', caesium: 'Cs', polonium: 'Po', radon: 'Rn', radium: 'Ra', thorium: 'Th', uranium: 'U' },
  ...{ plutonium: 'Pu', americium: 'Am', technetium: 'Tc', lead: 'Pb', iron: 'Fe', chlorine: 'Cl', neon: 'Ne', argon: 'Ar', sodium: 'Na' },
};
const subscripts = '₀₁₂₃₄₅₆₇₈₉';
const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** The spellings that a text may mean, such as Ca2+ with two readings; none if it is no formula. */
export function toFormulas(text: string): readonly string[] {
  if (text.length > maxLength) return [];
  const clean = tidy(text);
  const sides = clean.split(/->|=/);
  if (sides.length > 2) return [];
  if (sides.length === 2) {
    const read = sides.map(readSide);
    return read.includes(undefined) ? [] : [read.join('->')];
  }
  return readSpecies(clean);
}

function tidy(text: string): string {
  return withoutBraces(toPlain(text));
}

/** Braces around all of it mean nothing. */
function withoutBraces(text: string): string {
  if (!text.startsWith('{') || !text.endsWith('}')) return text;
  let depth = 0;
  for (const [at, mark] of [...text].entries()) {
    depth += mark === '{' ? 1 : mark === '}' ? -1 : 0;
    if (depth === 0) return at === text.length - 1 ? text.slice(1, -1) : text;
  }
  return text;
}

function toPlain(text: string): string {
  return text
    .replace(/\\(?:ce|text|mathrm|mathbf|textbf|rm)(?![a-zA-Z])/g, '')
    .replace(/\\(?:x?long)?rightarrow|\\to(?![a-zA-Z])|\\(?:xrightarrow|rightleftharpoons|leftrightarrow)|→|⟶|⇌|<=>|-->/g, '->')
    .replace(/\\(?:cdot|bullet|times)(?![a-zA-Z])|[·•*∙⋅]/g, '.')
    .replace(/[−–⁻]/g, '-')
    .replaceAll('⁺', '+')
    .replace(/[₀-₉]/g, (digit) => String(subscripts.indexOf(digit)))
    .replace(/[⁰¹²³⁴-⁹]+/g, (digits) => `^{${[...digits].map((digit) => superscripts.indexOf(digit)).join('')}}`)
    .replace(/\((?:g|l|s|aq)\)/g, '')
    .replace(/\\[,;!: ]|[$\s~]|\.$/g, '');
}

/** Reactants and products in any order; a plus sign between two formulas separates them. */
function readSide(side: string): string | undefined {
  const species = side.split(/\+(?=[\dA-Z[({^])/).map((one) => readSpecies(one)[0]);
  return species.includes(undefined) ? undefined : species.toSorted().join('+');
}

function readSpecies(text: string): readonly string[] {
  const isotope = readIsotope(text);
  if (isotope !== undefined) return [isotope];
  const [, count = '', rest = ''] = /^(\d{0,4})(.*)$/s.exec(text) ?? [];
  return chargesOf(rest).flatMap(({ body, charge }) => {
    const clean = body.replace(/[_{}]/g, '');
    return isFormula(clean) ? [`${count}${clean}${charge}`] : [];
  });
}

/** `^{14}_6C`, `C-14` and `carbon-14`. */
function readIsotope(text: string): string | undefined {
  const [, mass, symbol = ''] = /^(?:\{\})?\^\{?(\d{1,3})\}?(?:_\{?\d{1,3}\}?)?\{?([A-Z][a-z]?)\}?$/.exec(text) ?? [];
  if (mass !== undefined && isFormula(symbol)) return `[${mass}]${symbol}`;
  const [, name = '', number] = /^([A-Za-z]{1,12})-(\d{1,3})$/.exec(text) ?? [];
  const element = names[name.toLowerCase()] ?? name;
  return number !== undefined && isFormula(element) ? `[${number}]${element}` : undefined;
}

/** A charge is after `^`, or the last sign with or without the digit before it. */
function chargesOf(text: string): readonly { readonly body: string; readonly charge: string }[] {
  const [, marked, inner = ''] = /^(.*)\^\{?([\d+-]{1,3})\}?$/s.exec(text) ?? [];
  if (marked !== undefined) return [{ body: marked, charge: renderCharge(inner) }];
  const [, body, digit = '', sign = ''] = /^(.*?)(\d?)([+-])$/s.exec(text) ?? [];
  if (body === undefined) return [{ body: text, charge: '' }];
  const alone = { body: body + digit, charge: renderCharge(sign) };
  return digit === '' || digit === '1' ? [alone] : [{ body, charge: renderCharge(digit + sign) }, alone];
}

const renderCharge = (text: string): string => `^${text.replace(/\D/g, '') || '1'}${text.includes('-') ? '-' : '+'}`;

/** Elements with counts and brackets, with parts of a hydrate. */
function isFormula(text: string): boolean {
  let rest = text;
  let depth = 0;
  if (!/[A-Z]/.test(text)) return false;
  while (rest !== '') {
    const [part = ''] = elements.exec(rest) ?? /^(?:\d+|[([]|[)\]]|\.(?=\d{0,2}[A-Z]))/.exec(rest) ?? [];
    if (part === '') return false;
    if (part === '(' || part === '[') depth += 1;
    if (part === ')' || part === ']') depth -= 1;
    if (depth < 0) return false;
    rest = rest.slice(part.length);
  }
  return depth === 0;
}
