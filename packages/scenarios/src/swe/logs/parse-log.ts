// The log parsers by name. The names are those of the SWE-bench harness, with or without `parse_log_`.

import {
  parseAnt,
  parseCargo,
  parseCucumber,
  parseGoogleTest,
  parseGoTest,
  parseGradle,
  parseJest,
  parseJestFiles,
  parseJestJson,
  parseJq,
  parseMaven,
  parseMicropython,
  parseMinitest,
  parsePhpunit,
  parseRedis,
  parseRspec,
  parseRubyUnit,
  parseTap,
  parseVitest,
} from './other-logs.ts';
import {
  parseMatplotlib,
  parsePytest,
  parsePytestOptions,
  parsePytestV2,
  parsePytestVerbose,
  parseR2e,
  parseSeaborn,
} from './pytest-logs.ts';
import { parseDjango, parseSympy } from './python-logs.ts';
import type { LogParser } from './test-status.ts';

const parsers = {
  pytest: parsePytest,
  pytest_options: parsePytestOptions,
  pytest_v2: parsePytestV2,
  pytest_verbose: parsePytestVerbose,
  matplotlib: parseMatplotlib,
  seaborn: parseSeaborn,
  r2e: parseR2e,
  django: parseDjango,
  unittest: parseDjango,
  sympy: parseSympy,
  gotest: parseGoTest,
  cargo: parseCargo,
  maven: parseMaven,
  ant: parseAnt,
  gradle_custom: parseGradle,
  phpunit: parsePhpunit,
  minitest: parseMinitest,
  cucumber: parseCucumber,
  ruby_unit: parseRubyUnit,
  rspec_transformed_json: parseRspec,
  jest: parseJest,
  jest_json: parseJestJson,
  react_pdf: parseJestFiles,
  vitest: parseVitest,
  tap: parseTap,
  redis: parseRedis,
  jq: parseJq,
  micropython_test: parseMicropython,
  googletest: parseGoogleTest,
} as const satisfies Readonly<Record<string, LogParser>>;

export type LogParserName = keyof typeof parsers;
export const logParserNames = Object.keys(parsers) as [LogParserName, ...LogParserName[]];

/** Parsers that the harness names after a repository. */
const sameAs: Readonly<Record<string, LogParserName>> = {
  astroid: 'pytest',
  flask: 'pytest',
  marshmallow: 'pytest',
  pvlib: 'pytest',
  pyvista: 'pytest',
  sqlfluff: 'pytest',
  xarray: 'pytest',
  pydicom: 'pytest_options',
  requests: 'pytest_options',
  pylint: 'pytest_options',
  astropy: 'pytest_v2',
  scikit: 'pytest_v2',
  sphinx: 'pytest_v2',
};

/** The name of a parser as a row writes it; undefined if there is no such parser. */
export function toLogParserName(name: string): LogParserName | undefined {
  const short = name.replace(/^parse_log_/, '');
  return logParserNames.find((one) => one === short) ?? sameAs[short];
}

export const logParserOf = (name: LogParserName): LogParser => parsers[name];

/** The runners that report besides the log. */
const runners: Readonly<Partial<Record<LogParserName, 'pytest' | 'unittest'>>> = {
  pytest: 'pytest',
  pytest_options: 'pytest',
  pytest_v2: 'pytest',
  pytest_verbose: 'pytest',
  matplotlib: 'pytest',
  seaborn: 'pytest',
  r2e: 'pytest',
  django: 'unittest',
  unittest: 'unittest',
};
export const runnerOf = (name: LogParserName): 'pytest' | 'unittest' | undefined => runners[name];
