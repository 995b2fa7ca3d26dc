// What is known about a backend's server, as names and texts for people.

import type { BackendView } from '@millrace/protocol';
import { toCount, toVisible } from '../terminal/text.ts';

type BackendFact = readonly [name: string, text: string];

/** Only what its server said; nothing about its load. */
export function toBackendFacts({ probe, route, route_reason, logprobs_mode, logprobs_reason }: BackendView): BackendFact[] {
  if (probe === null) return [];
  const because = (reason: string | null | undefined) => (reason ? ` (${reason})` : '');
  const facts: BackendFact[] = [
    ['engine', [probe.engine ?? 'unknown', probe.version ?? 'of an unknown version'].join(' ')],
    ['model', probe.model ?? 'not reported'],
    ['context', probe.context_length === null ? 'not reported' : `${toCount(probe.context_length)} tokens`],
    ['route', `${route}${because(route_reason)}`],
    ['logprobs', `${logprobs_mode}${because(logprobs_reason)}`],
    ['tokenizer', `${toAgreement[probe.tokenizer]}${because(probe.tokenizer_reason)}`],
  ];
  if (probe.several)
    facts.push([
      'servers',
      'several answer here in turns; only what they share is shown and recorded. Join each of them instead of the router',
    ]);
  return facts.map(([name, text]) => [name, toVisible(text)]);
}

const toAgreement = { same: "the service's", different: "not the service's", unchecked: 'not checked' } as const;
