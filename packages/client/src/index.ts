// The TypeScript client of Millrace: what trainers and the command line import.

export type { Batches, DeliveredGroup, GroupsOptions } from './batches.ts';
export { type Client, type ClientOptions, type ListOptions, openClient } from './client.ts';
export type { Evaluations } from './evaluations.ts';
export type { Run } from './run.ts';
export type { Accepted, SubmissionFault, SubmitOptions } from './submit.ts';
export type { CallOptions } from './transport.ts';
