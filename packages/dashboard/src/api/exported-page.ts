// Whether this page was exported with its data in it. Then it asks no service, and its policy would not let it.

import { type ExportedData, exportedDataId, openExported } from '../list/exported.ts';

function openAnswers(): ((path: string) => unknown) | undefined {
  const text = document.getElementById(exportedDataId)?.textContent;
  if (!text) return undefined;
  const data = JSON.parse(text) as ExportedData;
  const [only, ...others] = data.rollouts;
  // A single rollout is what the page is about.
  if (only !== undefined && others.length === 0 && location.hash === '') location.hash = `#/rollout/${encodeURIComponent(only.view.id)}`;
  return openExported(data);
}

/** Undefined on a page that a service or a viewer serves. */
export const answerExported = openAnswers();
