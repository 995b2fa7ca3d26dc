// What the tool server is given.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { KeyConfig } from '../http/request/auth.ts';
import type { HttpConfig } from '../http/request/http-config.ts';
import type { ToolSandboxes } from './tool-sandboxes.ts';

export interface ToolAppOptions {
  readonly sandboxes: ToolSandboxes;
  readonly config: KeyConfig & Pick<HttpConfig, 'maxBodyBytes'>;
  /** How long one action may run. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}
