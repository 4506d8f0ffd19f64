import type { Principal } from '../../access/principal.ts'

/** Returns a name of the account for pages of its user. It is not unique, so it must give no rights. */
export const accountNameOf = ({ signIn, subject }: Principal): string => signIn?.name ?? subject
