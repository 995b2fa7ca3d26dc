// The languages of programs and checkers: the file, and how to compile and start it.

export const languageNames = ['python', 'c', 'cpp', 'java', 'go', 'rust', 'javascript'] as const;
export type LanguageName = (typeof languageNames)[number];

interface Language {
  readonly file: string;
  /** Absent: the runner compiles it. A language without a compiler is only checked. */
  readonly compile?: readonly string[];
  /** `{memory}` stands for the memory of a test in MiB. */
  readonly run: readonly string[];
  /** Names after the fence of a code block. */
  readonly fences: readonly string[];
  /** Its runtime reserves more address space than it uses: only memory in use is limited, and it has this much for itself. */
  readonly runtimeMiB?: number;
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
  java: {
    file: 'Main.java',
    compile: ['javac', '-J-XX:+UseSerialGC', '-encoding', 'UTF-8', '-nowarn', 'Main.java'],
    run: ['java', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xss64m', '-Xmx{memory}m', 'Main'],
    fences: ['java', ''],
    runtimeMiB: 256,
  },
  go: {
    file: 'solution.go',
    compile: ['go', 'build', '-o', 'solution', 'solution.go'],
    run: ['./solution'],
    fences: ['go', 'golang', ''],
    runtimeMiB: 64,
  },
  rust: {
    file: 'solution.rs',
    compile: ['rustc', '-O', '--edition=2021', '-o', 'solution', 'solution.rs'],
    run: ['./solution'],
    fences: ['rust', 'rs', ''],
  },
  javascript: {
    file: 'solution.js',
    compile: ['node', '--check', 'solution.js'],
    run: ['node', '--max-old-space-size={memory}', 'solution.js'],
    fences: ['javascript', 'js', 'node', ''],
    runtimeMiB: 128,
  },
};

export const renderRun = ({ run }: Language, memoryMiB: number): readonly string[] =>
  run.map((word) => word.replace('{memory}', String(memoryMiB)));
