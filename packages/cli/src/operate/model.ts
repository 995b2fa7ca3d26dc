// `millrace model check`: the profile of a model and the proof of it, before a service uses it.

import { type ModelReport, reportModel, toolParserNames } from '@millrace/model';
import { messageOf } from '@millrace/protocol';
import { type Command, type CommandGroup, jsonOption } from '../command/command.ts';
import { openPaint, padEnd, wantsColor } from '../terminal/text.ts';
import { findModel, isModelName } from './model-name.ts';

const check: Command = {
  name: 'model check',
  summary: 'Proves that a model can be used exactly: renders turns with its chat template, reads them back, and prints what differs.',
  positional: '<folder|url|name>',
  options: {
    'tool-parser': { type: 'string', value: 'NAME', describe: `The tool-call format: ${toolParserNames.join(', ')}; auto by default.` },
    'chat-template': {
      type: 'string',
      value: 'FILE',
      describe: 'A .jinja file or a tokenizer_config.json to use instead of the template of the model.',
    },
    'api-key': { type: 'string', value: 'KEY', describe: 'The key of the backend, if it wants one.' },
    ...jsonOption,
  },
  examples: [
    'millrace model check models/Qwen3-8B',
    'millrace model check http://gpu-0:8000',
    'millrace model check models/x --tool-parser hermes --json',
  ],
  async run(args, io) {
    const [named = ''] = args.positionals;
    const tokenizer = (await isModelName(named)) ? (await findModel(named, { env: io.env })).folder : named;
    const [toolParser, chatTemplate] = [args.choice('tool-parser', toolParserNames), args.text('chat-template')];
    const tokenizerApiKey = args.text('api-key');
    let found: ModelReport;
    try {
      found = await reportModel({
        tokenizer,
        ...(toolParser ? { toolParser } : {}),
        ...(chatTemplate === undefined ? {} : { chatTemplate }),
        ...(tokenizerApiKey === undefined ? {} : { tokenizerApiKey }),
      });
    } catch (error) {
      if (args.flag('json')) io.stdout.write(`${JSON.stringify({ model: tokenizer, refused: messageOf(error) }, undefined, 2)}\n`);
      else io.stderr.write(`${tokenizer} cannot be used: ${messageOf(error)}\n`);
      return 1;
    }
    io.stdout.write(
      args.flag('json') ? `${JSON.stringify(found, undefined, 2)}\n` : renderModelReport(found, wantsColor(io.stdout, io.env)),
    );
    return found.tool_calls === 'differs' ? 1 : 0;
  },
};

export const modelCommands: CommandGroup = {
  name: 'model',
  summary: "Checks a model's tokenizer, chat template and tool-call format.",
  actions: { check },
  usual: 'check',
};

const toolCallTexts: Readonly<Record<ModelReport['tool_calls'], string>> = {
  proven: 'proven: the parser reads what the template writes',
  declared: 'named by the instructions of the template, which writes no calls of earlier turns; not proven',
  taught: 'taught: the template knows no tools, so a message lists them and shows the format',
  differs: 'differs: the parser does not read what the template writes',
};

export function renderModelReport(found: ModelReport, color: boolean): string {
  const paint = openPaint(color);
  const { text, token_ids, is_shared } = found.end_of_turn;
  const end = is_shared ? 'the first token of the next message' : JSON.stringify(text);
  const row = (name: string, value: string) => `${padEnd(name, 12)}${value}`;
  const marks = { proven: paint('green', '✔'), differs: paint('red', '✖') };
  const checks = found.checks.map(({ what, outcome, why }) => {
    const mark = outcome === 'proven' || outcome === 'differs' ? marks[outcome] : paint('yellow', '-');
    return `  ${mark} ${what}${outcome === 'proven' ? '' : `: ${outcome}`}${why === undefined ? '' : `: ${why}`}`;
  });
  const lines = [
    row('model', found.model),
    row('tool calls', `${found.tool_parser}; ${toolCallTexts[found.tool_calls]}`),
    row('reasoning', found.reasoning),
    row('turn ends', `with ${end} (${token_ids.join(', ')}); stop tokens ${found.stop_token_ids.join(', ')}`),
    ...found.warnings.map((warning) => row('warning', warning)),
    'written by the template, read back and compared:',
    ...checks,
  ];
  return `${lines.join('\n')}\n`;
}
