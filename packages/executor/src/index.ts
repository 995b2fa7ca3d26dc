// What the worker shares with the executor: the frame codec and the reading of /proc. The rest runs only inside the sandbox.

export { encodeFrame, type Frame, type FrameLimits, openFrameReader } from './frames.ts';
export { type ProcessStat, readProcess } from './processes.ts';
