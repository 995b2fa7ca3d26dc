// Which addresses webhooks may reach. A caller of the API chooses the URL, so without this check it could make the service post to what
// only this machine can reach, such as a cloud's metadata service. Names are checked again at each connection, by what they resolve to.

import { lookup as lookupHost } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Link-local addresses, among them the metadata services of most clouds, and the metadata services elsewhere. */
const blockedSubnets = [
  ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['fe80::/10', 'fd00:ec2::254/128', 'fd20:ce::254/128'],
];
/** A gateway with a prefix of its own translates them too, so they are refused at the end of every IPv6 address. */
const metadataSubnets = ['169.254.169.254/32', '169.254.170.2/32', '100.100.100.200/32'];

export class WebhookTargets {
  readonly #names: ReadonlySet<string>;
  readonly #allowed: BlockList;
  readonly #blocked = toBlockList(blockedSubnets);
  readonly #metadata = toBlockList(metadataSubnets);
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
    if (this.#blocked.check(address, family) || this.#leadsToBlocked(address)) return `${seen} is a link-local or metadata address`;
    return this.#isOpen || this.#names.has(host) ? undefined : `${seen} is not one of http.webhookHosts`;
  }

  /** Whether a gateway would translate an IPv6 address to a blocked one of IPv4. */
  #leadsToBlocked(address: string): boolean {
    const words = isIP(address) === 6 ? toWords(address) : [];
    const blocks = (list: BlockList, [high = 0, low = 0]: readonly number[]) =>
      list.check([high >> 8, high & 255, low >> 8, low & 255].join('.'), 'ipv4');
    return embeddedPairs(words).some((pair) => blocks(this.#blocked, pair)) || blocks(this.#metadata, words.slice(6));
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

/** The eight parts of an IPv6 address. */
function toWords(address: string): number[] {
  // The URL parser writes the last four bytes as two parts.
  const text = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::').map((half) => (half === '' ? [] : half.split(':').map((part) => Number.parseInt(part, 16))));
  if (tail === undefined) return [...head].map(Number);
  return [...head, ...Array(8 - head.length - tail.length).fill(0), ...tail].map(Number);
}

/** The IPv4 addresses that an IPv6 address stands for, each as two parts. */
function embeddedPairs(words: readonly number[]): number[][] {
  const [w0 = 0, w1 = 0, w2 = 0, w3 = 0, w4 = 0, w5 = 0, w6 = 0, w7 = 0] = words;
  const pairs: [boolean, number[]][] = [
    // Mapped (::ffff:0:0/96), compatible (::/96) and translated (::ffff:0:0:0/96).
    [(w0 | w1 | w2 | w3) === 0 && ((w4 === 0 && (w5 === 0 || w5 === 0xffff)) || (w4 === 0xffff && w5 === 0)), [w6, w7]],
    // NAT64, with the well-known prefix, and with a local one of 48 or 96 bits.
    [w0 === 0x64 && w1 === 0xff9b, [w6, w7]],
    [w0 === 0x64 && w1 === 0xff9b && w2 === 1, [w3, ((w4 & 0xff) << 8) | (w5 >> 8)]],
    // 6to4, the server and the client of Teredo, ISATAP.
    [w0 === 0x2002, [w1, w2]],
    [w0 === 0x2001 && w1 === 0, [w2, w3]],
    [w0 === 0x2001 && w1 === 0, [w6 ^ 0xffff, w7 ^ 0xffff]],
    [(w4 & 0xfdff) === 0 && w5 === 0x5efe, [w6, w7]],
  ];
  return pairs.flatMap(([applies, pair]) => (applies ? [pair] : []));
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
