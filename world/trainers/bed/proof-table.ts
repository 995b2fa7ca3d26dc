// The table of docs/trainers.md, made from what the tests of the trainers proved.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

export const proofsFolder = join(import.meta.dirname, '../proofs');

/** The columns of the table, with what each means. */
const capabilities = {
  rollouts: 'the ids, masks and logprobs that the trainer has are those of the ledger',
  branches: 'a rollout with a rewritten history is one row per branch, and counts once',
  unscored: 'a rollout without a reward keeps its place and changes nothing',
  advantages: 'the advantages of the trainer equal those computed by hand',
  steps: 'the trainer made optimiser steps on a real, tiny model',
  versions: 'the trainer knows which weights sampled a token',
  weights: 'the trainer pauses sampling, loads weights and resumes',
  replay: 'the experts of each token, or the ids that it was sampled from, are in the fields that the trainer has for them',
  sandboxes: "agents of the trainer's own act in Millrace's sandboxes",
} as const;
export type Capability = keyof typeof capabilities;
const names = Object.keys(capabilities) as [Capability, ...Capability[]];

const trainerProofs = z.strictObject({
  /** As people call it. */
  trainer: z.string(),
  /** The packages whose own code ran, with their versions. */
  versions: z.record(z.string(), z.string()),
  /** The plug point of the trainer that the adapter uses, in Markdown. */
  plug: z.string(),
  /** One line of set-up, in the trainer's own terms; code. */
  setup: z.string(),
  proofs: z.array(z.strictObject({ capabilities: z.array(z.enum(names)), claim: z.string() })),
  /** The sampling settings that were seen to reach the sampler, as fields of a rollout request, and those that were refused. */
  settings: z.record(z.string(), z.string()),
  /** Whose settings count, where the trainer has none of its own that an adapter could pass on. */
  sampler: z.string().optional(),
  /** What does not work, or was not tried, in a sentence each. */
  limits: z.array(z.string()),
});
export type TrainerProofs = z.infer<typeof trainerProofs>;

export function readProofs(): TrainerProofs[] {
  const files = readdirSync(proofsFolder).filter((name) => name.endsWith('.json'));
  const read = (name: string) => trainerProofs.parse(JSON.parse(readFileSync(join(proofsFolder, name), 'utf8')));
  return files.sort().map(read);
}

/** Markdown: a table of capabilities, then what was proven for each trainer. */
export function renderProofs(all: readonly TrainerProofs[]): string {
  const head = [`| trainer | tested with | ${names.join(' | ')} |`, `|---|---|${names.map(() => ':-:|').join('')}`];
  const rows = all.map(({ trainer, versions, proofs }) => {
    const proven = new Set(proofs.flatMap((one) => one.capabilities));
    return `| ${trainer} | ${renderVersions(versions)} | ${names.map((name) => (proven.has(name) ? '✓' : '–')).join(' | ')} |`;
  });
  const meanings = names.map((name) => `- **${name}**: ${capabilities[name]}.`);
  const details = all.map(({ trainer, plug, setup, proofs, limits }) =>
    [
      `### ${trainer}`,
      `${plug}`,
      `\`\`\`\n${setup}\n\`\`\``,
      proofs.map(({ claim }) => `- ${claim}`).join('\n'),
      ...(limits.length > 0 ? [`Limits: ${limits.join(' ')}`] : []),
    ].join('\n\n'),
  );
  return [[...head, ...rows].join('\n'), meanings.join('\n'), renderSettings(all), ...details].join('\n\n');
}

function renderVersions(versions: Readonly<Record<string, string>>): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

/** Which setting of each trainer reaches the sampler, as fields of a rollout request. */
function renderSettings(all: readonly TrainerProofs[]): string {
  const fields = [...new Set(all.flatMap(({ settings }) => Object.values(settings)))].filter((field) => field !== refused).sort();
  const rows = all.map(({ trainer, settings, sampler }) => {
    const named = (field: string) => Object.keys(settings).filter((name) => settings[name] === field);
    const cells = [...fields, refused].map(
      (field) =>
        named(field)
          .map((name) => `\`${name}\``)
          .join(', ') || '–',
    );
    return `| ${trainer} | ${sampler === undefined ? cells.join(' | ') : [sampler, ...cells.slice(1).map(() => '')].join(' | ')} |`;
  });
  return [
    '### Which settings reach the sampler',
    "Each cell names a setting of the trainer that a test set to a value of its own and found in every call to the LLM server, as the field at the head of its column. A setting that is not here is refused by name where the trainer's own code passes it.",
    [
      `| trainer | ${fields.map((field) => `\`${field}\``).join(' | ')} | refused |`,
      `|---|${fields.map(() => '---|').join('')}---|`,
      ...rows,
    ].join('\n'),
  ].join('\n\n');
}

const refused = 'refused';
