import type { Principal } from '../../access/principal.ts'

/** Returns what a person calls the account, for pages of that person. It identifies no one. */
export const accountNameOf = ({ signIn, subject }: Principal): string => signIn?.name ?? subject
