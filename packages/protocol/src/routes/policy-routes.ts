// The routes of the policy's weights: read, pause, resume.

import { pauseRequest, policyView, resumeRequest } from '../policy.ts';
import { bodyErrors, json, type Route, waitQuery } from './route.ts';

export const policyRoutes = {
  getPolicy: {
    method: 'GET',
    path: '/v1/policy',
    tag: 'policy',
    summary: 'Get the state of sampling and the current policy version.',
    replies: { 200: json('The policy.', policyView) },
    errors: [],
  },
  pausePolicy: {
    method: 'POST',
    path: '/v1/policy/pause',
    tag: 'policy',
    summary:
      'Pause sampling, so that the weights can be changed. A pause of another owner is a conflict. The clocks of rollouts stop; submissions continue.',
    query: waitQuery('all sampling to stop'),
    body: pauseRequest,
    replies: { 200: json('The policy.', policyView) },
    errors: ['conflict', ...bodyErrors],
  },
  resumePolicy: {
    method: 'POST',
    path: '/v1/policy/resume',
    tag: 'policy',
    summary:
      'Resume sampling. The given version becomes that of all backends; a version lower than the current one is a conflict, and so is a pause of another owner.',
    body: resumeRequest,
    replies: { 200: json('The policy.', policyView) },
    errors: ['conflict', ...bodyErrors],
  },
} as const satisfies Record<string, Route>;
