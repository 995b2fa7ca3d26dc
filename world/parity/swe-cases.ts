// Cases for the parity with the harness of SWE-bench: logs of every test runner that both know, with odd names and lines, statuses with the
// tests that are expected, and whole runs with their exit codes. The same cases in every run.

const statuses = ['PASSED', 'FAILED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;

/** A small generator with a fixed start, so that a difference can be found again. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Draw = (below: number) => number;
const pick = <T>(random: Draw, list: readonly T[]): T => list[random(list.length)] as T;

const names: readonly string[] = [
  'tests/test_a.py::test_one',
  'tests/test_a.py::TestB::test_two',
  'tests/test_a.py::test_p[1-2]',
  'tests/test_a.py::test_p[a b]',
  'tests/test_a.py::test_p[/tmp/x/y.txt]',
  'tests/test_a.py::test_p[//host/share]',
  'tests/test_a.py::test_p[/tmp/*]',
  'tests/test_a.py::test_p[x]y[z]',
  'tests/test_m.py::test_click[MouseButton.LEFT-2]',
  'test_inflection.py::test_ü[Ä]',
  '[100%]',
  '[3]',
];

const pytestLines = (random: Draw): string => {
  const [name, status] = [pick(random, names), pick(random, statuses)];
  return pick(random, [
    `${status} ${name}`,
    `${status} ${name} - AssertionError: 1 - 2`,
    `${name} ${status}`,
    `${name} ${status} [ 50%]`,
    `\u001b[32m${status}\u001b[0m ${name}`,
    `${status}`,
    `  ${status} ${name}`,
    `SKIPPED [1] tests/test_a.py:3: reason`,
    `${name} PASSED   [ 12%]`,
    `=== short test summary info ===`,
    `ERROR ${name} - ValueError`,
    `PASSEDx ${name}`,
    '',
  ]);
};

const djangoLines = (random: Draw): string => {
  const name = pick(random, [
    'test_a (app.tests.ATests)',
    'test_b (app.tests.ATests.test_b)',
    'A docstring of a test.',
    'Applying sites.0002_alter_domain_unique...test_no_migrations (m.T)',
  ]);
  return pick(random, [
    `${name} ... ok`,
    `${name} ... OK`,
    `${name} ...  OK`,
    `${name} ... FAIL`,
    `${name} ... ERROR`,
    `${name} ... skipped 'no database'`,
    `${name} ... some output`,
    'ok',
    '  ok then',
    `FAIL: ${name}`,
    `ERROR: ${name}`,
    `${name} ... Testing against Django installed in x\nmore (0 silenced).\nok`,
    `${name} ... Internal Server Error: /x/\nok`,
    `${name} ... System check identified no issues (0 silenced)\nok`,
    '--version is equivalent to version',
    '----------',
  ]);
};

const sympyLines = (random: Draw): string =>
  pick(random, [
    'test_x ok',
    'test_y F',
    'test_z E',
    'test_q f',
    ' test_w ok ',
    '___ sympy/core/tests/test_x.py:test_x ___',
    'test_skip s',
    'sympy/core/test_x.py[3] ..F',
  ]);

const lines: Readonly<Record<string, (random: Draw) => string>> = {
  pytest: pytestLines,
  pytest_options: pytestLines,
  pytest_v2: pytestLines,
  matplotlib: pytestLines,
  seaborn: pytestLines,
  django: djangoLines,
  sympy: sympyLines,
  gotest: (random) =>
    pick(random, [
      '--- PASS: TestA (0.00s)',
      '    --- FAIL: TestA/sub_b (1.2s)',
      '--- SKIP: TestC (0s)',
      '=== RUN TestA',
      'ok pkg 0.1s',
      '--- PASS: TestD',
    ]),
  cargo: (random) =>
    pick(random, [
      'test a::b ... ok',
      'test c ... FAILED',
      'test d ... ignored',
      'test e - f (line 3) ... ok',
      'running 3 tests',
      ' test g ... ok ',
    ]),
  maven: (random) =>
    pick(random, ['+ mvn test -Dtest=A#b', '[INFO] BUILD SUCCESS', '[INFO] BUILD FAILURE', 'mvn -Dtest=C -q', '[INFO] Tests run: 1']),
  ant: (random) => pick(random, ['  [junit] [PASS] a.b', '[junit] [FAIL] c', '[junit] [ERR] d e', '[junit] other']),
  gradle_custom: (random) =>
    pick(random, ['A > b PASSED', 'A > c FAILED', 'D > e', 'PASSED', 'FAILED', '> Task :test', 'warning: x', 'X > y z PASSED']),
  phpunit: (random) => pick(random, ['A (Tests\\A)', ' ✔ one', ' ✘ two three', ' ↩ four', 'Bär (x)', 'OK (3 tests)', '\t✔ five']),
  minitest: (random) => pick(random, ['A#test_b = 0.00 s = .', 'A#test_c. = 0.01 s = F', 'a. b = c = E x', 'Finished in 1.0s', 'x. =.']),
  cucumber: (random) => pick(random, ['features/a.feature ......', 'features/b.feature ..F', 'c -', '3 scenarios (3 passed)', 'd .F.']),
  ruby_unit: (random) => pick(random, ['  test: a b: .: (0.01)', 'test_c:  F', 'd: E', 'e: O', 'f: Omission', 'Finished: x']),
  rspec_transformed_json: (random) => pick(random, ['a b - passed', 'c - failed', 'd - pending', 'e - f - passed', ' - passed']),
  jest: (random) => pick(random, ['  ✓ a b (3 ms)', '✕ c (1 s)', '○ skipped d', '✓ e', 'PASS x.test.js', '✓ f (x)']),
  jest_json: (random) => pick(random, ['[PASSED] a > b', ' [FAILED] c', '[PENDING] d', '[PASSED]']),
  vitest: (random) => pick(random, ['✓ a > b 3ms', '× c', '↓ d [skipped]', ' ✓ e 12', '❯ f']),
  tap: (random) => pick(random, ['ok 1 a', 'not ok 2 b c', '  ok 3 - d', 'ok 4', '1..4', '# tests 4']),
  redis: (random) =>
    pick(random, ['[ok]: a (3 ms)', '[err]: b in tests/unit/x.tcl', '[skip]: c', '[ignore]: d (1 s)', '[info]: e', '[ok]: f in g']),
  jq: (random) => pick(random, ['PASS: tests/a', ' FAIL: b', 'SKIP: c', 'PASS:']),
  micropython_test: (random) => pick(random, ['pass  a.py', 'FAIL  b.py', 'skip  c.py d', '3 tests performed']),
  googletest: (random) => pick(random, ['[       OK ] a.b (0 ms)', '1: [  FAILED  ] c.d (1 ms)', '[  FAILED  ] e.f', '[ RUN      ] a.b']),
  react_pdf: (random) =>
    pick(random, ['PASS a.test.js (3.1 s)', 'FAIL b.js', 'PASS c (1ms)', 'PASS d (2.5s) x', ' PASS e', 'FAIL f (12 s)']),
};

const parserNames = Object.keys(lines);
const logsPerParser = 20;

export function makeLogCases(): (readonly [string, string])[] {
  return parserNames.flatMap((parser, at) => {
    const random = makeRandom(at + 1);
    const line = lines[parser] ?? pytestLines;
    return Array.from(
      { length: logsPerParser },
      () => [parser, Array.from({ length: 1 + random(12) }, () => line(random)).join('\n')] as const,
    );
  });
}

interface GradeCase {
  readonly statuses: Readonly<Record<string, string>>;
  readonly fail_to_pass: readonly string[];
  readonly pass_to_pass: readonly string[];
  readonly eval_type: 'pass_and_fail' | 'fail_only';
}

/** Also with names that are cut inside their parameters. */
export function makeGradeCases(): GradeCase[] {
  const random = makeRandom(99);
  const all = ['t_a', 't_b', 't_c[x-1]', 't_c[x-2]', 't_c[y]', 't_d[[', 't_e'];
  const wanted = [...all, 't_c[x', 't_c[', 't_c', 't_d[', 't_none', 't_none['];
  const choose = (list: readonly string[]) => list.filter(() => random(3) === 0);
  return Array.from({ length: 300 }, () => ({
    // Mostly passed, so that some cases are resolved.
    statuses: Object.fromEntries(all.filter(() => random(6) > 0).map((name) => [name, random(3) > 0 ? 'PASSED' : pick(random, statuses)])),
    fail_to_pass: choose(wanted).slice(0, 3),
    pass_to_pass: choose(wanted).slice(0, 3),
    eval_type: random(4) === 0 ? ('fail_only' as const) : ('pass_and_fail' as const),
  }));
}

interface RunCase {
  readonly log: string;
  readonly exit_code: number;
}

export function makeRunCases(): RunCase[] {
  const random = makeRandom(7);
  const texts = [
    'PASSED a::b',
    'FAILED a::c - x',
    'ERROR a::d',
    'SKIPPED a::e',
    'collected 0 items',
    '3 passing',
    '0 passing',
    'Executed 0 of 0',
    'Executed 2 of 2',
    'Tests:   4 passed',
    'Traceback',
    '2 specs, 0 failures',
    '# tests 0',
  ];
  return Array.from({ length: 120 }, () => ({
    log: Array.from({ length: random(4) }, () => pick(random, texts)).join('\n'),
    exit_code: pick(random, [0, 0, 1, 2, 139]),
  }));
}
