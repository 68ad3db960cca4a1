/** Keys of dicts and messages: the JSON text of their value; a list stands for a tuple of Python. */

export type Key = string | number | boolean | null | readonly Key[];

/** The text of a key, as every client writes it. */
export function encodeKey(key: Key): string {
  return JSON.stringify(key);
}

/** The key that a text stands for. */
export function decodeKey(text: string): Key {
  return JSON.parse(text) as Key;
}

/** What the texts of all keys begin with that begin with a text, or of the lists that are longer than this one and begin with it. */
export function keyPrefix(prefix: string | readonly Key[]): string {
  const opening = encodeKey(prefix).slice(0, -1);
  return typeof prefix === "string" || !prefix.length ? opening : `${opening},`;
}

/** An id that nobody else makes. */
export function newId(): string {
  return crypto.randomUUID();
}
