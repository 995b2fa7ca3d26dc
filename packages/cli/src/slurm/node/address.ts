// The address of this node that the other nodes reach.

import { lookup } from 'node:dns/promises';
import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/** The address of the named interface; else the one that the node's name stands for; else the first that is not loopback. */
export async function findNodeAddress(network: string | undefined, nodeName: string | undefined): Promise<string> {
  const interfaces = networkInterfaces();
  if (network !== undefined) {
    const found = interfaces[network]?.find(({ family }) => family === 'IPv4') ?? interfaces[network]?.[0];
    if (found === undefined)
      throw new Error(
        `slurm.network names the interface ${network}, which this node does not have; it has ${Object.keys(interfaces).join(', ')}`,
      );
    return found.address;
  }
  const own = Object.values(interfaces).flatMap((list: NetworkInterfaceInfo[] | undefined) => list ?? []);
  const isReachable = (address: string) => own.some((one) => one.address === address && !one.internal);
  for (const name of [nodeName, hostname()]) {
    if (name === undefined) continue;
    const { address } = await lookup(name, { family: 4 }).catch(() => ({ address: '' })); // not every node name is in DNS
    if (isReachable(address)) return address;
  }
  return own.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
}
