// What other packages may use of the tracing package, name by name.

export { openTracing } from './open-tracing.ts';
