// Which addresses webhooks may reach. A caller of the API chooses the URL, so without this check it could make the service post to what
// only this machine can reach, such as a cloud's metadata service. Names are checked again at each connection, by what they resolve to.

import { lookup as lookupHost } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Link-local addresses, among them the metadata services of most clouds, and the metadata services elsewhere. */
const blockedSubnets = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128', '100.100.100.200/32'];

export class WebhookTargets {
  readonly #names: ReadonlySet<string>;
  readonly #allowed: BlockList;
  readonly #blocked = toBlockList(blockedSubnets);
  readonly #isOpen: boolean;

  /** Host names, addresses and subnets such as 10.0.0.0/8. If there is none, every host is allowed except the blocked ones. */
  constructor(hosts: readonly string[]) {
    const addresses = hosts.filter(isSubnet);
    this.#names = new Set(hosts.filter((host) => !isSubnet(host)).map((host) => host.toLowerCase()));
    this.#allowed = toBlockList(addresses);
    this.#isOpen = hosts.length === 0;
  }

  /** Why this URL cannot be a webhook; absent if nothing is known against it before its name is resolved. */
  findFault(url: string): string | undefined {
    const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
    if (isIP(host) !== 0) return this.#findAddressFault(host, host);
    const needsAddress = this.#allowed.rules.length > 0;
    return this.#isOpen || needsAddress || this.#names.has(host) ? undefined : `${host} is not one of http.webhookHosts`;
  }

  #findAddressFault(address: string, host: string): string | undefined {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (this.#allowed.check(address, family)) return undefined;
    const seen = address === host ? host : `${host} (${address})`;
    if (this.#blocked.check(address, family)) return `${seen} is a link-local or metadata address`;
    return this.#isOpen || this.#names.has(host) ? undefined : `${seen} is not one of http.webhookHosts`;
  }

  /** Resolves a name for a connection, and fails if one of its addresses is not allowed. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    lookupHost(host, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0);
      const fault = found.map(({ address }) => this.#findAddressFault(address, host)).find((one) => one !== undefined);
      if (fault !== undefined) return callback(new Error(fault), '', 0);
      if (options.all) return callback(null, found);
      callback(null, found[0]?.address ?? '', found[0]?.family);
    });
  };
}

function isSubnet(host: string): boolean {
  return isIP(host.split('/')[0] ?? '') !== 0;
}

function toBlockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return list;
}
