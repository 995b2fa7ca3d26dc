// The rows of the route table that belong to the policy's weights: look, pause, resume.

import { pauseRequest, policyView, resumeRequest } from '../policy.ts';
import { bodyErrors, json, type Route, waitQuery } from './route.ts';

export const policyRoutes = {
  getPolicy: {
    method: 'GET',
    path: '/v1/policy',
    tag: 'policy',
    summary: 'Whether turns are sampled now, and under which weights.',
    replies: { 200: json('The policy as it stands.', policyView) },
    errors: [],
  },
  pausePolicy: {
    method: 'POST',
    path: '/v1/policy/pause',
    tag: 'policy',
    summary: 'Stop sampling, so that the weights can be changed. Rollouts wait, uncharged; submissions go on.',
    query: waitQuery('nothing to be sampled any more'),
    body: pauseRequest,
    replies: { 200: json('The policy as it stands.', policyView) },
    errors: [...bodyErrors],
  },
  resumePolicy: {
    method: 'POST',
    path: '/v1/policy/resume',
    tag: 'policy',
    summary: 'Go on sampling. The version named becomes that of all backends; a lower one than the present is a conflict.',
    body: resumeRequest,
    replies: { 200: json('The policy as it stands.', policyView) },
    errors: ['conflict', ...bodyErrors],
  },
} as const satisfies Record<string, Route>;
