// What an id may be: safe in a path, a file name and a log line.

export const idPattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
