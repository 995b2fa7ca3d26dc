// The template engines that are compared: ours, and those to be had from npm.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseExactJson } from '../../packages/model/src/jinja/exact-json.ts';
import { JinjaTemplate } from '../../packages/model/src/jinja/jinja.ts';
import { formatTime } from '../../packages/model/src/jinja/strftime.ts';
import { Callable } from '../../packages/model/src/jinja/values/values.ts';
import { modelsFolder } from './collection.ts';

export interface TemplateEngine {
  readonly name: string;
  /** Returns what renders a conversation, given as JSON. */
  compile(source: string): (json: string) => string;
}

const fixedTime = new Date(2026, 2, 5, 14, 7, 9);
const writeTime = (format: string) => formatTime(format, new Date(Date.UTC(2026, 2, 5, 14, 7, 9)));
const raise = (message: string) => {
  throw new Error(message);
};

export const ours: TemplateEngine = {
  name: 'ours',
  compile(source) {
    const template = new JinjaTemplate(source);
    const strftime_now = new Callable('strftime_now', ([format]) => writeTime(String(format)));
    return (json) => {
      const variables = parseExactJson(json);
      if (!(variables instanceof Map)) throw new Error('a conversation is an object');
      return template.render({ ...Object.fromEntries(variables), strftime_now });
    };
  },
};

// biome-ignore lint/suspicious/noExplicitAny: packages that are installed by world/models/install.sh, not by npm install
const load = (name: string): any => createRequire(join(modelsFolder, 'engines/package.json'))(name);

/** This engine has its own strftime_now, which asks for the date. */
function atFixedTime<T>(work: () => T): T {
  const RealDate = globalThis.Date;
  globalThis.Date = class extends RealDate {
    constructor() {
      super(fixedTime.getTime());
    }
  } as DateConstructor;
  try {
    return work();
  } finally {
    globalThis.Date = RealDate;
  }
}

export function otherEngines(): TemplateEngine[] {
  const { Template } = load('@huggingface/jinja');
  const { Environment } = load('minijinja-js');
  const nunjucks = load('nunjucks');
  return [
    {
      name: '@huggingface/jinja 0.5.10',
      compile(source) {
        const template = new Template(source);
        return (json) => atFixedTime(() => template.render(JSON.parse(json)));
      },
    },
    {
      name: 'minijinja-js 2.11.0 (WebAssembly)',
      compile(source) {
        const environment = new Environment();
        environment.trimBlocks = true;
        environment.lstripBlocks = true;
        environment.enablePyCompat();
        environment.addGlobal('raise_exception', raise);
        environment.addGlobal('strftime_now', writeTime);
        environment.addTemplate('chat', source);
        return (json) => environment.renderTemplate('chat', JSON.parse(json));
      },
    },
    {
      name: 'nunjucks 3.2.4',
      compile(source) {
        const environment = new nunjucks.Environment(null, { autoescape: false, trimBlocks: true, lstripBlocks: true });
        environment.addGlobal('raise_exception', raise);
        environment.addGlobal('strftime_now', writeTime);
        environment.addGlobal('namespace', (values: object) => ({ ...values }));
        environment.addFilter('tojson', (value: unknown, indent?: number) => JSON.stringify(value, null, indent));
        const template = new nunjucks.Template(source, environment, '', true);
        return (json) => template.render(JSON.parse(json));
      },
    },
  ];
}
