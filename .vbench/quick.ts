import { runVerdictsBench } from './verdicts/verdicts.ts';
import { renderReport } from './report/report.ts';
console.log(renderReport(await runVerdictsBench(), 'x'));
process.exit();
