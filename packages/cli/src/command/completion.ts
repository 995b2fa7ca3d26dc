// `millrace completion`: scripts that complete commands, actions and options in a shell, made from the command table.

import { type Command, type CommandGroup, isGroup, UsageError } from './command.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

/** By what was typed before: '' for the commands themselves, `backend` for the actions, `backend add` for its options. */
export type CompletionWords = ReadonlyMap<string, readonly string[]>;

export function makeCompletionCommand(readWords: () => Promise<CompletionWords>): Command {
  return {
    name: 'completion',
    summary: 'Prints a script that completes commands and options in bash, zsh or fish.',
    positional: `<${shells.join('|')}>`,
    options: {},
    examples: [
      'millrace completion bash >> ~/.bashrc',
      'millrace completion zsh >> ~/.zshrc',
      'millrace completion fish > ~/.config/fish/completions/millrace.fish',
    ],
    async run({ positionals: [word] }, io) {
      const shell = shells.find((one) => one === word);
      if (shell === undefined) throw new UsageError(`there is no completion for ${word}; there is ${shells.join(', ')}`);
      io.stdout.write(shell === 'fish' ? renderFish(await readWords()) : renderBash(await readWords(), shell));
      return 0;
    },
  };
}

export function toCompletionWords(commands: Readonly<Record<string, Command | CommandGroup>>): CompletionWords {
  const words = new Map<string, readonly string[]>([['', Object.keys(commands)]]);
  for (const [name, command] of Object.entries(commands)) {
    if (!isGroup(command)) {
      words.set(name, toOptions(command));
      continue;
    }
    const usual = command.actions[command.usual];
    words.set(name, [...Object.keys(command.actions), ...(usual ? toOptions(usual) : [])]);
    for (const [action, one] of Object.entries(command.actions)) words.set(`${name} ${action}`, toOptions(one));
  }
  return words;
}

function toOptions({ options }: Command): string[] {
  return [...Object.keys(options), 'help'].map((name) => `--${name}`);
}

/** zsh runs bash's completions. Words that are no option or action are completed as files. */
function renderBash(words: CompletionWords, shell: 'bash' | 'zsh'): string {
  const cases = [...words].sort(([a], [b]) => b.length - a.length).filter(([typed]) => typed !== '');
  return [
    ...(shell === 'zsh' ? ['autoload -U +X compinit && compinit', 'autoload -U +X bashcompinit && bashcompinit'] : []),
    '_millrace() {',
    `  local words='${words.get('')?.join(' ')}' typed="\${COMP_WORDS[*]:1:$((COMP_CWORD - 1))} "`,
    '  case "$typed" in',
    ...cases.map(([typed, found]) => `    '${typed} '*) words='${found.join(' ')}' ;;`),
    '  esac',
    `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    'complete -o default -F _millrace millrace',
    '',
  ].join('\n');
}

function renderFish(words: CompletionWords): string {
  const lines = [...words].flatMap(([typed, found]) => {
    const seen = typed.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
    const when = typed === '' ? '__fish_use_subcommand' : seen.join('; and ');
    const options = found.filter((word) => word.startsWith('--')).map((word) => `complete -c millrace -n '${when}' -l ${word.slice(2)}`);
    const plain = found.filter((word) => !word.startsWith('--'));
    return [
      ...(plain.length === 0 ? [] : [`complete -c millrace ${typed === '' ? '-f ' : ''}-n '${when}' -a '${plain.join(' ')}'`]),
      ...options,
    ];
  });
  return `${lines.join('\n')}\n`;
}
