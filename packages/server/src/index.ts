// What other packages may use of the server, name by name.

export { BatchKeeper } from './batches/batch-keeper.ts';
export { toRecipe } from './batches/new-siblings.ts';
export { TaskFiles } from './batches/task-files.ts';
export { openRootlessPostgres, type RootlessPostgres } from './cluster/rootless-postgres.ts';
export { type SlurmConfig, type SlurmRole, slurmRoles } from './cluster/slurm-config.ts';
export { readConfig, type ServiceConfig, serviceConfig } from './config.ts';
export { renderConfigDoc } from './config-doc.ts';
export { openSource, toExportedPage, viewPath } from './http/dashboard/view/view.ts';
export type { ViewSource } from './http/dashboard/view/view-source.ts';
export { renderMetrics } from './http/metrics/metrics-doc.ts';
export { renderLogEvents } from './log-events.ts';
export { openWorkerStore } from './open-stores.ts';
export { openDriver, openLayers, openServer, openWorker, StartError } from './service.ts';
export { type Check, checkModel, checkPort, checkRunFolder, lookAtBackend, type ModelCheck, runStartChecks } from './start-checks.ts';
export { Supervisor } from './supervisor.ts';
export { type LogFormat, openProcessLog } from './text-log.ts';
export { openToolServer, type RunningToolServer } from './tool-service.ts';
