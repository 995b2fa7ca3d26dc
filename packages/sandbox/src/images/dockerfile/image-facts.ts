// What an image says about itself besides its files: variables, working directory and user. They are kept in the image, where Apptainer
// reads the variables, and where the next build that starts from the image finds everything.

import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { resolveInside, resolveNew } from './inside-root.ts';

const imageFacts = z.object({
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  user: z.string(),
  /** Instructions without an effect here, such as `EXPOSE 80`. */
  notes: z.array(z.string()),
});

export type ImageFacts = z.infer<typeof imageFacts>;

/** In the image. */
const factsPath = '/.singularity.d/millrace.json';
const environmentPath = '/.singularity.d/env/91-dockerfile.sh';
/** Apptainer's own, from the configuration of a Docker image. */
const dockerEnvironmentPath = '/.singularity.d/env/10-docker2singularity.sh';

/** Apptainer does not keep the working directory of a Docker image, so it starts as `/`. */
export async function readFacts(root: string): Promise<ImageFacts> {
  const text = await readFile(await resolveInside(root, factsPath), 'utf8').catch(() => undefined); // not built here
  const parsed = text === undefined ? undefined : parseFacts(text);
  if (parsed) return parsed;
  const script = await readFile(await resolveInside(root, dockerEnvironmentPath), 'utf8').catch(() => ''); // not a Docker image
  return { env: parseExports(script), workdir: '/', user: 'root', notes: [] };
}

function parseFacts(text: string): ImageFacts | undefined {
  try {
    return imageFacts.parse(JSON.parse(text));
  } catch {
    return undefined; // a file of that name that is not ours
  }
}

export async function writeFacts(root: string, facts: ImageFacts): Promise<void> {
  // Apptainer's own shell reads it, which understands quotes and escapes only inside of double quotes.
  const lines = Object.entries(facts.env).map(([name, value]) => `export ${name}="${value.replace(/[\\"$`]/g, '\\$&')}"\n`);
  await writeFile(await resolveNew(root, environmentPath), lines.join(''));
  await writeFile(await resolveNew(root, factsPath), JSON.stringify(facts));
}

/** `export NAME="value"` and `export NAME="${NAME:-"value"}"`, as Apptainer writes them. */
function parseExports(script: string): Record<string, string> {
  const found = [...script.matchAll(/^export (\w+)="(?:\$\{\w+:-"(.*)"\}|(.*))"$/gm)];
  return Object.fromEntries(found.map(([, name = '', preset, plain = '']) => [name, (preset ?? plain).replace(/\\(["$`\\])/g, '$1')]));
}
