// Whether the server that answers now is the one that is known. A server that differs in any fact is another one: nothing that was known of
// the old one is assumed of it. Pure; the store applies it to what it has, so that all workers agree.

import type { BackendProbe, ServerFacts } from '@millrace/engines';
import { definedOf } from '@millrace/protocol/plain';

const factNames = [
  'instance',
  'engine',
  'version',
  'model',
  'root',
  'contextTokens',
  'fingerprint',
  'logprobsMode',
  'tokenizer',
] as const satisfies readonly (keyof ServerFacts)[];

/** The facts that differ. */
export interface IdentityChange {
  readonly from: ServerFacts;
  readonly to: ServerFacts;
}

/** Of a server that was restarted after its weights had changed. */
const unknownWeights =
  'its server was restarted, and nothing says which weights it has now: resume the policy with the version that all backends serve, or join it again with its policy_version';

/** Why nothing may be sampled from this server, whatever its health; undefined if nothing forbids it. */
export function findFault({ hasUnknownWeights, tokenizer, tokenizerReason }: BackendProbe): string | undefined {
  if (tokenizer === 'different') return tokenizerReason ?? "its tokenizer differs from the service's";
  return hasUnknownWeights ? unknownWeights : undefined;
}

/** How many servers are remembered: enough for the engines behind a router. */
const maxServers = 16;

export function factsOf(probe: ServerFacts): ServerFacts {
  return Object.fromEntries(factNames.filter((name) => isKnown(probe[name])).map((name) => [name, probe[name]]));
}

/** Undefined if no fact that both sides know differs. */
export function findChange(known: ServerFacts, found: ServerFacts): IdentityChange | undefined {
  const different = factNames.filter((name) => isKnown(known[name]) && isKnown(found[name]) && known[name] !== found[name]);
  if (different.length === 0) return undefined;
  const pick = (facts: ServerFacts) => Object.fromEntries(different.map((name) => [name, facts[name]]));
  return { from: pick(known), to: pick(found) };
}

/** Whether a probe found exactly what is known. */
export function isSameProbe(known: BackendProbe, found: BackendProbe): boolean {
  return !known.isSeveral && !found.isSeveral && factNames.every((name) => known[name] === found[name]);
}

/** Whether an answer with this instance comes from a server that is known here. */
export function isKnownInstance({ instance, isSeveral, others = [] }: BackendProbe, found: string | undefined): boolean {
  if (found === undefined) return false;
  return isSeveral ? others.some((one) => one.instance === found) : found === instance;
}

interface JoinedProbe {
  readonly probe: BackendProbe;
  /** Absent if the server is the one that was known. */
  readonly change?: IdentityChange;
}

/** What is known after a whole probe: the old facts with the new ones, or only the new ones if it is another server. */
export function joinProbe(known: BackendProbe | undefined, found: BackendProbe): JoinedProbe {
  if (!known) return { probe: { ...found, generation: 1 } };
  const { generation = 1, others = [], startVersion, hasUnknownWeights, isReplaced } = known;
  const weights = definedOf({ startVersion, hasUnknownWeights, isReplaced });
  if (known.isSeveral || found.isSeveral || isBack(known, found)) return joinSeveral(known, found);
  const change = findChange(known, found);
  if (change) {
    const before = [...others, factsOf(known)].slice(-maxServers);
    return { probe: { ...found, ...weights, generation: generation + 1, others: before, isReplaced: true }, change };
  }
  // Flags may differ without showing: what only a sampled token showed is known of the same start of the server alone.
  const isSameStart = known.instance !== undefined && known.instance === found.instance;
  const sampled = isSameStart ? definedOf({ logprobsMode: known.logprobsMode, fingerprint: known.fingerprint }) : {};
  const { tokenizer = 'unchecked' } = found;
  const agreement = tokenizer === 'unchecked' && isSameStart ? definedOf({ tokenizer: known.tokenizer }) : {};
  return { probe: { ...sampled, ...found, ...agreement, ...weights, generation, ...(others.length > 0 ? { others } : {}) } };
}

/** A process that has ended does not come back: if one that was replaced answers again, several servers answer in turns. */
function isBack({ instance, others = [] }: BackendProbe, found: ServerFacts): boolean {
  return found.instance !== undefined && found.instance !== instance && others.some((one) => one.instance === found.instance);
}

/** A server behind the address that was not known is a change; those that are known may answer in any order. */
function joinSeveral(known: BackendProbe, found: BackendProbe): JoinedProbe {
  const { generation = 1, startVersion, hasUnknownWeights, isReplaced } = known;
  const before = [...(known.others ?? []), ...(known.isSeveral ? [] : [factsOf(known)])];
  const answering = [...(found.isSeveral ? (found.others ?? []) : []), factsOf(found)].filter(({ instance }) => instance !== undefined);
  const isNew = !known.isSeveral || answering.some(({ instance }) => !before.some((one) => one.instance === instance));
  const weights = definedOf({ startVersion, hasUnknownWeights, isReplaced: isNew || isReplaced });
  const servers = [...before, ...answering];
  const shared = toSeveral(found, servers.length > 0 ? servers : [factsOf(found)]);
  const probe = { ...shared, ...weights, generation: generation + Number(isNew) };
  return isNew ? { probe, change: { from: factsOf(known), to: factsOf(found) } } : { probe };
}

/** The probe of an address at which these servers answer: it says only what all of them share. */
export function toSeveral(found: BackendProbe, servers: readonly ServerFacts[]): BackendProbe {
  const byInstance = new Map<string | undefined, ServerFacts>();
  for (const one of servers) {
    const known = byInstance.get(one.instance);
    byInstance.delete(one.instance);
    byInstance.set(one.instance, { ...known, ...one });
  }
  const others = [...byInstance.values()].slice(-maxServers);
  const rest = Object.fromEntries(Object.entries(found).filter(([name]) => !factNames.some((fact) => fact === name)));
  return { ...rest, ...shareFacts(others), isSeveral: true, others };
}

function shareFacts(servers: readonly ServerFacts[]): ServerFacts {
  const shared = factNames
    .filter((name) => name !== 'instance' && name !== 'contextTokens')
    .filter((name) => servers.every((one) => one[name] !== undefined && one[name] === servers[0]?.[name]))
    .map((name) => [name, servers[0]?.[name]]);
  const contexts = servers.flatMap(({ contextTokens }) => contextTokens ?? []);
  // Any of them may get the next call.
  if (servers.some(({ tokenizer }) => tokenizer === 'different')) shared.push(['tokenizer', 'different']);
  return { ...Object.fromEntries(shared), ...(contexts.length > 0 ? { contextTokens: Math.min(...contexts) } : {}) };
}

/** What was not found out differs from nothing. */
function isKnown(fact: ServerFacts[keyof ServerFacts]): boolean {
  return fact !== undefined && fact !== 'unknown' && fact !== 'unchecked';
}
