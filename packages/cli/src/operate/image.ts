// `millrace image`: lists the image cache of this machine, and makes or removes images before tasks need them.

import { type CachedImage, ImageCache } from '@millrace/sandbox';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { padEnd, toBytes } from '../terminal/text.ts';
import { configOptions, toConfig } from './config-options.ts';

export const imageCommand: Command = {
  name: 'image',
  summary: 'Makes, lists and removes the images that Apptainer sandboxes run.',
  positional: '<pull|build|ls|rm> [image …]',
  options: {
    config: configOptions.config,
    again: { type: 'boolean', describe: 'pull and build: makes the image again, even if the cache has it.' },
    json: { type: 'boolean', describe: 'ls: writes the images as one JSON array.' },
  },
  examples: [
    'millrace image pull docker://python:3.12-slim',
    'millrace image build docker-archive:swe.tar environment.def',
    'millrace image build task/environment/Dockerfile',
    'millrace image ls',
    'millrace image rm docker://python:3.12-slim',
  ],
  run: runImage,
};

async function runImage(args: Arguments, io: Io): Promise<number> {
  const [action, ...names] = args.positionals;
  const { sandbox } = toConfig(args, io);
  const cache = new ImageCache({
    folder: sandbox.images,
    names: sandbox.imageNames,
    maxBytes: sandbox.imagesGib * 2 ** 30,
    onProgress: ({ line }) => io.stderr.write(`${line}\n`),
  });
  switch (action) {
    case 'pull':
    case 'build':
      return make(cache, need(names, action), { again: args.flag('again'), io });
    case 'ls':
      return list(await cache.list(), args.flag('json'), io);
    case 'rm':
      return remove(cache, need(names, action), io);
    default:
      throw new UsageError(`image takes pull, build, ls or rm${action === undefined ? '' : `, not ${action}`}`);
  }
}

function need(names: readonly string[], action: string): readonly string[] {
  if (names.length === 0) throw new UsageError(`image ${action} needs an image`);
  return names;
}

async function make(
  cache: ImageCache,
  names: readonly string[],
  { again, io }: { readonly again: boolean; readonly io: Io },
): Promise<number> {
  const cancel = new AbortController();
  const release = io.onInterrupt(() => cancel.abort(new Error('interrupted')));
  try {
    for (const name of names) {
      await using image = await cache.open(name, { again, signal: cancel.signal });
      io.stdout.write(`${image.path}\n`);
    }
    return 0;
  } finally {
    release();
  }
}

function list(images: readonly CachedImage[], asJson: boolean, io: Io): number {
  const lines = images.map(({ key, bytes, source }) => `${key}  ${padEnd(toBytes(bytes), 9)}  ${source}\n`);
  io.stdout.write(asJson ? `${JSON.stringify(images, undefined, 2)}\n` : lines.join(''));
  return 0;
}

/** By source, or by the key that `ls` shows. */
async function remove(cache: ImageCache, names: readonly string[], io: Io): Promise<number> {
  let code = 0;
  const complain = (text: string) => {
    io.stderr.write(`millrace: ${text}\n`);
    code = 1;
  };
  const images = await cache.list();
  for (const name of names) {
    const found = images.filter(({ key, source }) => key === name || source === name);
    if (found.length === 0) complain(`there is no image ${name}; millrace image ls lists them`);
    for (const { key } of found) if (!(await cache.remove(key))) complain(`${name} is in use and was not removed`);
  }
  return code;
}
