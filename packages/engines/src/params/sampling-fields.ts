// The sampling fields that not every server has: how each is written for a server, and the refusal where it has none. A field that a
// server cannot honour is never left out silently.

import { RolloutError, type Sampling } from '@millrace/protocol';

const extraFields = ['stop', 'min_tokens', 'logit_bias', 'structured_outputs'] as const;
type ExtraField = (typeof extraFields)[number] | `structured_outputs.${StructureKind}`;
type StructureKind = keyof NonNullable<Sampling['structured_outputs']>;

/** The fields that every dialect sends under these names. The others are sent by each in its own way, or change no token. */
export function plainFields(sampling: Sampling) {
  const { temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty } = sampling;
  return { temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty };
}

/** Throws `backend-refused` for a field that is set and that this server does not have. */
export function refuseFields(sampling: Sampling, server: string, lacking: Readonly<Partial<Record<ExtraField, string>>>): void {
  for (const field of setFields(sampling)) {
    const why = lacking[field];
    if (why !== undefined) throw new RolloutError('backend-refused', `${server} cannot honour sampling.${field}: ${why}`);
  }
}

function setFields({ stop = [], min_tokens = 0, logit_bias = {}, structured_outputs }: Sampling): ExtraField[] {
  const kinds = Object.entries(structured_outputs ?? {}).flatMap(([kind, value]) => (value === undefined ? [] : [kind as StructureKind]));
  return [
    ...(stop.length > 0 ? (['stop'] as const) : []),
    ...(min_tokens > 0 ? (['min_tokens'] as const) : []),
    ...(Object.keys(logit_bias).length > 0 ? (['logit_bias'] as const) : []),
    ...(structured_outputs ? (['structured_outputs'] as const) : []),
    ...kinds.map((kind) => `structured_outputs.${kind}` as const),
  ];
}

interface LimitedCall {
  readonly sampling: Sampling;
  readonly maxTokens: number;
}

/** Servers refuse a minimum above the maximum, which may be what is left of the context. */
export function minTokensOf({ sampling: { min_tokens = 0 }, maxTokens }: LimitedCall): number {
  return Math.min(min_tokens, maxTokens);
}

/** A regular expression that matches exactly these texts, for servers without `choice`. */
export function choiceToRegex(choice: readonly string[]): string {
  return `(${choice.map((one) => one.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})`;
}

/** A grammar in GBNF that matches exactly these texts. */
export function choiceToGrammar(choice: readonly string[]): string {
  return `root ::= ${choice.map(toLiteral).join(' | ')}`;
}

function toLiteral(text: string): string {
  const escaped = text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
  return `"${escaped}"`;
}
