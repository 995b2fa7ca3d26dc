// Finds what makes a check script forgeable: an agent's text that bash evaluates, programs of the agent in the check's own sandbox, verdicts
// that the agent can sign. Each finding has its line, the reason and the safe form.

import { parse } from 'unbash';
import { findAgentText } from './agent-text.ts';
import { findCommandFaults } from './command-rules.ts';
import { findEvaluatedText } from './evaluation-rules.ts';
import type { LintFault, LintFinding } from './lint-finding.ts';
import { findRewardFaults } from './reward-rules.ts';
import { type Visited, walk } from './walk.ts';

/** It runs while a task is submitted. */
const maxChars = 32 << 10;
const maxFaults = 100;

/** A comment `# millrace: allow RULE REASON` in the line of a finding, or in the line above, accepts it. */
const allowance = /#\s*millrace:\s*allow\s+([a-z-]+)\s+\S/;

export interface LintOptions {
  /** Reports what a comment accepts, too. */
  readonly keepsAllowed?: boolean;
}

/** In the order of their lines. */
export function lintCheck(script: string, { keepsAllowed = false }: LintOptions = {}): LintFinding[] {
  if (script.length > maxChars)
    return [{ rule: 'syntax', severity: 'warning', line: 1, message: `a script over ${maxChars >> 10} KiB is not examined` }];
  const lines = script.split('\n');
  const allowed = lines.map((line) => allowance.exec(line)?.[1]);
  const starts = [0, ...script.matchAll(/\n/g).map(({ index }) => index + 1)];
  const seen = new Set<string>();
  return findFaults(script)
    .slice(0, maxFaults)
    .map(({ pos, ...fault }) => ({ ...fault, line: starts.findLastIndex((start) => start <= pos) + 1 }))
    .filter(({ rule, line }) => keepsAllowed || (allowed[line - 1] !== rule && allowed[line - 2] !== rule))
    .filter(({ rule, line }) => !seen.has(`${rule} ${line}`) && seen.add(`${rule} ${line}`))
    .sort((one, other) => one.line - other.line);
}

/** One line for each finding. */
export function renderFinding({ rule, line, message }: LintFinding): string {
  return `line ${line}: ${message} (${rule})`;
}

function findFaults(script: string): LintFault[] {
  const tree = parse(script);
  const nodes = walk(tree);
  if (nodes === undefined)
    return [{ rule: 'syntax', severity: 'warning', pos: 0, message: 'the script is too large or too deeply nested to be examined' }];
  const syntax = findSyntaxErrors(nodes);
  if (syntax.length > 0) return syntax;
  const agentText = findAgentText(nodes);
  return [...findEvaluatedText(nodes, agentText), ...findCommandFaults(nodes, agentText), ...findRewardFaults(tree, nodes)];
}

/** The first error: those after it often follow from it. */
function findSyntaxErrors(nodes: readonly Visited[]): LintFault[] {
  const [error] = nodes.flatMap(({ node }) => (node.type === 'Script' && 'errors' in node ? (node.errors ?? []) : []));
  if (error === undefined) return [];
  return [{ rule: 'syntax', severity: 'error', pos: error.pos, message: `the check script is not valid bash: ${error.message}` }];
}
