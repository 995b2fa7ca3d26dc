// What ProRL Agent's clients add to a task for their own routing. A task of our own shape is strict, so these fields must not reach it.

const routingFields = ['data_source', 'instance_id', 'trajectory_id', 'data_kind', 'extra_info'] as const;

/** The instance without its routing fields, except those that the scenario's tasks have too. */
export function withoutRoutingFields(
  instance: Readonly<Record<string, unknown>>,
  keep: readonly (typeof routingFields)[number][] = [],
): Record<string, unknown> {
  const removed: ReadonlySet<string> = new Set(routingFields.filter((name) => !keep.includes(name)));
  return Object.fromEntries(Object.entries(instance).filter(([name]) => !removed.has(name)));
}
