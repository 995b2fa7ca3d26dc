// The harnesses that come with Millrace, by name.

import type { Harness } from '../harness.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { geminiCli } from './gemini-cli.ts';
import { miniSweAgent } from './mini-swe-agent.ts';
import { opencode } from './opencode.ts';
import { pi } from './pi.ts';
import { qwenCode } from './qwen-code.ts';

export const harnessCatalog: readonly Harness[] = [codex, claudeCode, opencode, qwenCode, pi, geminiCli, miniSweAgent];
