// The configuration of tools from outside: HTTP tools and MCP servers that the operator offers to tasks. Only the operator names addresses
// and secrets; a task chooses by name.

import { z } from 'zod';
import { isToolName, serverNamePattern, toolNamePattern } from '../tool-names.ts';

const address = z.url({ protocol: /^https?$/, error: 'expected an address that starts with http:// or https://' });
const jsonSchema = z.looseObject({ type: z.literal('object', 'the parameters of a tool are a JSON Schema with "type": "object"') });

const endpoint = {
  url: address,
  headers: z
    .record(z.string().regex(/^[A-Za-z0-9-]+$/), z.string())
    .default({})
    .describe(`Headers of every request. "\${NAME}" in a value is filled in from the environment of the workers.`),
  timeoutSeconds: z
    .number()
    .gt(0)
    .default(30)
    .describe('Time for one call, with its retries; `tool_timeout_s` of the rollout if that is shorter.'),
  attempts: z.int().min(1).max(10).default(3).describe('How many times a call is tried while the server cannot be reached.'),
};
export type EndpointConfig = z.infer<z.ZodObject<typeof endpoint>>;

const httpTool = z.strictObject({
  ...endpoint,
  description: z.string().min(1).describe('What the model reads about the tool.'),
  parameters: jsonSchema.default({ type: 'object', properties: {} }).describe('The arguments as JSON Schema.'),
  method: z
    .enum(['POST', 'PUT', 'PATCH', 'GET', 'DELETE'])
    .default('POST')
    .describe('With GET and DELETE the arguments are the query of the address, otherwise a JSON body.'),
});
export type HttpToolConfig = z.infer<typeof httpTool>;

const mcpServer = z.strictObject(endpoint);
export const outsideConfig = z
  .strictObject({
    http: z
      .record(z.string().regex(toolNamePattern), httpTool)
      .default({})
      .describe(
        'HTTP tools that tasks may choose, by name; [Tools](tools.md#http-tools) has the fields. Workers call these addresses and no others.',
      ),
    mcp: z
      .record(z.string().regex(serverNamePattern), mcpServer)
      .default({})
      .describe('MCP servers (streamable HTTP) that tasks may choose, by name; [Tools](tools.md#mcp-servers) has the fields.'),
  })
  .superRefine(({ http, mcp }, context) => {
    for (const [kind, name] of [...Object.keys(http).map((one) => ['http', one]), ...Object.keys(mcp).map((one) => ['mcp', one])] as const)
      if (isToolName(name ?? ''))
        context.addIssue({ code: 'custom', path: [kind ?? '', name ?? ''], message: 'a built-in tool has this name' });
    for (const name of Object.keys(mcp))
      if (Object.hasOwn(http, name)) context.addIssue({ code: 'custom', path: ['mcp', name], message: 'an HTTP tool has this name' });
  });
export type OutsideConfig = z.infer<typeof outsideConfig>;
