// The routes for machines: which ones there are, and what a worker on a new one needs.

import { z } from 'zod';
import { machineList, workerSettings } from '../machine.ts';
import { json, type Route } from './route.ts';

export const machineRoutes = {
  listMachines: {
    method: 'GET',
    path: '/v1/machines',
    tag: 'service',
    summary: 'List the machines with workers: capacity, labels, what they hold, and those that left or were lost in the last ten minutes.',
    replies: { 200: json('The machines, live ones first.', machineList) },
    errors: [],
  },
  getJoin: {
    method: 'GET',
    path: '/v1/join',
    tag: 'service',
    summary:
      'What a worker on another machine needs: the settings of the service. A worker that names its wire reaches the store through servers; any other gets the address of the store, for which its key needs every right.',
    query: z.strictObject({ wire: z.coerce.number().int().optional().describe('The wire of calls that the worker speaks.') }),
    replies: { 200: json('The settings.', workerSettings) },
    errors: ['conflict'],
  },
} as const satisfies Record<string, Route>;
