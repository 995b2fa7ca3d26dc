// The routes of gateways: open, get, end. The requests of agents below `/v1/gateways/{id}/` have the shapes of their APIs, not ours.

import { z } from 'zod';
import { rolloutId } from '../ids.ts';
import { rolloutView } from '../rollout.ts';
import { gatewayOpened, gatewayRequest, gatewayReward } from './gateway.ts';
import { bodyErrors, intakeErrors, json, type Route, waitQuery } from './route.ts';

const params = z.strictObject({ id: rolloutId });

export const gatewayRoutes = {
  openGateway: {
    method: 'POST',
    path: '/v1/gateways',
    tag: 'gateways',
    summary: 'Open a gateway for an agent that runs elsewhere: an address and a key that it uses as those of an LLM API.',
    body: gatewayRequest,
    replies: { 200: json('Its address and key.', gatewayOpened) },
    errors: ['conflict', ...intakeErrors],
  },
  getGateway: {
    method: 'GET',
    path: '/v1/gateways/{id}',
    tag: 'gateways',
    summary: 'Get the rollout of a gateway. After its end, `result.score.gateway` has its branches and what was not exact.',
    params,
    query: waitQuery('its end'),
    replies: { 200: json('The rollout.', rolloutView) },
    errors: ['not-found'],
  },
  rewardGateway: {
    method: 'POST',
    path: '/v1/gateways/{id}/reward',
    tag: 'gateways',
    summary: 'End a gateway with its reward, or discard it. Requests that are being answered are stopped.',
    params,
    body: gatewayReward,
    replies: { 200: json('The rollout, after its end.', rolloutView) },
    errors: ['not-found', 'conflict', 'not-running', ...bodyErrors],
  },
} as const satisfies Record<string, Route>;
