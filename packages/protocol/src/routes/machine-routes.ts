// The routes for machines: which ones there are, and what a worker on a new one needs.

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
      'What a worker on another machine needs: the settings of the service and the address of its store. Needs a key with every right.',
    replies: { 200: json('The settings.', workerSettings) },
    errors: [],
  },
} as const satisfies Record<string, Route>;
