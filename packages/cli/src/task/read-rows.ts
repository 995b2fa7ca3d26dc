// Reads rows of a data set: JSON lines, a JSON array, or Parquet.

import { readFile } from 'node:fs/promises';
import { messageOf } from '@millrace/protocol';
import { UsageError } from '../command/command.ts';

export type DataRow = Readonly<Record<string, unknown>>;

/** In the order of the file. Throws a UsageError that names the file, and the line where there is one. */
export async function readRows(path: string): Promise<DataRow[]> {
  try {
    return path.endsWith('.parquet') ? await readParquet(path) : parseRows(await readFile(path, 'utf8'), path);
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

/** Loaded for Parquet only. */
async function readParquet(path: string): Promise<DataRow[]> {
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet');
  const { compressors } = await import('hyparquet-compressors');
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors });
  return rows.map((row) => toRow(toPlainValue(row), path, 0));
}

/** Numbers of 64 bits become plain ones, and times text, as in JSON. */
function toPlainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toPlainValue(one)]));
}

function parseRows(text: string, path: string): DataRow[] {
  const content = text.replace(/^\ufeff/, '');
  if (content.trimStart().startsWith('[')) return toList(JSON.parse(content)).map((one, at) => toRow(one, path, at + 1));
  return content.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      return [toRow(JSON.parse(line), path, index + 1)];
    } catch (error) {
      throw error instanceof UsageError ? error : new UsageError(`${path}:${index + 1} is not JSON: ${messageOf(error)}`);
    }
  });
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function toRow(value: unknown, path: string, line: number): DataRow {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.fromEntries(Object.entries(value));
  throw new UsageError(`${path}:${line} is not an object`);
}
