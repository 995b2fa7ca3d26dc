// The types of columns that many tables share.

/** Ordered by its bytes, whatever the locale of the database. */
export const text = 'text COLLATE "C"';
/** Numbers rows in the order in which they are added; never used again. */
export const seq = 'seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY';
