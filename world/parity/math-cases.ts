// Answers as they occur in MATH, GSM8K, AIME and competitions, each in several forms and against wrong ones.

export interface MathCase {
  /** What the agent wrote. */
  readonly given: string;
  readonly truth: string;
}

/** Forms of the same answer: the first is the expected one. */
const families: readonly (readonly string[])[] = [
  ['42', '42.0', '+42', '\\text{42}', '42.'],
  ['-3', '-3.0', '- 3', '\\frac{-6}{2}'],
  ['1000', '1,000', '1{,}000', '10^3'],
  ['1234567', '1,234,567', '1{,}234{,}567'],
  ['\\frac{1}{2}', '1/2', '0.5', '\\dfrac{1}{2}', '\\tfrac12', '\\frac{2}{4}', '.5'],
  ['-\\frac{3}{4}', '\\frac{-3}{4}', '-0.75', '-3/4'],
  ['\\frac{22}{7}', '22/7', '3\\frac{1}{7}'],
  ['\\sqrt{2}', '\\sqrt 2', '2^{1/2}', '\\frac{2}{\\sqrt{2}}'],
  ['2\\sqrt{3}', '\\sqrt{12}', '2 \\sqrt{3}', '2\\cdot\\sqrt{3}'],
  ['\\frac{\\sqrt{3}}{3}', '\\frac{1}{\\sqrt{3}}', '\\dfrac{\\sqrt 3}{3}'],
  ['\\sqrt[3]{4}', '4^{1/3}', '2^{2/3}'],
  ['\\pi', '\\frac{2\\pi}{2}', '{\\pi}'],
  ['\\frac{\\pi}{4}', '\\pi/4', '\\frac14\\pi', '0.25\\pi'],
  ['4\\pi', '4 \\pi', '4\\cdot\\pi', '\\pi \\cdot 4'],
  ['\\frac{3\\sqrt{5}}{2}', '\\frac32\\sqrt5', '1.5\\sqrt{5}'],
  ['1+\\sqrt{5}', '\\sqrt{5}+1', '1 + \\sqrt{5}'],
  ['\\frac{1+\\sqrt{5}}{2}', '\\frac{\\sqrt5+1}{2}', '\\frac12+\\frac{\\sqrt5}{2}'],
  ['x^2+2x+1', '(x+1)^2', '1+2x+x^2', 'x^{2}+2x+1'],
  ['2x+3', '3+2x', '2(x+1.5)'],
  ['\\frac{x+1}{x-1}', '\\dfrac{1+x}{x-1}', '-\\frac{x+1}{1-x}'],
  ['(x-2)(x+3)', 'x^2+x-6', '(x+3)(x-2)'],
  ['a^2-b^2', '(a-b)(a+b)', '-b^2+a^2'],
  ['3+4i', '4i+3', '3 + 4i'],
  ['-i', '-1i', '\\frac{1}{i}'],
  ['e^2', 'e^{2}', 'e \\cdot e'],
  ['\\ln 2', '\\ln(2)', '\\ln{2}'],
  ['\\log_2 5', '\\log_{2}{5}', '\\log_2(5)'],
  ['\\sin x', '\\sin(x)', '\\sin{x}'],
  ['\\cos 2x', '\\cos(2x)', '\\cos{2x}'],
  ['2^{10}', '1024', '2^10'],
  ['5!', '120'],
  ['\\binom{6}{2}', '15'],
  ['(1,2)', '(1, 2)', '\\left(1,2\\right)', '( 1 , 2 )'],
  ['(3,-4,\\frac12)', '(3, -4, 0.5)', '\\left(3,-4,\\frac{1}{2}\\right)'],
  ['\\left(3, \\frac{\\pi}{2}\\right)', '(3,\\frac{\\pi}{2})', '(3,\\pi/2)'],
  ['\\{1,2,3\\}', '\\{3,2,1\\}', '\\left\\{1, 2, 3\\right\\}'],
  ['1,2,3', '1, 2, 3', '3, 2, 1'],
  ['-2, 5', '5, -2', '-2 \\text{ and } 5'],
  ['[0,1]', '\\left[0,1\\right]', '[0, 1]'],
  ['(0,1]', '\\left(0,1\\right]', '(0, 1]'],
  ['(-\\infty,2)', '(-\\infty, 2)', '\\left(-\\infty,2\\right)'],
  ['(-\\infty,-1)\\cup(1,\\infty)', '(-\\infty, -1) \\cup (1, \\infty)', '(1,\\infty)\\cup(-\\infty,-1)'],
  ['[2,5)', '2\\le x<5', '[2, 5)'],
  ['x=5', '5', 'x = 5'],
  ['y=2x+1', 'y = 2x + 1', 'y=1+2x'],
  [
    '\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}',
    '\\begin{bmatrix}1&2\\\\3&4\\end{bmatrix}',
    '\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}',
  ],
  ['\\begin{pmatrix}\\frac12\\\\-1\\end{pmatrix}', '\\begin{pmatrix} 0.5 \\\\ -1 \\end{pmatrix}'],
  ['50\\%', '50%', '0.5', '50'],
  ['12.5\\%', '12.5%', '0.125'],
  ['10\\text{ cm}', '10', '10 \\text{ cm}', '10\\mathrm{cm}'],
  ['25\\text{ square units}', '25'],
  ['30^\\circ', '30', '30^{\\circ}', '30°'],
  ['\\$18', '18', '\\$18.00', '18 \\text{ dollars}'],
  ['6.02\\times 10^{23}', '6.02 \\cdot 10^{23}', '602000000000000000000000'],
  ['3.14', '3.140', '\\frac{157}{50}'],
  ['0.333333', '\\frac{1}{3}'],
  ['\\text{Monday}', 'Monday', '\\text{ Monday }'],
  ['\\text{(C)}', 'C', '(C)', '\\text{C}'],
  ['\\infty', '+\\infty'],
  ['2n+1', '1+2n', 'n+n+1'],
  ['\\frac{n(n+1)}{2}', '\\frac{n^2+n}{2}', '\\binom{n+1}{2}'],
  ['|x-3|', '|3-x|', '\\left|x-3\\right|'],
  ['\\lfloor x \\rfloor', '\\left\\lfloor x\\right\\rfloor'],
  ['10000000000000001', '10^{16}+1'],
];

const wordings: readonly ((answer: string) => string)[] = [
  (answer) => `We compute. Thus \\boxed{${answer}}.`,
  (answer) => `The final answer is $\\boxed{${answer}}$`,
  (answer) => `The final answer is $${answer}$. I hope it is correct.`,
];

/** Every form in turn with every wording, and each family against the next one. */
export function makeMathCases(): readonly MathCase[] {
  const same = families.flatMap(([truth = '', ...forms]) => [truth, ...forms].map((form, at) => toCase(form, truth, at)));
  const swapped = families.flatMap(([truth = '', ...forms]) => forms.map((form, at) => toCase(truth, form, at)));
  const other = families.flatMap(([truth = ''], at) =>
    [1, 7].map((step) => toCase(families[(at + step) % families.length]?.[0] ?? '', truth, at + step)),
  );
  const near = families.flatMap(([truth = ''], at) => [`${truth}+1`, `-${truth}`].map((form) => toCase(form, truth, at)));
  return [...same, ...swapped, ...other, ...near];
}

function toCase(form: string, truth: string, at: number): MathCase {
  return { given: (wordings[at % wordings.length] ?? String)(form), truth };
}
