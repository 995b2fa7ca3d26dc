// The file editor that coding agents know as str_replace_editor: view, create, str_replace, insert, undo_edit. An edit that does not
// apply returns a sentence for the model, and a file is changed completely or not at all.

import { isUtf8 } from 'node:buffer';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { z } from 'zod';
import { cutText, maxResult } from './cut-text.ts';
import { countLines, type EditOutcome, insertAfter, renderEdit, renderLines, replaceOnce } from './editor-text.ts';
import type { Tool } from './tool.ts';

const commands = ['view', 'create', 'str_replace', 'insert', 'undo_edit'] as const;
const editorArguments = z.object({
  command: z.enum(commands),
  path: z.string().min(1),
  file_text: z.string().optional(),
  old_str: z.string().optional(),
  new_str: z.string().optional(),
  insert_line: z.int().min(0).optional(),
  view_range: z.tuple([z.int(), z.int()]).optional(),
});
type EditorArguments = z.infer<typeof editorArguments>;

const maxFileBytes = 2 << 20;
/** How many edits can be undone, and how many bytes are kept for that. */
const maxUndo = 50;
const maxUndoBytes = 16 << 20;

const spec: Tool['spec'] = {
  name: 'str_replace_editor',
  description:
    'View, create and edit text files. str_replace replaces old_str, which must occur exactly once, with new_str; insert puts new_str after insert_line; undo_edit reverts the last edit of a file; view shows a file with line numbers, or a folder two levels deep.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', enum: [...commands] },
      path: { type: 'string', description: 'The absolute path of a file or folder.' },
      file_text: { type: 'string', description: 'For create: the content of the file.' },
      old_str: { type: 'string', description: 'For str_replace: the text to replace, exactly as it is in the file.' },
      new_str: { type: 'string', description: 'For str_replace and insert: the new text.' },
      insert_line: { type: 'integer', description: 'For insert: the line to insert after; 0 for the start of the file.' },
      view_range: {
        type: 'array',
        items: { type: 'integer' },
        description: 'For view: the first and the last line, from 1; -1 is the end.',
      },
    },
    required: ['command', 'path'],
  },
};

/** The content before an edit; undefined if there was no file. */
const undos = z.array(z.object({ path: z.string(), before: z.string().optional() }));
type Undo = z.infer<typeof undos>[number];

interface EditorContext {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly history: Undo[];
}

/** An edit that does not apply; its message is the result. */
class Refusal extends Error {}

/** One per rollout: it keeps the history for undo_edit. */
export function makeEditorTool(): Tool {
  const history: Undo[] = [];
  return {
    spec,
    memory: { save: () => history, load: (saved) => history.splice(0, history.length, ...undos.parse(saved)) },
    async run(args, { sandbox, signal }) {
      if (!sandbox) return { kind: 'text', text: 'str_replace_editor: this task has no sandbox with files' };
      const parsed = editorArguments.safeParse(args);
      if (!parsed.success) return { kind: 'text', text: `str_replace_editor: ${z.prettifyError(parsed.error)}` };
      try {
        return { kind: 'text', text: cutText(await runCommand(parsed.data, { sandbox, signal, history }), { advice: 'use view_range' }) };
      } catch (error) {
        if (error instanceof Refusal) return { kind: 'text', text: `str_replace_editor: ${error.message}` };
        throw error;
      }
    },
  };
}

async function runCommand(args: EditorArguments, context: EditorContext): Promise<string> {
  const { command, path } = args;
  if (path.includes('\0')) throw new Refusal('a path cannot contain a null character');
  if (!path.startsWith('/')) throw new Refusal(`${path} is not an absolute path; did you mean /workspace/${path}?`);
  switch (command) {
    case 'view':
      return view(args, context);
    case 'create':
      return create(path, need(args.file_text, 'create', 'file_text'), context);
    case 'str_replace': {
      const before = need(args.old_str, 'str_replace', 'old_str');
      return edit(path, (text) => replaceOnce(text, before, args.new_str ?? ''), context);
    }
    case 'insert': {
      const line = need(args.insert_line, 'insert', 'insert_line');
      const inserted = need(args.new_str, 'insert', 'new_str');
      return edit(path, (text) => insertAfter(text, line, inserted), context);
    }
    case 'undo_edit':
      return undo(path, context);
  }
}

function need<T>(value: T | undefined, command: string, name: string): T {
  if (value === undefined) throw new Refusal(`${command} needs ${name}`);
  return value;
}

async function view({ path, view_range }: EditorArguments, context: EditorContext): Promise<string> {
  const { sandbox, signal } = context;
  const kind = await sandbox.exec(['test', '-d', path], { timeoutMs: 10_000, signal });
  if (kind.exitCode === 0) return listFolder(path, context);
  const text = await readText(path, context);
  if (text === '') return `${path} is empty`;
  const total = countLines(text);
  const [first, asked] = view_range ?? [1, -1];
  const last = asked === -1 ? total : asked;
  if (first < 1 || last < first || first > total)
    throw new Refusal(`view_range [${first}, ${asked}] is invalid: the file has ${total} lines`);
  return renderLines(text, first, last);
}

async function listFolder(path: string, { sandbox, signal }: EditorContext): Promise<string> {
  const visible = ['(', '-name', '.*', '-prune', ')', '-o', '-printf', '%y %p\\n'];
  const argv = ['find', '-L', path, '-mindepth', '1', '-maxdepth', '2', ...visible];
  const { stdout, cutBytes } = await sandbox.exec(argv, { timeoutMs: 10_000, capBytes: maxResult, signal });
  const lines = stdout
    .toString('utf8')
    .split('\n')
    .slice(0, -1)
    .sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1));
  const names = lines.map((line) => `${line.slice(2)}${line.startsWith('d') ? '/' : ''}`);
  const note = cutBytes > 0 ? ['[more entries are not shown]'] : [];
  return [`${path}, two levels deep, without hidden files:`, ...(names.length > 0 ? names : ['(empty)']), ...note].join('\n');
}

async function create(path: string, content: string, context: EditorContext): Promise<string> {
  const before = await readText(path, context).catch((error) => {
    if (error instanceof Missing) return undefined;
    throw error;
  });
  await writeText(path, content, context);
  remember(context.history, { path, before });
  return before === undefined ? `${path} was created` : `${path} was overwritten; undo_edit restores its old content`;
}

async function edit(path: string, change: (text: string) => EditOutcome, context: EditorContext): Promise<string> {
  const before = await readText(path, context);
  const outcome = change(before);
  if ('problem' in outcome) throw new Refusal(`${outcome.problem} (${path})`);
  await writeText(path, outcome.text, context);
  remember(context.history, { path, before });
  return `${path} was edited. The new text:\n${renderEdit(outcome)}`;
}

async function undo(path: string, context: EditorContext): Promise<string> {
  const at = context.history.findLastIndex((one) => one.path === path);
  const [last] = at < 0 ? [] : context.history.splice(at, 1);
  if (!last) throw new Refusal(`there is no edit of ${path} to undo`);
  if (last.before === undefined) {
    await context.sandbox.exec(['rm', '-f', '--', path], { timeoutMs: 10_000, signal: context.signal });
    return `${path} was removed: create had added it`;
  }
  await writeText(path, last.before, context);
  return `the last edit of ${path} was undone`;
}

function remember(history: Undo[], one: Undo): void {
  history.push(one);
  const size = () => history.reduce((sum, { before }) => sum + (before?.length ?? 0), 0);
  while (history.length > maxUndo || (history.length > 1 && size() > maxUndoBytes)) history.shift();
}

class Missing extends Refusal {}

async function readText(path: string, { sandbox, signal }: EditorContext): Promise<string> {
  const bytes = await sandbox.readFile(path, { maxBytes: maxFileBytes, anyLink: true, signal }).catch((error) => {
    if (!(error instanceof RolloutError)) throw error;
    if (error.code === 'not-found' && error.message.includes('ENOENT')) throw new Missing(`${path} does not exist`);
    if (error.code === 'not-found') throw new Refusal(explain(error));
    if (error.code === 'artifact-too-large') throw new Refusal(`${path} has more than ${maxFileBytes} bytes; use the shell instead`);
    throw error;
  });
  if (bytes.includes(0) || !isUtf8(bytes)) throw new Refusal(`${path} is not a text file`);
  return bytes.toString('utf8');
}

/** Keeps the mode of the file; a new file gets 644. */
async function writeText(path: string, text: string, { sandbox, signal }: EditorContext): Promise<void> {
  const stat = await sandbox.exec(['stat', '-L', '-c', '%a', '--', path], { timeoutMs: 10_000, signal });
  const mode = stat.exitCode === 0 ? Number.parseInt(stat.stdout.toString('utf8'), 8) : 0o644;
  await sandbox.writeFile(path, text, { mode, signal }).catch((error) => {
    if (error instanceof RolloutError && error.code === 'sandbox-refused') throw new Refusal(explain(error));
    throw error;
  });
}

function explain(error: RolloutError): string {
  return error.message.replace(/^file\.(read|write): /, '');
}
