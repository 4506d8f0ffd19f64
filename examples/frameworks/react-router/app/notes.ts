/** Notes by owner, in memory. */
const notes = new Map<string, string[]>()

export const notesOf = (owner: string): readonly string[] => notes.get(owner) ?? []

export function addNote(owner: string, text: string): string {
  notes.set(owner, [...notesOf(owner), text])
  return text
}
