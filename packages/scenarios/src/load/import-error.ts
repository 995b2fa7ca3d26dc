// Why a scenario's module could not be imported, in one sentence: the file and the line, what Node saw, and what to do.

import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { findPlace } from '../call-scenario.ts';

export function describeImportError(file: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const message = messageOf(error).trim();
  const place = findPlace(error) ?? (error instanceof SyntaxError ? findSyntaxError(file) : undefined) ?? file;
  switch (code) {
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return `${place}: ${message}. Node.js only strips types: write a union of strings for an enum, a module for a namespace, and plain fields for parameter properties`;
    case 'ERR_INVALID_TYPESCRIPT_SYNTAX':
      return `${place}: syntax error: ${message}`;
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return `${file}: Node.js runs no TypeScript under node_modules; publish the scenario as JavaScript, or move the file`;
    case 'ERR_MODULE_NOT_FOUND':
      return `${file}: ${message}; ${adviseMissing(file, message)}`;
    default:
      return describeOther(place, error, message);
  }
}

function adviseMissing(file: string, message: string): string {
  const [, name] = /Cannot find package '([^']+)'/.exec(message) ?? [];
  if (name !== undefined) return `run \`npm install ${name}\` in ${dirname(file)}`;
  return "relative imports need their extension, as in './data.ts'";
}

function describeOther(place: string, error: unknown, message: string): string {
  if (error instanceof SyntaxError && /outside a module|Unexpected token 'export'/.test(message))
    return `${place}: it is read as CommonJS, because no package.json above it has "type": "module"; name the file .mjs, or set that`;
  if (!(error instanceof SyntaxError)) return `${place}: the module threw while it was loaded: ${message}`;
  const isExport = message.includes('does not provide an export named');
  return `${place}: ${isExport ? '' : 'syntax error: '}${message}${isExport ? '; import a type with `import type`' : ''}`;
}

/** Node names the line of a syntax error in JavaScript only when it checks a single file. */
function findSyntaxError(file: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 10_000 });
  const [first = ''] = stderr.split('\n');
  return first.startsWith(`${file}:`) ? first : undefined;
}
