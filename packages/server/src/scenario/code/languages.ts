// The languages of programs and checkers: the file, and how to compile and start it.

export const languageNames = ['python', 'c', 'cpp'] as const;
export type LanguageName = (typeof languageNames)[number];

export interface Language {
  readonly file: string;
  /** Absent: the runner compiles it. */
  readonly compile?: readonly string[];
  readonly run: readonly string[];
  /** Names after the fence of a code block. */
  readonly fences: readonly string[];
}

export const languages: Readonly<Record<LanguageName, Language>> = {
  python: { file: 'solution.py', run: ['python3', '-I', 'solution.py'], fences: ['python', 'python3', 'py', ''] },
  c: {
    file: 'solution.c',
    compile: ['gcc', '-O2', '-std=gnu17', '-o', 'solution', 'solution.c', '-lm'],
    run: ['./solution'],
    fences: ['c', ''],
  },
  cpp: {
    file: 'solution.cpp',
    compile: ['g++', '-O2', '-std=gnu++20', '-o', 'solution', 'solution.cpp'],
    run: ['./solution'],
    fences: ['cpp', 'c++', 'cc', ''],
  },
};
