// What an MCP server may send: a server is a program of others, and in a sandbox even the agent's to change.

/** For one reply. */
export const maxReplyBytes = 8 << 20;
export const maxPages = 50;
/** Of the whole list, of which a task may choose a part. */
export const maxListed = 2000;
/** More tools than this fill a context before the agent starts. */
export const maxOffered = 100;
export const maxDescription = 4096;
export const maxSchemaBytes = 32 * 1024;
/** Blocks of content in one result. */
export const maxBlocks = 200;
